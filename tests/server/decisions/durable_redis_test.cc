// Decisions in a Redis of their own, which is killed, is away, or keeps less than it must: what was acknowledged
// holds for a server that has never heard of it, what was refused has not happened.
#include "server/decisions/durable_redis.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/entries/planning_error.h"
#include "server/entries/revisions.h"
#include "server/observe/log.h"
#include "tests/server/decisions/questions.h"
#include "tests/server/decisions/shared_tier.h"
#include "tests/support/temporary_folder.h"

namespace stowage::testing {
namespace {

const bool kSkips = (SkipWithoutRedis(), true);

RedisOptions CheckedOptions(const RedisServer& redis) {
  RedisOptions options = redis.options();
  options.check = CheckDurable;
  options.use = RedisUse::kDecisions;
  return options;
}

// Plans in this process, decisions in the Redis.
class DurableTier final : public SharedTier {
 public:
  explicit DurableTier(const RedisServer* redis) : redis_(redis) {}
  std::unique_ptr<PlanStore> Plans(ServerMetrics* metrics) override {
    return plans_.Plans(metrics);
  }
  std::unique_ptr<SharedDecisions> Decisions(ServerMetrics* metrics) override {
    return std::make_unique<RedisDecisions>(
        "stowage", std::make_shared<RedisPool>(CheckedOptions(*redis_)), metrics);
  }
  // The plans: a cache that forgets.
  void Flush() override { plans_.Flush(); }

