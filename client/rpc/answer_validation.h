// Judges what a server sent by the caller's own profile and budget, whatever it says of itself.
// Internal to client/rpc.
#ifndef STOWAGE_CLIENT_RPC_ANSWER_VALIDATION_H_
#define STOWAGE_CLIENT_RPC_ANSWER_VALIDATION_H_

#include "absl/status/status.h"
#include "solvers/model/budget.h"
#include "solvers/model/canonical.h"
#include "solvers/model/problem.h"
#include "solvers/schedule/plan.h"

namespace stowage {

// Makes budget, prediction and bounds those under this profile, and refuses with INTERNAL a plan
// that the evaluator refuses. "least" is what the server says it is. O(instructions), and milliseconds
// for the bound.
absl::Status ValidateAnswer(const Profile& profile, const Budget& budget,
                            const KeyOptions& key_options, Plan* plan);

// The same for a plan on the way, without the time that a strong bound takes.
absl::Status ValidateProgress(const Profile& profile, const Budget& budget,
                              const KeyOptions& key_options, Plan* plan);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_ANSWER_VALIDATION_H_
