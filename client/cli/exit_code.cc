#include "client/cli/exit_code.h"

#include <iostream>

namespace stowage {

ExitCode ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitOk;
    case absl::StatusCode::kInvalidArgument:
      return kExitUsage;
    case absl::StatusCode::kDeadlineExceeded:
      return kExitDeadline;
    case absl::StatusCode::kUnavailable:
      return kExitUnavailable;
    default:
      return kExitFailure;
  }
}

ExitCode ExitCodeOf(PlanStatus status) {
  return status == PlanStatus::kFound ? kExitOk : kExitInfeasible;
}

ExitCode Fail(const absl::Status& status) {
  std::cerr << "stowage: " << status.message() << std::endl;
  return ExitCodeOf(status);
}

}  // namespace stowage
