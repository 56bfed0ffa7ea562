#include "proto/codec/field_path.h"

#include "solvers/model/field_error.h"

namespace stowage {

absl::Status UnderField(const std::string& prefix, const absl::Status& status) {
  const auto violation = GetFieldViolation(status);
  if (!violation) return status;
  return FieldError(prefix + violation->field, violation->value, violation->rule);
}

}  // namespace stowage