 private:
  const RedisServer* const redis_;
  TierInProcess plans_;
};

bool ComesTrue(const std::function<bool()>& done) {
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!done()) {
    if (std::chrono::steady_clock::now() > patience) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

absl::Status ChangeBy(DecidingServer* server, int64_t revision, PinAction action) {
  return server->admin->Pin(Administrator(), Key(), {kJustShort, revision}, action);
}

struct DurableCase {
  std::string name;
  std::function<absl::Status(DecidingServer*)> decide;
  std::function<bool(DecidingServer*)> holds;
};

const std::vector<DurableCase>& DurableCases() {
  static const auto* const kCases = new std::vector<DurableCase>{
      {"Delete",
       [](DecidingServer* a) { return a->admin->Delete(Administrator(), Key()).status(); },
       [](DecidingServer* b) {
         return b->store->Look(Key(), Access::kLookup).absence == Absence::kErased;
       }},
      {"Pin", [](DecidingServer* a) { return ChangeBy(a, 2, PinAction::kPin); },
       [](DecidingServer* b) {
         const auto entry = b->store->Get(Key(), Access::kLookup);
         return entry && PinnedRevision(*entry, kJustShort) != nullptr;
       }},
      {"Freeze", [](DecidingServer* a) { return ChangeBy(a, 0, PinAction::kFreeze); },
       [](DecidingServer* b) {
         const auto entry = b->store->Get(Key(), Access::kLookup);
         return entry && entry->frozen;
       }},
  };
  return *kCases;
}

// With its server and that one's disk, while the Redis is killed, and the cache empty.
TEST(DurableRedisTest, WhatWasAcknowledgedOutlivesWhoDecidedIt) {
  for (const DurableCase& decided : DurableCases()) {
    SCOPED_TRACE(decided.name);
    const TemporaryFolder folder;
    std::filesystem::create_directory(folder / "a");
    RedisServer redis(Durable());
    DurableTier tier(&redis);
    ServerOptions on_a, on_b;
    on_a.decisions = folder / "a/decisions";
    on_b.decisions = folder / "b.decisions";
    const auto before = TwoRevisions();
    auto a = std::make_unique<DecidingServer>(&tier, on_a);
    ASSERT_TRUE(a->store->Put(Key(), before).ok());
    const absl::Status status = decided.decide(a.get());
    ASSERT_TRUE(status.ok()) << status;
    redis.Kill();
    a = nullptr;
    std::filesystem::remove_all(folder / "a");
    tier.Flush();
    redis.Start();

    auto b = std::make_unique<DecidingServer>(&tier, on_b);
    // A copy from before, of a server that was away.
    b->store->Put(Key(), before).IgnoreError();
    EXPECT_TRUE(ComesTrue([&] { return decided.holds(b.get()); }));
    // And it has learned it for good.
    redis.Kill();
    b = nullptr;
    b = std::make_unique<DecidingServer>(&tier, on_b);
    b->store->Put(Key(), before).IgnoreError();
    EXPECT_TRUE(decided.holds(b.get()));
  }
}

TEST(DurableRedisTest, WhileItIsAwayNothingIsDecided) {
  const TemporaryFolder folder;
  RedisServer redis(Durable());
  DurableTier tier(&redis);
  ServerOptions on_a;
  on_a.decisions = folder / "a.decisions";
  auto a = std::make_unique<DecidingServer>(&tier, on_a);
  const auto before = TwoRevisions();
  ASSERT_TRUE(a->store->Put(Key(), before).ok());
  redis.Kill();
  for (const DurableCase& decided : DurableCases()) {
    SCOPED_TRACE(decided.name);
    const absl::Status refused = decided.decide(a.get());
    EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
    EXPECT_EQ(PlanningReason(refused), "STORE_UNAVAILABLE") << refused;
    EXPECT_FALSE(decided.holds(a.get()));
  }
  EXPECT_EQ(a->book->Find(Key()), nullptr);
  const auto on_disk = SqliteDecisionStore::ReadAll(on_a.decisions);
  ASSERT_TRUE(on_disk.ok()) << on_disk.status();
  EXPECT_TRUE(on_disk->empty());
  EXPECT_TRUE(a->service->GetPlan({Key()}, kJustShort).ok()) << "plans are served all the same";

  redis.Start();
  EXPECT_TRUE(ComesTrue([&] { return ChangeBy(a.get(), 2, PinAction::kPin).ok(); }));
  DecidingServer b(&tier);
  EXPECT_TRUE(ComesTrue([&] { return DurableCases()[1].holds(&b); }));
}

TEST(DurableRedisTest, WhatKeepsLessIsRefusedAndTheSettingNamed) {
  const std::vector<std::vector<std::string>> settings = {
      {"appendonly", "no"},
      {"appendfsync", "everysec"},
      {"no-appendfsync-on-rewrite", "yes"},
      {"maxmemory-policy", "allkeys-lru"},
  };
  for (const auto& setting : settings) {
    const RedisServer redis(Durable({"--" + setting[0], setting[1]}));
    const absl::Status refused = RedisPool(CheckedOptions(redis)).Ping();
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    const std::string says = setting[0] + " of Redis is " + setting[1] + ": must be ";
    EXPECT_NE(refused.ToString().find(says), std::string::npos) << refused;
  }
  const RedisServer durable(Durable());
  const absl::Status taken = RedisPool(CheckedOptions(durable)).Ping();
  EXPECT_TRUE(taken.ok()) << taken;
}

TEST(DurableRedisTest, WhatDoesNotSayIsRefusedWithTheReason) {
  const RedisServer hides(Durable({"--rename-command", "CONFIG", "HIDDEN"}));
  const RedisServer forbids(Durable());
  forbids.Ask({"ACL", "SETUSER", "planner", "on", ">secret", "~*", "+@all", "-config"});
  RedisOptions as_planner = CheckedOptions(forbids);
  as_planner.address.user = "planner";
  as_planner.address.password = "secret";
  for (const RedisOptions& options : {CheckedOptions(hides), as_planner}) {
    const absl::Status refused = RedisPool(options).Ping();
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_NE(refused.ToString().find("+config|get"), std::string::npos) << refused;
  }
  forbids.Ask({"ACL", "SETUSER", "planner", "+config|get"});
  const absl::Status taken = RedisPool(as_planner).Ping();
  EXPECT_TRUE(taken.ok()) << taken;
  // Without the password nothing is known of its settings.
  as_planner.address.password = "another";
  const absl::Status away = RedisPool(as_planner).Ping();
  EXPECT_TRUE(absl::IsUnavailable(away)) << away;
}

// Its connections are made anew, by a restart, say.
TEST(DurableRedisTest, WhatIsDurableNoMoreIsAsOneThatIsAway) {
  RedisServer redis(Durable());
  NoMetrics metrics;
  std::string lines;
  auto log =
      std::make_unique<Log>(LogLevel::kInfo, [&lines](const std::string& text) { lines += text; });
  RedisOptions options = CheckedOptions(redis);
  options.breaker.failures = 1;
  options.log = log.get();
  auto book = DecisionBook::Open(
      std::make_unique<MemoryDecisionStore>(),
      std::make_unique<RedisDecisions>("stowage", std::make_shared<RedisPool>(options), &metrics),
      &metrics);
  ASSERT_TRUE(book.ok()) << book.status();
  const auto decide = [&] {
    const auto known = (*book)->Find(Key());
    return (*book)->Decide(Key(), known ? known->edition : 0, {DeletionOf(FirstGeneration(0), 0)});
  };
  ASSERT_TRUE(decide().ok());
  redis.Ask({"CONFIG", "SET", "appendfsync", "everysec"});
  redis.Ask({"CLIENT", "KILL", "TYPE", "normal"});
  const absl::Status refused = decide();
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_NE(refused.ToString().find("appendfsync of Redis is everysec"), std::string::npos)
      << refused;
  redis.Ask({"CONFIG", "SET", "appendfsync", "always"});
  EXPECT_TRUE(ComesTrue([&] { return decide().ok(); }));
  *book = nullptr;
  log = nullptr;  // all is written
  EXPECT_NE(lines.find("redis_away"), std::string::npos) << lines;
  EXPECT_NE(lines.find("\"of\":\"decisions\""), std::string::npos) << lines;
  EXPECT_NE(lines.find("redis_back"), std::string::npos) << lines;
}

}  // namespace
}  // namespace stowage::testing
