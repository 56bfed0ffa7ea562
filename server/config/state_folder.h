// The folder of what outlives a server when nobody says where.
#ifndef STOWAGE_SERVER_CONFIG_STATE_FOLDER_H_
#define STOWAGE_SERVER_CONFIG_STATE_FOLDER_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "server/config/config_sources.h"

namespace stowage {

// $STATE_DIRECTORY, which systemd sets (the first of several), else $XDG_STATE_HOME/stowage, else
// $HOME/.local/state/stowage. Values that are no absolute path are passed over. Nothing without one.
std::optional<std::string> StateFolder(const Environment& environment);

// The folder, and those above it that are not there, for this user alone (mode 0700); what is there
// stays as it is. UNAVAILABLE with the reason.
absl::Status MakeStateFolder(const std::string& folder);

}  // namespace stowage

#endif  // STOWAGE_SERVER_CONFIG_STATE_FOLDER_H_
