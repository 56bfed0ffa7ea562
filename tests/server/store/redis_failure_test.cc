// What a Redis that fails in every way costs: hits, and at most its time-out.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "server/store/memory_plan_store.h"
#include "server/store/redis_keys.h"
#include "server/store/redis_plan_store.h"
#include "server/store/tiered_plan_store.h"
#include "tests/server/store/entries.h"
#include "tests/server/store/redis_server.h"
#include "tests/server/store/sqlite_files.h"
#include "tests/server/support/counting_metrics.h"
#include "tests/server/support/forwarding_store.h"
#include "tests/support/temporary_folder.h"

namespace stowage::testing {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kFreshness{20};
// The quickest of several calls takes no longer than this beyond the time-out; each of them, on a
// busy machine, no longer than that.
const milliseconds kTimeout = std::chrono::duration_cast<milliseconds>(RedisOptions{}.timeout);
constexpr milliseconds kSlack{45};  // less than a second time-out
constexpr milliseconds kBusy{2000};
const PlanKey kKey = KeyOf("a");

const bool kSkips = (SkipWithoutRedis(), true);

// One of our servers, with its memory, at a Redis.
struct Node {
  explicit Node(const RedisOptions& options) : pool(std::make_shared<RedisPool>(options)) {
    auto redis_store = std::make_unique<RedisPlanStore>(RedisStoreOptions{}, pool, &metrics);
    redis = redis_store.get();
    tiers = std::make_unique<TieredPlanStore>(std::make_unique<MemoryPlanStore>(Bytes(64 << 20)),
                                              std::move(redis_store), kFreshness);
  }
  int64_t Failures(CacheFailure failure) const {
    return metrics.cache_failures[static_cast<size_t>(failure)];
  }
  int64_t Generation() const {
    const auto entry = tiers->Get(kKey, Access::kLookup);
    return entry ? entry->generation : -1;
  }

  CountingMetrics metrics;
  std::shared_ptr<RedisPool> pool;
  RedisPlanStore* redis;
  std::unique_ptr<TieredPlanStore> tiers;
};

Clock::duration TimeOf(const std::function<void()>& call) {
  const Clock::time_point start = Clock::now();
  call();
  return Clock::now() - start;
}

void GrowStale() { std::this_thread::sleep_for(kFreshness + milliseconds(5)); }

// Until the pool lets a probe pass and it succeeds.
bool ComesBack(RedisPool* pool) {
  const Clock::time_point patience = Clock::now() + std::chrono::seconds(30);
  while (!pool->Ping().ok()) {
    if (Clock::now() > patience) return false;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return true;
}

// Counts entries that a store gives as other objects than those that are held.
class DecodingCounter final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  PlanAnswer Look(const PlanKey& key, Access access) override {
    return LookAgain(key, access, nullptr);
  }
  PlanAnswer LookAgain(const PlanKey& key, Access access,
                       const std::shared_ptr<const PlanEntry>& held) override {
    PlanAnswer answer = LookAgainThere(key, access, held);
    if (answer.entry && answer.entry != held) ++others;
    return answer;
  }

  std::atomic<int> others{0};
};

class RedisFailure : public ::testing::Test {
 protected:
  // As in production.
  RedisOptions Impatient() const {
    RedisOptions options;
    options.address = server_.address();
    return options;
  }

  RedisServer server_;
  Node node_{server_.options()};
};

TEST_F(RedisFailure, KilledCostsNoTimeAndNoAnswer) {
  const Node node(Impatient());
  ASSERT_TRUE(node.tiers->Put(kKey, EntryOf("a")).ok());
  server_.Kill();
  Clock::duration least = kBusy;
  for (int i = 0; i < 10; ++i) {
    GrowStale();
    const auto took = TimeOf([&node] { EXPECT_EQ(node.Generation(), 1); });
    EXPECT_LT(took, kBusy);
    least = std::min(least, took);
  }
  EXPECT_LT(least, milliseconds(1));
  EXPECT_EQ(node.redis->Look(kKey, Access::kLookup).absence, Absence::kFailed);
  EXPECT_TRUE(node.tiers->Put(kKey, EntryOf("a", 0, 2)).ok());
  EXPECT_EQ(node.Generation(), 2);
  EXPECT_GT(node.Failures(CacheFailure::kUnavailable), 0);
}

TEST_F(RedisFailure, TheLogSaysOnceThatItIsLeftAloneAndWhy) {
  std::string lines;
  {
    Log log(LogLevel::kInfo, [&lines](const std::string& text) { lines += text; });
    RedisOptions options = server_.options();
    options.log = &log;
    RedisPool pool(options);
    server_.Kill();
    for (int i = 0; i < 10; ++i) pool.Run({{"GET", "x"}}).status().IgnoreError();
    server_.Start();
    const Clock::time_point patience = Clock::now() + std::chrono::seconds(30);
    while (!pool.Run({{"GET", "x"}}).ok() && Clock::now() < patience) {
      std::this_thread::sleep_for(milliseconds(10));
    }
  }
  const size_t away = lines.find("redis_away");
  ASSERT_NE(away, std::string::npos) << lines;
  EXPECT_NE(lines.find("cannot connect to Redis", away), std::string::npos) << lines;
  EXPECT_NE(lines.find("redis_back", away), std::string::npos) << lines;
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2) << lines;
}

