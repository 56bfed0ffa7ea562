#include "client/cli/exit_code.h"

#include <iostream>

namespace stowage {

const std::vector<ExitCodeMeaning>& ExitCodeMeanings() {
  static const auto* const kMeanings = new std::vector<ExitCodeMeaning>{
      {kExitOk, "done"},
      {kExitFailure,
       "anything not listed, such as a difference that verify finds, or a server that is ill"},
      {kExitUsage, "wrong usage, or input that is not valid"},
      {kExitInfeasible, "infeasible: nothing fits the budget, or nothing was found that does"},
      {kExitDeadline, "the time was up (--timeout)"},
      {kExitUnavailable,
       "unavailable: the server is away, and nothing else could answer (--no_local)"},
  };
  return *kMeanings;
}

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
