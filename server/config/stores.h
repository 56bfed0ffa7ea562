// The tiers that plans are kept in: memory, before a file of this server, before a Redis that several
// servers share.
#ifndef STOWAGE_SERVER_CONFIG_STORES_H_
#define STOWAGE_SERVER_CONFIG_STORES_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "server/auth/file_watcher.h"
#include "server/decisions/decision_book.h"
#include "server/entries/entry_keys.h"
#include "server/observe/log.h"
#include "server/observe/server_metrics.h"
#include "server/store/plan_store.h"
#include "server/store/redis_connection.h"
#include "server/store/reported_steps.h"
#include "server/store/solve_lease.h"

namespace stowage {

struct StoreConfig {
  Bytes memory_bytes;
  std::string sqlite_path;   // empty: no file
  std::string state_folder;  // of that file, to be made where it is not there; empty: it is there
  Bytes sqlite_bytes;
  std::string decisions_path;  // of a file of decisions, in a folder as above; empty: no file
  std::optional<RedisAddress> redis;
  std::chrono::nanoseconds redis_timeout{};
  std::chrono::milliseconds redis_time_to_live{};
  std::string redis_prefix;
  std::optional<RedisAddress> decisions_redis;  // with `redis`; none: that one has them
  std::chrono::nanoseconds decisions_redis_timeout{};
  std::string entry_key_file;  // read again and again; empty: none
  EntryKeys::Keys entry_keys;  // that it says at the start
  std::chrono::milliseconds reload_interval = std::chrono::seconds(10);
  int threads = 8;  // that may ask at once, so that none waits for another one's connection
};

struct Stores {
  std::unique_ptr<PlanStore> plans;
  std::unique_ptr<SolveLease> lease;              // null: no other server shares the plans
  std::unique_ptr<ReportedSteps> reported_steps;  // null, as well
  std::unique_ptr<FileWatcher> entry_key_file;
  std::shared_ptr<DecisionBook> decisions;  // what `plans` goes by
};

// Whether everyone who reaches its host may read and write the Redis: it is of another machine, and
// this server shows it neither a password nor a certificate. (Without TLS what goes there is plain text
// also where it has a password.)
bool IsRedisOpen(const RedisAddress& address);

// Whether what administrators decide lies where it may be lost while plans that it is about are not: in
// this process and a Redis that forgets alone.
bool MayLoseDecisions(const StoreConfig& config);

// Each tier counted, and what was decided applied over all (server/decisions). The status of a file
// that cannot be opened, or that another process has; a Redis that is away is no error: it costs hits. FAILED_PRECONDITION:
// that of decisions is not durable (durable_redis.h); one that is away is looked at when it is there, and until it has
// passed nothing is decided.
// A null log is told nothing; it and `metrics` outlive what is opened.
absl::StatusOr<Stores> OpenStores(const StoreConfig& config, ServerMetrics* metrics,
                                  Log* log = nullptr);

}  // namespace stowage

#endif  // STOWAGE_SERVER_CONFIG_STORES_H_