TEST_F(RedisFailure, MetricsSayWhichRedisIsLeftAlone) {
  CountingMetrics metrics;
  const auto rests = [&metrics](RedisUse use) {
    return metrics.redis_resting[static_cast<size_t>(use)].load();
  };
  for (const RedisUse use : {RedisUse::kCache, RedisUse::kDecisions}) {
    const RedisUse other = use == RedisUse::kCache ? RedisUse::kDecisions : RedisUse::kCache;
    const RedisServer that_answers;
    RedisOptions of_other = that_answers.options();
    of_other.metrics = &metrics;
    of_other.use = other;
    RedisOptions options = server_.options();
    options.metrics = &metrics;
    options.use = use;
    RedisPool pool(options), other_pool(of_other);
    server_.Kill();
    for (int i = 0; i < BreakerOptions{}.failures; ++i) EXPECT_FALSE(pool.Ping().ok());
    EXPECT_TRUE(other_pool.Ping().ok());
    EXPECT_TRUE(rests(use));
    EXPECT_FALSE(rests(other));
    server_.Start();
    ASSERT_TRUE(ComesBack(&pool));
    EXPECT_FALSE(rests(use));
  }
}

TEST_F(RedisFailure, AListWithoutRedisIsAnErrorAndNotAShorterOne) {
  ASSERT_TRUE(node_.tiers->Put(kKey, EntryOf("a", 0, 1, "us")).ok());
  server_.Kill();
  EXPECT_TRUE(absl::IsUnavailable(node_.tiers->List(std::nullopt, 10).status()));
  EXPECT_TRUE(absl::IsUnavailable(node_.tiers->ListOf("us", std::nullopt, 10).status()));
  server_.Start();
  ASSERT_TRUE(ComesBack(node_.pool.get()));
  EXPECT_TRUE(node_.tiers->List(std::nullopt, 10).ok());
}

TEST_F(RedisFailure, FrozenCostsItsTimeoutThreeTimesAndThenNothing) {
  ASSERT_TRUE(node_.redis->Put(kKey, EntryOf("a")).ok());
  const Node node(Impatient());
  server_.Freeze();
  const auto get = [&node] { EXPECT_EQ(node.redis->Get(kKey, Access::kLookup), nullptr); };
  Clock::duration least = kBusy;
  for (int i = 0; i < BreakerOptions{}.failures; ++i) {
    const auto took = TimeOf(get);
    EXPECT_GE(took, kTimeout - milliseconds(1));
    EXPECT_LT(took, kBusy);
    least = std::min(least, took);
  }
  EXPECT_LT(least, kTimeout + kSlack);
  EXPECT_TRUE(node.pool->resting());
  for (int i = 0; i < 100; ++i) least = std::min(least, TimeOf(get));
  EXPECT_LT(least, milliseconds(1));
  server_.Thaw();
  ASSERT_TRUE(ComesBack(node.pool.get()));
  EXPECT_NE(node_.redis->Get(kKey, Access::kLookup), nullptr);
}

TEST_F(RedisFailure, ManyThreadsAtAFrozenServerWaitAndGoOn) {
  ASSERT_TRUE(node_.redis->Put(kKey, EntryOf("a")).ok());
  const Node node(Impatient());
  server_.Freeze();
  std::vector<std::thread> threads;
  for (int t = 0; t < 24; ++t) {  // more than there are connections
    threads.emplace_back(
        [&node] { EXPECT_LT(TimeOf([&node] { node.redis->Get(kKey, Access::kLookup); }), kBusy); });
  }
  for (std::thread& thread : threads) thread.join();
  server_.Thaw();
  ASSERT_TRUE(ComesBack(node.pool.get()));
  for (int i = 0; i < 20; ++i) {
    const auto entry = node.redis->Get(kKey, Access::kLookup);
    if (!entry) {
      ASSERT_TRUE(ComesBack(node.pool.get()));
    }
    EXPECT_TRUE(entry == nullptr || entry->canonical == "a") << "a late reply was taken";
  }
  EXPECT_EQ(node.Failures(CacheFailure::kCorrupt), 0) << "a late reply was taken";
}

