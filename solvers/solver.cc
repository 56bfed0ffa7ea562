#include "solvers/solver.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

absl::Status UnderOptions(const absl::Status& status) {
  const std::optional<FieldViolation> violation = GetFieldViolation(status);
  if (!violation) return status;
  return FieldError("options." + violation->field, violation->value, violation->rule);
}

}  // namespace

void StopToken::ExtendDeadline(Clock::time_point deadline) {
  const Clock::rep later = deadline.time_since_epoch().count();
  Clock::rep now = deadline_.load(std::memory_order_relaxed);
  while (now < later && !deadline_.compare_exchange_weak(now, later, std::memory_order_relaxed)) {
  }
}

absl::Status StopToken::Check() const {
  if (stop_requested()) return absl::CancelledError("the solve was cancelled");
  if (deadline_passed()) return absl::DeadlineExceededError("the solve reached its deadline");
  return absl::OkStatus();
}

absl::Status ValidateSolveOptions(const SolveOptions& options) {
  constexpr int64_t kMaxSlots = 1000000;
  if (options.slots < 0 || options.slots > kMaxSlots) {
    return FieldError("options.slots", options.slots,
                      absl::StrCat("must be in [0, ", kMaxSlots, "]"));
  }
  if (options.threads < 1) return FieldError("options.threads", options.threads, "must be >= 1");
  return options.transfers ? UnderOptions(ValidateTransferModel(*options.transfers))
                           : absl::OkStatus();
}

absl::Status SolveOutOfMemoryError() {
  return absl::ResourceExhaustedError("the machine has not the memory that this solve takes");
}

}  // namespace stowage
