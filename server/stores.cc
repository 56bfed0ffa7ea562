#include "server/stores.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/cache/memory_plan_store.h"
#include "server/cache/metrics_plan_store.h"
#include "server/cache/redis_plan_store.h"
#include "server/cache/redis_pool.h"
#include "server/cache/redis_solve_lease.h"
#include "server/cache/sqlite_plan_store.h"
#include "server/cache/tiered_plan_store.h"
#include "server/rpc/tls_credentials.h"
#include "server/state_folder.h"

namespace stowage {
namespace {

// How late a change by another server may be seen, per tier in front of Redis.
constexpr std::chrono::seconds kFreshness{5};

// Of the file; more would wait for the disk, and each has a cache of its own.
constexpr int kMostReaders = 8;

std::unique_ptr<PlanStore> Counted(std::unique_ptr<PlanStore> store, CacheTier tier,
                                   ServerMetrics* metrics) {
  return std::make_unique<MetricsPlanStore>(std::move(store), tier, metrics);
}

Stores Redis(const StoreConfig& config, ServerMetrics* metrics) {
  RedisOptions connections;
  connections.address = *config.redis;
  connections.timeout = config.redis_timeout;
  connections.connections = config.threads + 1;  // and the lease's own thread
  RedisStoreOptions options;
  options.time_to_live = config.redis_time_to_live;
  options.prefix = config.redis_prefix;
  RedisLeaseOptions lease;
  lease.prefix = config.redis_prefix;
  auto pool = std::make_shared<RedisPool>(connections);
  return {
      Counted(std::make_unique<RedisPlanStore>(options, pool, metrics), CacheTier::kRedis, metrics),
      std::make_unique<RedisSolveLease>(lease, pool)};
}

absl::StatusOr<std::unique_ptr<PlanStore>> File(const StoreConfig& config, ServerMetrics* metrics) {
  absl::Status made;
  if (!config.state_folder.empty()) made = MakeStateFolder(config.state_folder);
  SqlitePlanStore::Options options;
  options.file.path = config.sqlite_path;
  options.file.readers = std::min(config.threads, kMostReaders);
  options.max_bytes = config.sqlite_bytes;
  auto file = made.ok() ? SqlitePlanStore::Open(std::move(options), metrics) : made;
  if (file.ok()) return Counted(*std::move(file), CacheTier::kSqlite, metrics);
  if (config.state_folder.empty()) return file.status();
  // Nobody has chosen this file: two servers of one user meet here, or a user who has no home.
  return absl::Status(
      file.status().code(),
      absl::StrCat(file.status().message(), "; ", config.sqlite_path, " is what --store=sqlite, ",
                   "the default, means here: set --store=sqlite:PATH or --store=memory"));
}

}  // namespace

bool IsRedisOpen(const StoreConfig& config) {
  if (!config.redis || config.redis->port == 0 || !config.redis->password.empty()) return false;
  const std::string& host = config.redis->host_or_path;
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return !IsLocalAddress(is_ipv6 ? absl::StrCat("[", host, "]:0") : absl::StrCat(host, ":0"));
}

absl::StatusOr<Stores> OpenStores(const StoreConfig& config, ServerMetrics* metrics) {
  std::optional<std::chrono::nanoseconds> freshness;
  Stores stores;
  if (config.redis) {
    stores = Redis(config, metrics);
    freshness = kFreshness;
  }
  std::unique_ptr<PlanStore>& store = stores.plans;
  const auto put_before = [&store, &freshness](std::unique_ptr<PlanStore> fast) {
    store = store ? std::make_unique<TieredPlanStore>(std::move(fast), std::move(store), freshness)
                  : std::move(fast);
  };
  if (!config.sqlite_path.empty()) {
    auto file = File(config, metrics);
    if (!file.ok()) return file.status();
    put_before(*std::move(file));
  }
  put_before(
      Counted(std::make_unique<MemoryPlanStore>(config.memory_bytes), CacheTier::kMemory, metrics));
  return stores;
}

}  // namespace stowage