// Waiting for a connection of ours is no failure of Redis.
TEST_F(RedisFailure, ConnectionsThatAreAllInUseOpenNoBreaker) {
  RedisOptions options = server_.options();
  options.connections = 0;  // as if others had them all
  options.timeout = milliseconds(1);
  RedisPool pool(options);
  for (int i = 0; i < 2 * BreakerOptions{}.failures; ++i) {
    EXPECT_TRUE(absl::IsUnavailable(pool.Ping()));
  }
  EXPECT_FALSE(pool.resting());
}

// What another server did not change is not read again to find that out.
TEST_F(RedisFailure, ARefreshMovesNoEntryThatIsTheSame) {
  const auto sent = [this] {
    const std::string info = server_.Ask({"INFO", "stats"}).text;
    const std::string name = "total_net_output_bytes:";
    return std::stoll(info.substr(info.find(name) + name.size()));
  };
  constexpr int64_t kLarge = 1 << 20;
  const Node other(server_.options());
  ASSERT_TRUE(other.tiers->Put(kKey, EntryOf("a", kLarge)).ok());
  const auto held = node_.tiers->Get(kKey, Access::kLookup);
  ASSERT_NE(held, nullptr);
  const int64_t before = sent();
  for (int i = 0; i < 5; ++i) {
    GrowStale();
    EXPECT_EQ(node_.tiers->Get(kKey, Access::kLookup), held);
    EXPECT_EQ(other.Generation(), 1) << "which has written it";
  }
  EXPECT_LT(sent() - before, kLarge / 4);
  // What changed is read, whether its generation tells or not.
  ASSERT_TRUE(other.tiers->Replace(kKey, 1, EntryOf("a", 10, 2), Durability::kRequired).ok());
  GrowStale();
  EXPECT_EQ(node_.Generation(), 2);
  server_.Ask({"DEL", RedisKeys("stowage").Plan(kKey)});
  ASSERT_TRUE(Node(server_.options()).redis->Put(kKey, EntryOf("a", 77, 2)).ok());
  GrowStale();
  const auto found = node_.tiers->Get(kKey, Access::kLookup);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->plans[0].plan->explanation.size(), 77u);
}

// The same where a file lies between memory and Redis, and after a restart, when the file's entries are objects
// that Redis has never seen.
TEST_F(RedisFailure, ARefreshThroughAFileMovesNoEntryThatIsTheSame) {
  const auto sent = [this] {
    const std::string info = server_.Ask({"INFO", "stats"}).text;
    const std::string name = "total_net_output_bytes:";
    return std::stoll(info.substr(info.find(name) + name.size()));
  };
  constexpr int64_t kLarge = 1 << 20;
  const TemporaryFolder folder;
  CountingMetrics metrics;
  DecodingCounter* file = nullptr;
  const auto open = [&] {
    auto counted = std::make_unique<DecodingCounter>(MustOpen(folder / "plans", &metrics));
    file = counted.get();
    auto redis = std::make_unique<RedisPlanStore>(
        RedisStoreOptions{}, std::make_shared<RedisPool>(server_.options()), &metrics);
    return std::make_unique<TieredPlanStore>(
        std::make_unique<MemoryPlanStore>(Bytes(64 << 20)),
        std::make_unique<TieredPlanStore>(std::move(counted), std::move(redis), kFreshness),
        kFreshness);
  };
  auto tiers = open();
  ASSERT_TRUE(tiers->Put(kKey, EntryOf("a", kLarge)).ok());
  for (const bool restarted : {false, true}) {
    if (restarted) {
      tiers.reset();
      tiers = open();
    }
    const int64_t before = sent();
    const auto held = tiers->Get(kKey, Access::kLookup);
    ASSERT_NE(held, nullptr);
    const int decoded = file->others;
    EXPECT_EQ(decoded, restarted ? 1 : 0);
    for (int i = 0; i < 5; ++i) {
      GrowStale();
      EXPECT_EQ(tiers->Get(kKey, Access::kLookup), held);
    }
    EXPECT_EQ(file->others, decoded) << "nothing is decoded again";
    EXPECT_LT(sent() - before, kLarge / 4) << restarted;
  }
  // What another server changes arrives all the same.
  const Node other(server_.options());
  ASSERT_TRUE(other.tiers->Replace(kKey, 1, EntryOf("a", 10, 2), Durability::kRequired).ok());
  GrowStale();
  EXPECT_EQ(tiers->Get(kKey, Access::kLookup)->generation, 2);
}

