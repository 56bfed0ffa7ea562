#include "server/config/stores.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/auth/tls_credentials.h"
#include "server/config/state_folder.h"
#include "server/decisions/decided_plan_store.h"
#include "server/decisions/decision_book.h"
#include "server/decisions/decision_store.h"
#include "server/decisions/durable_redis.h"
#include "server/decisions/shared_decisions.h"
#include "server/store/memory_plan_store.h"
#include "server/store/metrics_plan_store.h"
#include "server/store/redis_client.h"
#include "server/store/redis_plan_store.h"
#include "server/store/redis_reported_steps.h"
#include "server/store/redis_solve_lease.h"
#include "server/store/sqlite_plan_store.h"
#include "server/store/tiered_plan_store.h"

namespace stowage {
namespace {

// How late a change by another server may be seen, per tier in front of Redis.
constexpr std::chrono::seconds kFreshness{5};

// Of a look at the Redis of decisions before the server serves.
constexpr std::chrono::seconds kStartPatience{5};

// Of the file; more would wait for the disk, and each has a cache of its own.
constexpr int kMostReaders = 8;

std::unique_ptr<PlanStore> Counted(std::unique_ptr<PlanStore> store, CacheTier tier,
                                   ServerMetrics* metrics) {
  return std::make_unique<MetricsPlanStore>(std::move(store), tier, metrics);
}

std::shared_ptr<RedisClient> Client(const StoreConfig& config, ServerMetrics* metrics, Log* log) {
  if (!config.redis) return nullptr;
  RedisOptions connections;
  connections.address = *config.redis;
  connections.timeout = config.redis_timeout;
  connections.connections = config.threads + 1;  // and the lease's own thread
  connections.metrics = metrics;
  connections.log = log;
  return MakeRedisClient(connections);
}

// With patience: nobody waits yet. One that is away is looked at when it is there.
absl::Status CheckAtStart(RedisOptions connections) {
  connections.timeout = std::max<std::chrono::nanoseconds>(connections.timeout, kStartPatience);
  connections.metrics = nullptr;
  connections.log = nullptr;
  const absl::Status status = MakeRedisClient(connections)->Ping();
  if (!absl::IsFailedPrecondition(status)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("--decisions_redis: ", status.message()));
}

// What decisions are exchanged in: a Redis of their own, or that of the plans, if there is one.
absl::StatusOr<std::shared_ptr<RedisClient>> DecisionsClient(
    const StoreConfig& config, const std::shared_ptr<RedisClient>& plans, ServerMetrics* metrics,
    Log* log) {
  if (!config.decisions_redis) return plans;
  RedisOptions connections;
  connections.address = *config.decisions_redis;
  connections.timeout = config.decisions_redis_timeout;
  connections.connections = config.threads + 1;  // and the book's own thread
  connections.metrics = metrics;
  connections.log = log;
  connections.use = RedisUse::kDecisions;
  connections.check = CheckDurable;
  if (absl::Status status = CheckAtStart(connections); !status.ok()) return status;
  return MakeRedisClient(connections);
}

// Null where there is no file of them.
std::shared_ptr<EntryKeys> EntryKeysOf(const StoreConfig& config) {
  return config.entry_keys.empty() ? nullptr : std::make_shared<EntryKeys>(config.entry_keys);
}

// Has new keys hold as they come.
std::unique_ptr<FileWatcher> Watched(const StoreConfig& config,
                                     const std::shared_ptr<EntryKeys>& keys, ServerMetrics* metrics,
                                     Log* log) {
  const std::string path = config.entry_key_file;
  const auto use = [path, keys](const std::string& text) {
    absl::StatusOr<EntryKeys::Keys> parsed = EntryKeys::Parse(path, text);
    if (parsed.ok()) keys->Set(*std::move(parsed));
    return parsed.status();
  };
  const absl::StatusOr<std::string> now = ReadSmallFile(path);
  // What it says now may be other than what was read with the flags.
  if (now.ok()) use(*now).IgnoreError();
  return std::make_unique<FileWatcher>(
      WatchedFile{path, [path] { return ReadSmallFile(path); }, use}, now.value_or(""),
      config.reload_interval, metrics, log);
}

Stores Redis(const StoreConfig& config, const std::shared_ptr<RedisClient>& redis,
             const std::shared_ptr<const EntryKeys>& keys,
             const std::shared_ptr<DecisionBook>& book, ServerMetrics* metrics) {
  RedisStoreOptions options;
  options.time_to_live = config.redis_time_to_live;
  options.prefix = config.redis_prefix;
  options.keys = keys;
  RedisLeaseOptions lease;
  lease.prefix = config.redis_prefix;
  lease.keyed = keys != nullptr;
  auto plans = Counted(std::make_unique<RedisPlanStore>(options, redis, metrics), CacheTier::kRedis,
                       metrics);
  return {std::make_unique<ComparingPlanStore>(std::move(plans), book),
          std::make_unique<RedisSolveLease>(lease, redis),
          std::make_unique<RedisReportedSteps>(
              RedisKeys(config.redis_prefix, keys != nullptr, redis->is_cluster()), redis),
          nullptr, book};
}

absl::Status MakeFolder(const StoreConfig& config) {
  return config.state_folder.empty() ? absl::OkStatus() : MakeStateFolder(config.state_folder);
}

// Nobody has chosen the file: two servers of one user meet here, or a user who has no home.
absl::Status WithAdvice(const StoreConfig& config, const absl::Status& status) {
  if (config.state_folder.empty()) return status;
  return absl::Status(
      status.code(),
      absl::StrCat(status.message(), "; ", config.sqlite_path, " is what --store=sqlite, ",
                   "the default, means here: set --store=sqlite:PATH or --store=memory"));
}

absl::StatusOr<std::shared_ptr<DecisionBook>> Decisions(
    const StoreConfig& config, const std::shared_ptr<RedisClient>& redis,
    const std::shared_ptr<const EntryKeys>& keys, ServerMetrics* metrics) {
  std::unique_ptr<DecisionStore> own = std::make_unique<MemoryDecisionStore>();
  if (!config.decisions_path.empty()) {
    auto file = SqliteDecisionStore::Open(config.decisions_path);
    if (!file.ok()) return file.status();
    own = *std::move(file);
  }
  std::unique_ptr<SharedDecisions> shared;
  if (redis) shared = std::make_unique<RedisDecisions>(config.redis_prefix, redis, metrics, keys);
  auto book = DecisionBook::Open(std::move(own), std::move(shared), metrics, kFreshness);
  if (!book.ok()) return book.status();
  return std::shared_ptr<DecisionBook>(*std::move(book));
}

absl::StatusOr<std::unique_ptr<PlanStore>> File(const StoreConfig& config, ServerMetrics* metrics) {
  SqlitePlanStore::Options options;
  options.file.path = config.sqlite_path;
  options.file.readers = std::min(config.threads, kMostReaders);
  options.max_bytes = config.sqlite_bytes;
  auto file = SqlitePlanStore::Open(std::move(options), metrics);
  if (!file.ok()) return file.status();
  return Counted(*std::move(file), CacheTier::kSqlite, metrics);
}

}  // namespace

bool IsRedisOpen(const RedisAddress& address) {
  if (!address.password.empty()) return false;
  if (address.tls && !address.tls->cert.empty()) return false;
  const std::vector<RedisHost> hosts = HostsOf(address);
  return !std::all_of(hosts.begin(), hosts.end(), [](const RedisHost& host) {
    const bool is_ipv6 = host.host.find(':') != std::string::npos;
    return IsLocalAddress(is_ipv6 ? absl::StrCat("[", host.host, "]:0")
                                  : absl::StrCat(host.host, ":0"));
  });
}

bool MayLoseDecisions(const StoreConfig& config) {
  return config.redis && !config.decisions_redis && config.decisions_path.empty();
}

absl::StatusOr<Stores> OpenStores(const StoreConfig& config, ServerMetrics* metrics, Log* log) {
  if (absl::Status made = MakeFolder(config); !made.ok()) return WithAdvice(config, made);
  const std::shared_ptr<RedisClient> redis = Client(config, metrics, log);
  std::unique_ptr<PlanStore> file;
  if (!config.sqlite_path.empty()) {
    auto opened = File(config, metrics);
    if (!opened.ok()) return WithAdvice(config, opened.status());
    file = *std::move(opened);
  }
  const std::shared_ptr<EntryKeys> keys = redis ? EntryKeysOf(config) : nullptr;
  const auto exchange = DecisionsClient(config, redis, metrics, log);
  if (!exchange.ok()) return exchange.status();
  const auto book = Decisions(config, *exchange, keys, metrics);
  if (!book.ok()) return book.status();
  std::optional<std::chrono::nanoseconds> freshness;
  Stores stores;
  if (redis) {
    stores = Redis(config, redis, keys, *book, metrics);
    if (keys) stores.entry_key_file = Watched(config, keys, metrics, log);
    freshness = kFreshness;
  }
  std::unique_ptr<PlanStore>& store = stores.plans;
  const auto put_before = [&store, &freshness](std::unique_ptr<PlanStore> fast) {
    store = store ? std::make_unique<TieredPlanStore>(std::move(fast), std::move(store), freshness)
                  : std::move(fast);
  };
  if (file) put_before(std::move(file));
  put_before(
      Counted(std::make_unique<MemoryPlanStore>(config.memory_bytes), CacheTier::kMemory, metrics));
  store = std::make_unique<DecidedPlanStore>(std::move(store), *book);
  stores.decisions = *book;
  return stores;
}

}  // namespace stowage
