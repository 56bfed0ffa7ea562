// Exit codes of the `stowage` command.
#ifndef STOWAGE_CLIENT_CLI_EXIT_CODE_H_
#define STOWAGE_CLIENT_CLI_EXIT_CODE_H_

#include <vector>

#include "absl/status/status.h"
#include "solvers/schedule/plan.h"

namespace stowage {

enum ExitCode : int {
  kExitOk = 0,
  kExitFailure = 1,      // anything not listed
  kExitUsage = 2,        // bad flags, bad input
  kExitInfeasible = 3,   // no plan within the budget
  kExitDeadline = 4,     // out of time
  kExitUnavailable = 5,  // the server is away and nothing else could answer
};

struct ExitCodeMeaning {
  ExitCode code;
  const char* meaning;
};
// For people, in order.
const std::vector<ExitCodeMeaning>& ExitCodeMeanings();

ExitCode ExitCodeOf(const absl::Status& status);
ExitCode ExitCodeOf(PlanStatus status);

// Prints "stowage: <message>" to stderr and returns the code of a status that is not OK.
ExitCode Fail(const absl::Status& status);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_EXIT_CODE_H_
