// The profile that a command which trains goes by: one that is known, or one that it measures.
#ifndef STOWAGE_CLIENT_CLI_KNOWN_PROFILE_H_
#define STOWAGE_CLIENT_CLI_KNOWN_PROFILE_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/agent/agent.h"
#include "client/agent/batch.h"
#include "solvers/model/problem.h"

namespace stowage {

// Of --profile; nothing if the flag is empty. Errors: ReadProfile.
absl::StatusOr<std::optional<Profile>> KnownProfileFromFlag();

// Lets the agent go by the known profile, or measure. Errors: Agent::UseProfile, Agent::Profile.
absl::Status KnowOrProfile(Agent* agent, const Batch& batch, std::optional<Profile> known);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_KNOWN_PROFILE_H_
