#include "server/config/config_store.h"

#include <string>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/auth/file_watcher.h"
#include "server/config/config_checks.h"
#include "server/config/config_flags.h"
#include "server/config/state_folder.h"
#include "server/entries/entry_keys.h"
#include "server/store/redis_keys.h"
#include "server/store/redis_tls.h"

namespace stowage {
namespace {

constexpr char kSqlite[] = "sqlite";
constexpr char kSqliteAt[] = "sqlite:";

// Where the file of plans is; nothing changes for memory alone.
absl::Status ReadStore(const ConfigSources& sources, StoreConfig* config) {
  const std::string store = absl::GetFlag(FLAGS_store);
  if (store == "memory") return absl::OkStatus();
  if (store == kSqlite) {
    const std::optional<std::string> folder = StateFolder(ProcessEnvironment);
    if (!folder) {
      return FlagError(sources, "store", store,
                       "neither STATE_DIRECTORY, XDG_STATE_HOME nor HOME says where the file is to "
                       "be: set --store=sqlite:PATH or --store=memory");
    }
    config->state_folder = *folder;
    config->sqlite_path = *folder + "/plans.db";
    config->decisions_path = *folder + "/decisions.db";
    return absl::OkStatus();
  }
  if (absl::StartsWith(store, kSqliteAt)) config->sqlite_path = store.substr(sizeof(kSqliteAt) - 1);
  if (config->sqlite_path.empty()) {
    return FlagError(sources, "store", store, "must be sqlite, sqlite:PATH or memory");
  }
  config->decisions_path = config->sqlite_path + ".decisions";
  return CheckFolder(sources, "store", store, config->sqlite_path);
}

// Beside the file of plans, unless another one is named.
absl::Status ReadDecisions(const ConfigSources& sources, StoreConfig* config) {
  const std::string file = absl::GetFlag(FLAGS_decisions_file);
  if (file.empty()) return absl::OkStatus();
  if (file == config->sqlite_path) {
    return FlagError(sources, "decisions_file", file, "must not be the file of plans (--store)");
  }
  config->decisions_path = file;
  return CheckFolder(sources, "decisions_file", file, file);
}

// With the files of TLS, if it is of TLS.
absl::Status ReadRedisTls(const ConfigSources& sources, RedisAddress* address) {
  const RedisTlsFiles files{absl::GetFlag(FLAGS_redis_ca), absl::GetFlag(FLAGS_redis_cert),
                            absl::GetFlag(FLAGS_redis_key), absl::GetFlag(FLAGS_redis_server_name)};
  const std::pair<const char*, std::string> named[] = {
      {"redis_ca", files.ca}, {"redis_cert", files.cert}, {"redis_key", files.key}};
  for (const auto& [flag, file] : named) {
    if (file.empty()) continue;
    if (address == nullptr || !address->tls) {
      return FlagError(sources, flag, file, "needs --redis=rediss://");
    }
    if (const auto text = ReadSmallFile(file); !text.ok()) {
      return FlagError(sources, flag, file, std::string(text.status().message()));
    }
  }
  if (files.cert.empty() != files.key.empty()) {
    return FlagError(sources, "redis_cert", files.cert, "and --redis_key need each other");
  }
  const bool is_tls = address != nullptr && address->tls;
  if (!files.server_name.empty() && !is_tls) {
    return FlagError(sources, "redis_server_name", files.server_name, "needs --redis=rediss://");
  }
  if (!is_tls) return absl::OkStatus();
  if (const auto usable = RedisTls::Make(files, "localhost"); !usable.ok()) {
    return FlagError(sources, "redis_ca", files.ca, std::string(usable.status().message()));
  }
  address->tls = files;
  return absl::OkStatus();
}

// What the file of a flag holds, without blanks around it.
absl::StatusOr<std::string> ReadPassword(const ConfigSources& sources, const std::string& flag,
                                         const std::string& file) {
  const absl::StatusOr<std::string> password = ReadSmallFile(file);
  if (!password.ok()) {
    return FlagError(sources, flag, file, std::string(password.status().message()));
  }
  return std::string(absl::StripAsciiWhitespace(*password));
}

// What its sentinels are shown. None of `address`: there is no Redis.
absl::Status ReadSentinels(const ConfigSources& sources, RedisAddress* address) {
  const std::string file = absl::GetFlag(FLAGS_redis_sentinel_password_file);
  const std::string user = absl::GetFlag(FLAGS_redis_sentinel_user);
  if (!user.empty() && file.empty()) {
    return FlagError(sources, "redis_sentinel_user", user, "needs --redis_sentinel_password_file");
  }
  if (file.empty()) return absl::OkStatus();
  if (address == nullptr || address->sentinels.empty()) {
    return FlagError(sources, "redis_sentinel_password_file", file,
                     "needs --redis=redis+sentinel://");
  }
  const auto password = ReadPassword(sources, "redis_sentinel_password_file", file);
  if (!password.ok()) return password.status();
  address->sentinel_user = user;
  address->sentinel_password = *password;
  address->sentinel_password_file = file;
  return absl::OkStatus();
}

absl::StatusOr<std::optional<RedisAddress>> Redis(const ConfigSources& sources) {
  const std::string text = absl::GetFlag(FLAGS_redis);
  const std::string password_file = absl::GetFlag(FLAGS_redis_password_file);
  const std::string user = absl::GetFlag(FLAGS_redis_user);
  if (text.empty() && !password_file.empty()) {
    return FlagError(sources, "redis_password_file", password_file, "needs --redis");
  }
  if (!user.empty() && password_file.empty()) {
    return FlagError(sources, "redis_user", user, "needs --redis_password_file");
  }
  if (text.empty()) {
    absl::Status status = ReadRedisTls(sources, nullptr);
    if (status.ok()) status = ReadSentinels(sources, nullptr);
    if (!status.ok()) return status;
    return std::optional<RedisAddress>();
  }
  absl::StatusOr<RedisAddress> address = ParseRedisAddress(text);
  const auto wrong = [&](const std::string& rule) {
    return FlagError(sources, "redis", WithoutPassword(text), rule);
  };
  if (!address.ok()) return wrong(std::string(address.status().message()));
  if (!address->password.empty() && !password_file.empty()) {
    return wrong("has a password, and --redis_password_file another one: set one of the two");
  }
  if (!address->user.empty() && !user.empty()) {
    return wrong("has a user, and --redis_user another one: set one of the two");
  }
  if (!address->user.empty() && address->password.empty() && password_file.empty()) {
    return wrong("has a user without a password: needs --redis_password_file, or USER:PASSWORD@");
  }
  if (!password_file.empty()) {
    const auto password = ReadPassword(sources, "redis_password_file", password_file);
    if (!password.ok()) return password.status();
    address->password = *password;
    address->password_file = password_file;
  }
  if (!user.empty()) address->user = user;
  absl::Status status = ReadRedisTls(sources, &*address);
  if (status.ok()) status = ReadSentinels(sources, &*address);
  if (!status.ok()) return status;
  return std::optional<RedisAddress>(*std::move(address));
}

// The keys of what is shared, if there are any.
absl::Status ReadEntryKeys(const ConfigSources& sources, StoreConfig* config) {
  const std::string file = absl::GetFlag(FLAGS_entry_key_file);
  if (file.empty()) return absl::OkStatus();
  const auto wrong = [&](absl::string_view rule) {
    return FlagError(sources, "entry_key_file", file, std::string(rule));
  };
  if (!config->redis) return wrong("needs --redis");
  const absl::StatusOr<std::string> text = ReadSmallFile(file);
  auto keys = text.ok() ? EntryKeys::Parse(file, *text) : text.status();
  if (!keys.ok()) return wrong(keys.status().message());
  config->entry_key_file = file;
  config->entry_keys = *std::move(keys);
  config->reload_interval = absl::ToChronoMilliseconds(absl::GetFlag(FLAGS_reload_interval));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<StoreConfig> StoreConfigFromFlags(const ConfigSources& sources) {
  StoreConfig config;
  if (absl::Status status = ReadStore(sources, &config); !status.ok()) return status;
  if (absl::Status status = ReadDecisions(sources, &config); !status.ok()) return status;
  absl::StatusOr<std::optional<RedisAddress>> redis = Redis(sources);
  if (!redis.ok()) return redis.status();
  config.memory_bytes = Bytes(absl::GetFlag(FLAGS_cache_bytes));
  config.sqlite_bytes = Bytes(absl::GetFlag(FLAGS_sqlite_bytes));
  config.redis = *std::move(redis);
  if (absl::Status status = ReadEntryKeys(sources, &config); !status.ok()) return status;
  config.redis_timeout = absl::ToChronoNanoseconds(absl::GetFlag(FLAGS_redis_timeout));
  config.redis_time_to_live = absl::ToChronoMilliseconds(absl::GetFlag(FLAGS_redis_ttl));
  config.redis_prefix = absl::GetFlag(FLAGS_redis_prefix);
  if (!IsRedisPrefix(config.redis_prefix)) {
    return FlagError(sources, "redis_prefix", config.redis_prefix,
                     "must be 1 to 64 letters, digits, '_', '-', '.' or ':'");
  }
  return config;
}

}  // namespace stowage