TEST_F(RedisFailure, ARestartIsNotNoticed) {
  ASSERT_TRUE(node_.redis->Put(kKey, EntryOf("a")).ok());
  server_.Kill();
  server_.Start();
  EXPECT_EQ(node_.redis->Look(kKey, Access::kLookup).absence, Absence::kUnknown);
  EXPECT_TRUE(node_.redis->Put(kKey, EntryOf("a")).ok());
  EXPECT_NE(node_.redis->Get(kKey, Access::kLookup), nullptr);
  EXPECT_EQ(node_.Failures(CacheFailure::kUnavailable), 0);
}

TEST_F(RedisFailure, WhatAFlushTookIsGivenBack) {
  ASSERT_TRUE(node_.tiers->Put(kKey, EntryOf("a", 0, 4)).ok());
  server_.Ask({"FLUSHALL"});
  GrowStale();
  EXPECT_EQ(node_.Generation(), 4);
  EXPECT_EQ(node_.redis->Get(kKey, Access::kPeek)->generation, 4);
}

TEST_F(RedisFailure, WhatWasSolvedWhileItWasAwayArrives) {
  server_.Kill();
  ASSERT_TRUE(node_.tiers->Put(kKey, EntryOf("a")).ok());
  server_.Start();
  ASSERT_TRUE(ComesBack(node_.pool.get()));
  GrowStale();
  EXPECT_EQ(node_.Generation(), 1);
  EXPECT_NE(node_.redis->Get(kKey, Access::kPeek), nullptr);
}

TEST_F(RedisFailure, AFullServerKeepsServing) {
  ASSERT_TRUE(node_.tiers->Put(kKey, EntryOf("a")).ok());
  server_.Ask({"CONFIG", "SET", "maxmemory", "1"});
  const absl::Status refused = node_.redis->Put(KeyOf("b"), EntryOf("b"));
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_NE(refused.message().find("memory limit"), absl::string_view::npos) << refused;
  EXPECT_EQ(node_.Failures(CacheFailure::kNotWritten), 1);
  EXPECT_NE(node_.redis->Get(kKey, Access::kLookup), nullptr);
  EXPECT_TRUE(node_.tiers->Put(KeyOf("b"), EntryOf("b")).ok());
  EXPECT_NE(node_.tiers->Get(KeyOf("b"), Access::kLookup), nullptr);
  for (int i = 0; i < 10; ++i) node_.redis->Put(KeyOf("b"), EntryOf("b")).IgnoreError();
  EXPECT_FALSE(node_.pool->resting()) << "it still answers";
}

TEST_F(RedisFailure, AReadOnlyReplicaKeepsServing) {
  ASSERT_TRUE(node_.redis->Put(kKey, EntryOf("a")).ok());
  server_.Ask({"CONFIG", "SET", "replica-serve-stale-data", "yes"});
  server_.Ask({"REPLICAOF", "127.0.0.1", "1"});
  const absl::Status refused = node_.redis->Put(KeyOf("b"), EntryOf("b"));
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_NE(node_.redis->Get(kKey, Access::kLookup), nullptr);
  EXPECT_FALSE(node_.pool->resting());
}

// One address, which leads to another server from some time on: a name, a proxy, here a link.
TEST_F(RedisFailure, AfterAFailoverTheAddressIsAskedAgain) {
  const TemporaryFolder folder;
  RedisOptions options = server_.options();
  options.address.host_or_path = folder / "primary";
  ASSERT_EQ(symlink(server_.address().host_or_path.c_str(), (folder / "primary").c_str()), 0);
  const Node node(options);
  ASSERT_TRUE(node.redis->Put(kKey, EntryOf("a")).ok());
  const RedisServer promoted;
  ASSERT_EQ(unlink((folder / "primary").c_str()), 0);
  ASSERT_EQ(symlink(promoted.address().host_or_path.c_str(), (folder / "primary").c_str()), 0);
  server_.Ask({"REPLICAOF", "127.0.0.1", "1"});
  const absl::Status written = node.redis->Put(KeyOf("b"), EntryOf("b"));
  EXPECT_TRUE(written.ok()) << written;
  EXPECT_NE(node.redis->Get(KeyOf("b"), Access::kLookup), nullptr);
  EXPECT_EQ(promoted.Ask({"EXISTS", RedisKeys("stowage").Plan(KeyOf("b"))}).integer, 1);
  EXPECT_EQ(node.Failures(CacheFailure::kNotWritten), 0);
}

