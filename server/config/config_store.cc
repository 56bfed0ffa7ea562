#include "server/config/config_store.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/auth/file_watcher.h"
#include "server/config/config_checks.h"
#include "server/config/config_flags.h"
#include "server/config/config_redis.h"
#include "server/config/state_folder.h"
#include "server/entries/entry_keys.h"
#include "server/store/redis_address.h"
#include "server/store/redis_keys.h"

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

// Both Redis that there may be. Decisions are exchanged when the plans that servers share are asked for.
absl::Status ReadRedis(const ConfigSources& sources, StoreConfig* config) {
  absl::StatusOr<std::optional<RedisAddress>> plans = RedisFromFlags(sources, PlansRedisFlags());
  if (!plans.ok()) return plans.status();
  const RedisFlags flags = DecisionsRedisFlags();
  absl::StatusOr<std::optional<RedisAddress>> decisions = RedisFromFlags(sources, flags);
  if (!decisions.ok()) return decisions.status();
  if (decisions->has_value() && !plans->has_value()) {
    return FlagError(sources, flags.name, WithoutPassword(flags.address), "needs --redis");
  }
  config->redis = *std::move(plans);
  config->decisions_redis = *std::move(decisions);
  return absl::OkStatus();
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
  if (absl::Status status = ReadRedis(sources, &config); !status.ok()) return status;
  config.memory_bytes = Bytes(absl::GetFlag(FLAGS_cache_bytes));
  config.sqlite_bytes = Bytes(absl::GetFlag(FLAGS_sqlite_bytes));
  if (absl::Status status = ReadEntryKeys(sources, &config); !status.ok()) return status;
  config.redis_timeout = absl::ToChronoNanoseconds(absl::GetFlag(FLAGS_redis_timeout));
  config.decisions_redis_timeout =
      absl::ToChronoNanoseconds(absl::GetFlag(FLAGS_decisions_redis_timeout));
  config.redis_time_to_live = absl::ToChronoMilliseconds(absl::GetFlag(FLAGS_redis_ttl));
  config.redis_prefix = absl::GetFlag(FLAGS_redis_prefix);
  if (!IsRedisPrefix(config.redis_prefix)) {
    return FlagError(sources, "redis_prefix", config.redis_prefix,
                     "must be 1 to 64 letters, digits, '_', '-', '.' or ':'");
  }
  return config;
}

}  // namespace stowage
