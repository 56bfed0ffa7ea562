// Pairs of an enum of the contract and one of the solver library, looked up either way. A value
// that the table does not hold is one that this version does not know.
#ifndef STOWAGE_PROTO_CODEC_ENUM_MAP_H_
#define STOWAGE_PROTO_CODEC_ENUM_MAP_H_

#include <google/protobuf/generated_enum_reflection.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "solvers/model/field_error.h"

namespace stowage {

template <class Wire, class Native, size_t N>
using EnumMap = std::array<std::pair<Wire, Native>, N>;

// Total over the native enum when the table is; a hole reads as the contract's UNSPECIFIED.
template <class Wire, class Native, size_t N>
Wire ToWire(const EnumMap<Wire, Native, N>& map, Native native) {
  for (const auto& [wire, value] : map) {
    if (value == native) return wire;
  }
  return Wire{};
}

template <class Wire, class Native, size_t N>
std::optional<Native> FindNative(const EnumMap<Wire, Native, N>& map, Wire wire) {
  for (const auto& [known, value] : map) {
    if (known == wire) return value;
  }
  return std::nullopt;
}

// The field error for a value that FindNative did not find.
template <class Wire>
absl::Status UnknownEnum(const std::string& field, Wire wire) {
  const auto* descriptor = google::protobuf::GetEnumDescriptor<Wire>();
  const auto* named = descriptor->FindValueByNumber(static_cast<int>(wire));
  if (named) return FieldError(field, named->name(), "must be set");
  return FieldError(
      field, static_cast<int64_t>(wire),
      absl::StrCat("must be a value of ", descriptor->full_name(), " that this version knows"));
}

template <class Wire, class Native, size_t N>
absl::Status FromWire(const EnumMap<Wire, Native, N>& map, const std::string& field, Wire wire,
                      Native* native) {
  const std::optional<Native> found = FindNative(map, wire);
  if (!found) return UnknownEnum(field, wire);
  *native = *found;
  return absl::OkStatus();
}

}  // namespace stowage

#endif  // STOWAGE_PROTO_CODEC_ENUM_MAP_H_
