// What of the configuration's file holds from its next change on, without a restart: --log_level, and the limits that
// calls are held to (--queue_limit, --max_open_calls, --tenant_share).
//
// The file is looked at every --reload_interval. It is taken as a whole or not at all: a file that a server would not
// start with changes nothing, and the log says why (file_refused). The command line and the environment go before it,
// as at the start. What else it changes waits for the next start: restart_needed in the log, with the flags' names.
#ifndef STOWAGE_SERVER_CONFIG_LIVE_CONFIG_H_
#define STOWAGE_SERVER_CONFIG_LIVE_CONFIG_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/auth/file_watcher.h"
#include "server/config/config.h"
#include "server/config/config_sources.h"
#include "server/observe/log.h"
#include "server/observe/server_metrics.h"
#include "solvers/base/flag_parser.h"

namespace stowage {

// The flags that may change while a server runs.
const std::vector<std::string>& LiveFlagNames();

struct LiveChange {
  LiveConfig config;                      // as it holds now
  std::vector<std::string> need_restart;  // flags whose new values do not hold
};

// Reads all sources again and sets the flags that may change. INVALID_ARGUMENT, with every flag as it was, where a server
// would not start with them. Not thread-safe: nobody else reads flags meanwhile.
absl::StatusOr<LiveChange> ReadAgain(const CommandLine& line, const Environment& environment);

// Watches the file of `sources` and calls `use`, on a thread of its own, with what has come to hold. Null where there is no
// file. The pointers outlive it.
std::unique_ptr<FileWatcher> WatchConfig(const CommandLine& line, const ConfigSources& sources,
                                         std::function<void(const LiveConfig&)> use,
                                         ServerMetrics* metrics, Log* log);

}  // namespace stowage

#endif  // STOWAGE_SERVER_CONFIG_LIVE_CONFIG_H_
