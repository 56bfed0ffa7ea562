// Arbitrary bytes as messages of the contract that become types of the solver library: no message,
// refused with the name of a field, or a value that is written as a message that reads as the same
// value. The first byte says which message.
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>

#include "proto/codec/codec.h"
#include "solvers/model/field_error.h"
#include "tests/fuzz/require.h"

namespace stowage {
namespace {

using testing::Require;

constexpr char kTenant[] = "a tenant";

template <class Message>
auto Read(const Message& message) {
  return FromProto(message);
}

auto Read(const v1::PlanOptions& message) { return FromProto(message, kTenant); }

// What else holds of a value and the one that was read of what it was written as.
template <class Value>
void CheckAlike(const Value&, const Value&) {}

void CheckAlike(const Profile& profile, const Profile& again) {
  KeyOptions options;
  options.tenant = kTenant;
  Require(MakePlanKey(profile, options) == MakePlanKey(again, options), "they have one key");
  const std::optional<KeyOptions> read = OptionsIn(CanonicalBytes(profile, options));
  Require(read && read->tenant == kTenant, "the key's bytes begin with the options");
}

template <class Message>
void Take(const std::string& wire) {
  Message message;
  if (!message.ParseFromString(wire)) return;
  const auto value = Read(message);
  if (!value.ok()) {
    Require(absl::IsInvalidArgument(value.status()) && GetFieldViolation(value.status()),
            "the error names a field", value.status().ToString());
    return;
  }
  const Message written = ToProto(*value);
  const auto again = Read(written);
  Require(again.ok(), "what is written is valid", again.status().ToString());
  Require(ToProto(*again).SerializeAsString() == written.SerializeAsString(), "nothing is lost",
          written.ShortDebugString());
  CheckAlike(*value, *again);
}

}  // namespace
}  // namespace stowage

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stowage;
  if (size == 0) return 0;
  static constexpr void (*kTakes[])(const std::string&) = {Take<v1::Profile>, Take<v1::Plan>,
                                                           Take<v1::Budget>, Take<v1::PlanKey>,
                                                           Take<v1::PlanOptions>};
  kTakes[data[0] % std::size(kTakes)](
      std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  return 0;
}
