// Where the configuration comes from, in one order: the command line goes before the environment,
// the environment before the file, the file before the defaults.
//
//   --queue_limit=64          the command line; of two the last
//   STOWAGED_QUEUE_LIMIT=64   the environment; variables that name no flag are not looked at, for
//                             orchestrators put some there that begin alike
//   queue_limit = 64          the file that --config or STOWAGED_CONFIG names
//
// Lines of the file are blank, or comments from a # at their start or after a blank, or NAME =
// VALUE. A name that is unknown or comes twice is an error, and so is, wherever it comes from, a value
// that such a line cannot hold.
#ifndef STOWAGE_SERVER_CONFIG_CONFIG_SOURCES_H_
#define STOWAGE_SERVER_CONFIG_CONFIG_SOURCES_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/base/flag_parser.h"

namespace stowage {

// The value of an environment variable, if it is set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<std::string> ProcessEnvironment(const std::string& name);

class ConfigSources {
 public:
  // Sets the flags. INVALID_ARGUMENT that says where the mistake is; every value is read, also one
  // that another source goes before. Not thread-safe.
  static absl::StatusOr<ConfigSources> Apply(const CommandLine& line,
                                             const Environment& environment);

  // How an error names a flag: "--listen", "STOWAGED_LISTEN" or "stowaged.conf:3: listen".
  std::string Describe(const std::string& flag) const;

  // The file that was read and its text; empty where there is none.
  const std::string& file() const { return file_; }
  const std::string& file_text() const { return file_text_; }

  // "command line", "STOWAGED_LISTEN", "stowaged.conf:3" or "default".
  std::string Origin(const std::string& flag) const;

 private:
  struct Place {
    std::string described;
    std::string origin;
  };

  absl::Status ApplyFile(const std::string& path);
  absl::Status Set(const FlagValue& flag, const Place& place);

  std::string file_, file_text_;
  std::map<std::string, Place> places_;
};

// "STOWAGED_QUEUE_LIMIT" of "queue_limit".
std::string EnvironmentName(const std::string& flag);

// All flags with their values and origins, as a file that ApplyFile reads; with *** for a password in
// --redis or --decisions_redis.
std::string EffectiveConfig(const ConfigSources& sources);

}  // namespace stowage

#endif  // STOWAGE_SERVER_CONFIG_CONFIG_SOURCES_H_