TEST_F(RedisFailure, AServerThatHidesItsDataIsAway) {
  ASSERT_TRUE(node_.tiers->Put(kKey, EntryOf("a")).ok());
  server_.Ask({"CONFIG", "SET", "replica-serve-stale-data", "no"});
  server_.Ask({"REPLICAOF", "127.0.0.1", "1"});  // MASTERDOWN
  GrowStale();
  EXPECT_EQ(node_.Generation(), 1);
  EXPECT_EQ(node_.redis->Look(kKey, Access::kLookup).absence, Absence::kFailed);
}

TEST_F(RedisFailure, ChangesOfAnotherServerArriveWithinTheFreshness) {
  const Node other(server_.options());
  ASSERT_TRUE(node_.tiers->Put(kKey, EntryOf("a")).ok());
  EXPECT_EQ(other.Generation(), 1);
  ASSERT_TRUE(other.tiers->Put(kKey, EntryOf("a", 0, 2)).ok());
  EXPECT_TRUE(absl::IsAborted(node_.tiers->Put(kKey, EntryOf("a", 0, 2))));
  EXPECT_EQ(node_.Generation(), 2);
  ASSERT_TRUE(*other.tiers->Erase(kKey));
  GrowStale();
  EXPECT_EQ(node_.Generation(), -1);
}

TEST(RedisPassword, IsNeededAndNeverSaid) {
  const std::string password = "correct horse";
  RedisServer server({"--requirepass", password});
  for (const std::string& tried : {std::string(), std::string("battery staple"), password}) {
    RedisOptions options = server.options();
    options.address.password = tried;
    const absl::Status answer = RedisPool(options).Ping();
    EXPECT_EQ(answer.ok(), tried == password) << answer;
    EXPECT_EQ(answer.ToString().find(password), std::string::npos);
    EXPECT_EQ(answer.ToString().find("staple"), std::string::npos);
    if (!answer.ok()) {
      EXPECT_NE(answer.ToString().find("password"), std::string::npos) << answer;
    }
  }
}

TEST(RedisPassword, IsReadAgainForEachConnection) {
  const TemporaryFolder folder;
  const auto write = [&folder](const std::string& text) {
    std::ofstream(folder / "password") << text << "\n";
  };
  write("before");
  RedisServer server({"--requirepass", "before"});
  RedisOptions options = server.options();
  options.address.password = "before";
  options.address.password_file = folder / "password";
  RedisPool pool(options);
  ASSERT_TRUE(pool.Ping().ok());
  ASSERT_TRUE(pool.Run({{"CONFIG", "SET", "requirepass", "after"}}).ok());
  write("after");
  EXPECT_TRUE(pool.Ping().ok()) << "connections that are open stay";
  pool.Run({{"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no"}}).status().IgnoreError();
  EXPECT_TRUE(ComesBack(&pool));
  // One that is gone for a moment, or being written.
  options.address.password = "after";
  write("");
  EXPECT_TRUE(RedisPool(options).Ping().ok());
  options.address.password_file = folder / "none";
  EXPECT_TRUE(RedisPool(options).Ping().ok());
}

TEST(RedisDatabase, IsTheOneThatWasNamed) {
  RedisServer server;
  RedisOptions options = server.options();
  options.address.database = 3;
  Node node(options);
  ASSERT_TRUE(node.redis->Put(kKey, EntryOf("a")).ok());
  EXPECT_EQ(server.Ask({"DBSIZE"}).integer, 0);
  options.address.database = 3000;
  EXPECT_TRUE(absl::IsUnavailable(RedisPool(options).Ping()));
}

TEST(RedisAddress, IsReadFromText) {
  EXPECT_EQ(ParseRedisAddress("/run/redis.sock")->port, 0);
  EXPECT_EQ(ParseRedisAddress("cache.local:6379")->host_or_path, "cache.local");
  EXPECT_EQ(ParseRedisAddress("cache.local:6379")->port, 6379);
  EXPECT_EQ(ParseRedisAddress("[::1]:6379")->host_or_path, "::1");
  for (const char* wrong :
       {"", "cache", ":6379", "[]:6379", "cache:", "cache:0", "cache:65536", "cache:x"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseRedisAddress(wrong).status())) << wrong;
  }
}

TEST(RedisPrefix, HoldsNothingThatAPatternKnows) {
  for (const char* fine : {"stowage", "team-a:stowage_2.x"}) EXPECT_TRUE(IsRedisPrefix(fine));
  for (const char* wrong : {"", "a*", "a b", "[a]", "a?", "a\\"})
    EXPECT_FALSE(IsRedisPrefix(wrong));
  EXPECT_FALSE(IsRedisPrefix(std::string(65, 'a')));
}

}  // namespace
}  // namespace stowage::testing
