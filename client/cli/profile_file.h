#ifndef STOWAGE_CLIENT_CLI_PROFILE_FILE_H_
#define STOWAGE_CLIENT_CLI_PROFILE_FILE_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/agent/agent.h"
#include "client/models/models.h"
#include "solvers/model/problem.h"

namespace stowage {

// What `stowage profile --out` wrote. INVALID_ARGUMENT: it cannot be read, or is no valid profile.
absl::StatusOr<Profile> ReadProfile(const std::string& path);

// Of --profile; nothing if the flag is empty. Errors: ReadProfile.
absl::StatusOr<std::optional<Profile>> KnownProfileFromFlag();

// Lets the agent go by the known profile, or measure. Errors: Agent::Know, Agent::Profile.
absl::Status KnowOrProfile(Agent* agent, const Sample& sample, std::optional<Profile> known);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_PROFILE_FILE_H_
