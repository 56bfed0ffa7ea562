// Whether the LibTorch that runs is the one that this was built with.
#ifndef STOWAGE_CLIENT_CLI_TORCH_VERSION_H_
#define STOWAGE_CLIENT_CLI_TORCH_VERSION_H_

#include <string>

#include "absl/status/status.h"

namespace stowage {

// `config` is what at::show_config() says, `built_with` a version like "2.11.0". FAILED_PRECONDITION where the
// config names another major or minor version; LibTorch promises no ABI across those. OK where it names none:
// Debian's does not, but its libraries have the version in their names.
absl::Status CheckTorchVersion(const std::string& config, const std::string& built_with);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_TORCH_VERSION_H_
