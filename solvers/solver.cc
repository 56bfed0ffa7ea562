#include "solvers/solver.h"

namespace stowage {

absl::Status StopToken::Check() const {
  if (stop_requested()) return absl::CancelledError("the solve was cancelled");
  if (deadline_passed()) return absl::DeadlineExceededError("the solve reached its deadline");
  return absl::OkStatus();
}

}  // namespace stowage
