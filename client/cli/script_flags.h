// The flags of commands that train, for a network of the user's own, and for where to train.
#ifndef STOWAGE_CLIENT_CLI_SCRIPT_FLAGS_H_
#define STOWAGE_CLIENT_CLI_SCRIPT_FLAGS_H_

#include <string>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/status/status.h"
#include "solvers/base/flag_parser.h"

ABSL_DECLARE_FLAG(std::string, script);
ABSL_DECLARE_FLAG(std::string, input);
ABSL_DECLARE_FLAG(std::string, loss);
ABSL_DECLARE_FLAG(std::string, device);

namespace stowage {

// The default and the meaning that --device has where a command trains (Command).
std::vector<FlagValue> TrainingDeviceDefault();
std::vector<FlagValue> TrainingDeviceMeaning();

// INVALID_ARGUMENT that names the first flag which says nothing beside the others: --input without
// --script, or --batch with it, say.
absl::Status CheckScriptFlags();

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_SCRIPT_FLAGS_H_
