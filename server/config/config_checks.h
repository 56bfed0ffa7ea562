// What the values of the flags must be, each by itself.
#ifndef STOWAGE_SERVER_CONFIG_CONFIG_CHECKS_H_
#define STOWAGE_SERVER_CONFIG_CONFIG_CHECKS_H_

#include <string>

#include "absl/status/status.h"
#include "server/config/config_sources.h"

namespace stowage {

// INVALID_ARGUMENT that says where the flag was set, its value and the rule.
absl::Status FlagError(const ConfigSources& sources, const std::string& flag,
                       const std::string& value, const std::string& rule);

// OK, or an error that says that the folder of the file `path`, which `flag` names, is not there.
absl::Status CheckFolder(const ConfigSources& sources, const std::string& flag,
                         const std::string& value, const std::string& path);

// OK, or the error of the first flag that is not within its bounds.
absl::Status CheckFlags(const ConfigSources& sources);

}  // namespace stowage

#endif  // STOWAGE_SERVER_CONFIG_CONFIG_CHECKS_H_
