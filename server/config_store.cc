#include "server/config_store.h"

#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "server/cache/redis_keys.h"
#include "server/config_checks.h"
#include "server/config_flags.h"
#include "server/rpc/file_watcher.h"

namespace stowage {
namespace {

constexpr char kSqlite[] = "sqlite:";

// The path of the file; "" for memory alone.
absl::StatusOr<std::string> SqlitePath(const ConfigSources& sources) {
  const std::string store = absl::GetFlag(FLAGS_store);
  if (store == "memory") return std::string();
  const std::string path =
      absl::StartsWith(store, kSqlite) ? store.substr(sizeof(kSqlite) - 1) : "";
  if (path.empty()) return FlagError(sources, "store", store, "must be memory or sqlite:PATH");
  if (absl::Status folder = CheckFolder(sources, "store", store, path); !folder.ok()) return folder;
  return path;
}

absl::StatusOr<std::optional<RedisAddress>> Redis(const ConfigSources& sources) {
  const std::string text = absl::GetFlag(FLAGS_redis);
  const std::string password_file = absl::GetFlag(FLAGS_redis_password_file);
  if (text.empty() && password_file.empty()) return std::optional<RedisAddress>();
  if (text.empty()) {
    return FlagError(sources, "redis_password_file", password_file, "needs --redis");
  }
  absl::StatusOr<RedisAddress> address = ParseRedisAddress(text);
  if (!address.ok()) {
    return FlagError(sources, "redis", text, std::string(address.status().message()));
  }
  if (!password_file.empty()) {
    const absl::StatusOr<std::string> password = ReadSmallFile(password_file);
    if (!password.ok()) {
      return FlagError(sources, "redis_password_file", password_file,
                       std::string(password.status().message()));
    }
    address->password = std::string(absl::StripAsciiWhitespace(*password));
  }
  return std::optional<RedisAddress>(*std::move(address));
}

}  // namespace

absl::StatusOr<StoreConfig> StoreConfigFromFlags(const ConfigSources& sources) {
  const absl::StatusOr<std::string> path = SqlitePath(sources);
  if (!path.ok()) return path.status();
  absl::StatusOr<std::optional<RedisAddress>> redis = Redis(sources);
  if (!redis.ok()) return redis.status();
  StoreConfig config;
  config.memory_bytes = Bytes(absl::GetFlag(FLAGS_cache_bytes));
  config.sqlite_path = *path;
  config.sqlite_bytes = Bytes(absl::GetFlag(FLAGS_sqlite_bytes));
  config.redis = *std::move(redis);
  config.redis_prefix = absl::GetFlag(FLAGS_redis_prefix);
  if (!IsRedisPrefix(config.redis_prefix)) {
    return FlagError(sources, "redis_prefix", config.redis_prefix,
                     "must be 1 to 64 letters, digits, '_', '-', '.' or ':'");
  }
  return config;
}

}  // namespace stowage
