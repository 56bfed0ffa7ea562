// What `run` and `verify` do, as their flags say: train plain, then by plans within each budget.
#ifndef STOWAGE_CLIENT_CLI_TRAINING_SESSION_H_
#define STOWAGE_CLIENT_CLI_TRAINING_SESSION_H_

#include "absl/status/statusor.h"
#include "client/cli/exit_code.h"
#include "client/cli/verification.h"

namespace stowage {

struct TrainingChecks {
  bool limit = false;   // Verification::CheckLimit
  bool report = false;  // what steps took goes to the service
};

// Says how far it is, and leaves --trace. Errors: INVALID_ARGUMENT for a flag, Verification::Prepare. Those of
// Verification::Verify and WriteTrace end it with what was found before (VerificationReport::ended).
absl::StatusOr<VerificationReport> TrainAsFlagsSay(const TrainingChecks& checks);

// When it was shown: says what ended it, if anything did. kExitFailure where something differs, kExitInfeasible
// where a budget has no plan.
ExitCode EndOf(const VerificationReport& report);

// What the commands run (training_commands.h).
int RunProfile();
int RunTraining();
int RunVerification();

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_TRAINING_SESSION_H_
