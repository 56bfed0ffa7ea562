// A primary with a replica and three sentinels: what a failover costs, and what it must not.
#include "server/store/redis_sentinel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "server/decisions/shared_decisions.h"
#include "server/store/name_lookup.h"
#include "server/store/redis_plan_store.h"
#include "server/store/redis_solve_lease.h"
#include "tests/server/store/entries.h"
#include "tests/server/store/redis_failover.h"
#include "tests/server/store/redis_server.h"
#include "tests/support/temporary_folder.h"

namespace stowage::testing {
namespace {

using std::chrono::milliseconds;

const PlanKey kKey = KeyOf("a");
const SolveQuestion kQuestion{kKey, Bytes(100)};

const bool kSkips = (SkipWithoutRedis(), true);

TEST(RedisSentinels, AreFoundByTheirNames) {
  const int port = FreePort();
  const RedisServer primary(ReplicatedAt(port));
  const RedisSentinel sentinel(port, 1);
  NameLookup names([](const std::string&) { return NameLookup::Addresses{"127.0.0.1"}; });
  RedisOptions options;
  options.address.primary = "plans";
  options.address.sentinels = {{"sentinel.test", sentinel.host().port}};
  options.timeout = std::chrono::seconds(10);
  options.names = &names;
  const absl::Status found = RedisPool(options).Ping();
  EXPECT_TRUE(found.ok()) << found;
}

TEST_F(RedisFailover, AKilledPrimaryCostsAWhileAndNoWrongAnswer) {
  const auto pool = std::make_shared<RedisPool>(options_);
  RedisPlanStore store({}, pool, &metrics_);
  RedisDecisions decisions("stowage", pool, &metrics_);
  // Outlives the failover without a renewal, too.
  RedisLeaseOptions lease_options;
  lease_options.time_to_live = std::chrono::seconds(60);
  RedisSolveLease lease(lease_options, pool);
  ASSERT_TRUE(store.Put(kKey, EntryOf("a", 0, 3)).ok());
  ASSERT_TRUE(decisions.Mark().ok());
  EXPECT_TRUE(*decisions.IsMarked());
  LeaseAnswer held = lease.Acquire(kQuestion);
  ASSERT_EQ(held.state, LeaseState::kGranted);
  ASSERT_TRUE(HasReplica(*primary_));

  sentinels_[0]->Kill();  // the one that was asked
  primary_->Kill();
  std::atomic<bool> over{false};
  std::thread reader([&] {
    while (!over) {
      const auto entry = store.Get(kKey, Access::kLookup);
      EXPECT_TRUE(entry == nullptr || entry->generation == 3);
      std::this_thread::sleep_for(milliseconds(5));
    }
  });
  const auto other_pool = std::make_shared<RedisPool>(options_);
  RedisSolveLease other(lease_options, other_pool);
  int failed = 0;
  EXPECT_TRUE(Await([&] {
    const LeaseState state = other.Acquire(kQuestion).state;
    EXPECT_NE(state, LeaseState::kGranted);
    failed += state == LeaseState::kFailed ? 1 : 0;
    return state == LeaseState::kTaken;
  }));
  EXPECT_GT(failed, 0) << "the primary was dead";
  EXPECT_TRUE(Await([&] { return store.Put(KeyOf("b"), EntryOf("b")).ok(); }));
  over = true;
  reader.join();

  EXPECT_TRUE(IsPrimary(replica_));
  EXPECT_NE(store.Get(kKey, Access::kLookup), nullptr) << "it was replicated";
  EXPECT_EQ(replica_.Ask({"EXISTS", RedisKeys("stowage").Plan(KeyOf("b"))}).integer, 1);
  EXPECT_EQ(pool->failovers(), 1);
  EXPECT_EQ(other_pool->failovers(), 0) << "it knew no other primary";
  // What was decided last may be lost though the mark is there: it is to be told again.
  EXPECT_EQ(*decisions.IsMarked(), false);
  EXPECT_TRUE(decisions.Mark().ok());
  EXPECT_TRUE(*decisions.IsMarked());
  held.held.reset();
  EXPECT_EQ(other.Acquire(kQuestion).state, LeaseState::kGranted);
}

TEST_F(RedisFailover, APrimaryThatBecomesAReplicaIsLeft) {
  const auto pool = std::make_shared<RedisPool>(options_);
  RedisPlanStore store({}, pool, &metrics_);
  ASSERT_TRUE(store.Put(kKey, EntryOf("a")).ok());
  const RedisReply asked = AskSentinel(*sentinels_[1], {"SENTINEL", "FAILOVER", "plans"});
  ASSERT_EQ(asked.text, "OK");
  // Writes all the time; what is acknowledged by the new primary stays.
  int64_t generation = 1;
  EXPECT_TRUE(Await([&] {
    if (store.Put(kKey, EntryOf("a", 0, generation + 1)).ok()) ++generation;
    return pool->failovers() == 1;
  }));
  EXPECT_TRUE(Await([&] {
    const auto there = store.Get(kKey, Access::kPeek);
    return there && store.Put(kKey, EntryOf("a", 0, there->generation + 1)).ok();
  }));
  EXPECT_TRUE(IsPrimary(replica_));
  EXPECT_EQ(replica_.Ask({"HGET", RedisKeys("stowage").Plan(kKey), "g"}).text,
            std::to_string(store.Get(kKey, Access::kPeek)->generation));
}

// Theirs is another one than Redis's, which has none here; it may change while a server runs.
TEST_F(RedisFailover, SentinelsMayWantAPasswordOfTheirOwn) {
  const RedisSentinel guarded(port_, 1, "requirepass first\nuser watcher on >second +@all\n");
  const TemporaryFolder folder;
  RedisOptions options = options_;
  options.address.sentinels = {guarded.host()};
  const absl::Status without = RedisPool(options).Ping();
  EXPECT_TRUE(absl::IsUnavailable(without)) << without;
  EXPECT_NE(without.message().find("wants a password"), absl::string_view::npos) << without;
  options.address.sentinel_password = "wrong";
  const absl::Status wrong = RedisPool(options).Ping();
  EXPECT_TRUE(absl::IsUnavailable(wrong)) << wrong;
  EXPECT_EQ(wrong.message().find("wrong"), absl::string_view::npos) << wrong;
  options.address.sentinel_password = "first";
  EXPECT_TRUE(RedisPool(options).Ping().ok());
  options.address.sentinel_user = "watcher";
  options.address.sentinel_password_file = folder / "password";
  EXPECT_FALSE(RedisPool(options).Ping().ok());
  std::ofstream(folder / "password") << "second\n";
  EXPECT_TRUE(RedisPool(options).Ping().ok());
}

TEST_F(RedisFailover, WithoutAPrimaryThatIsKnownThereIsNone) {
  RedisOptions options = options_;
  options.address.primary = "others";
  const absl::Status unknown = RedisPool(options).Ping();
  EXPECT_TRUE(absl::IsUnavailable(unknown)) << unknown;
  EXPECT_NE(unknown.message().find("knows no primary of that name"), absl::string_view::npos);
  // A sentinel that is behind, and names what is none (any more).
  primary_->Ask({"REPLICAOF", "127.0.0.1", "1"});
  const absl::Status none = RedisPool(options_).Ping();
  EXPECT_TRUE(absl::IsUnavailable(none)) << none;
  EXPECT_NE(none.message().find("is no primary now"), absl::string_view::npos) << none;
}

}  // namespace
}  // namespace stowage::testing
