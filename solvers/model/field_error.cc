#include "solvers/model/field_error.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

constexpr char kField[] = "stowage/field";
constexpr char kValue[] = "stowage/value";
constexpr char kRule[] = "stowage/rule";

}  // namespace

absl::Status FieldError(const std::string& field, const std::string& value,
                        const std::string& rule) {
  absl::Status status = absl::InvalidArgumentError(absl::StrCat(field, " = ", value, ": ", rule));
  status.SetPayload(kField, absl::Cord(field));
  status.SetPayload(kValue, absl::Cord(value));
  status.SetPayload(kRule, absl::Cord(rule));
  return status;
}

absl::Status FieldError(const std::string& field, int64_t value, const std::string& rule) {
  return FieldError(field, absl::StrCat(value), rule);
}

std::optional<FieldViolation> GetFieldViolation(const absl::Status& status) {
  const auto field = status.GetPayload(kField);
  const auto value = status.GetPayload(kValue);
  const auto rule = status.GetPayload(kRule);
  if (!field || !value || !rule) return std::nullopt;
  return FieldViolation{std::string(*field), std::string(*value), std::string(*rule)};
}

}  // namespace stowage
