// One shape for "this input is wrong": which field, which value, which rule. The parts travel as
// payloads of the status, so that a transport can hand them on structured (google.rpc.BadRequest)
// instead of parsing a message.
#ifndef STOWAGE_SOLVERS_MODEL_FIELD_ERROR_H_
#define STOWAGE_SOLVERS_MODEL_FIELD_ERROR_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace stowage {

struct FieldViolation {
  std::string field;  // "chain.stages[3].saved_bytes", as the contract spells it
  std::string value;  // "-5"
  std::string rule;   // "must be >= 0"
};

// INVALID_ARGUMENT "chain.stages[3].saved_bytes = -5: must be >= 0".
absl::Status FieldError(const std::string& field, const std::string& value,
                        const std::string& rule);
absl::Status FieldError(const std::string& field, int64_t value, const std::string& rule);

// The parts of a status that FieldError made; nothing for any other status.
std::optional<FieldViolation> GetFieldViolation(const absl::Status& status);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_MODEL_FIELD_ERROR_H_
