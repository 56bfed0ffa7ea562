#ifndef STOWAGE_CLIENT_CLI_PROFILE_FILE_H_
#define STOWAGE_CLIENT_CLI_PROFILE_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "solvers/model/problem.h"

namespace stowage {

// What `stowage profile --out` wrote. INVALID_ARGUMENT: it cannot be read, or is no valid profile.
absl::StatusOr<Profile> ReadProfile(const std::string& path);

// Of --profile. INVALID_ARGUMENT if the flag is empty, too.
absl::StatusOr<Profile> ProfileFromFlag();

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_PROFILE_FILE_H_
