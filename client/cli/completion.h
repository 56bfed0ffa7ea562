// Scripts by which shells complete command lines of `stowage`, made from its commands and flags.
#ifndef STOWAGE_CLIENT_CLI_COMPLETION_H_
#define STOWAGE_CLIENT_CLI_COMPLETION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/commands.h"

namespace stowage {

// "bash", "zsh", "fish".
const std::vector<std::string>& CompletedShells();

// Offers the commands, the actions of those that have any, each one's flags, and values where they are known.
// Commands that this build cannot run are left out. INVALID_ARGUMENT for another shell.
absl::StatusOr<std::string> CompletionScript(const std::vector<Command>& commands,
                                             const std::string& shell);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_COMPLETION_H_
