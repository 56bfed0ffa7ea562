#include "server/store/redis_solve_lease.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "server/store/leased_solve.h"
#include "server/store/memory_plan_store.h"
#include "server/store/redis_plan_store.h"
#include "server/store/tiered_plan_store.h"
#include "tests/server/store/entries.h"
#include "tests/server/store/redis_server.h"
#include "tests/server/support/counting_metrics.h"

namespace stowage::testing {
namespace {

using std::chrono::milliseconds;

const SolveQuestion kQuestion{KeyOf("a"), Bytes(100)};

// Long enough for a thread to wait for its turn on a busy machine.
constexpr milliseconds kShort{1000};

const bool kSkips = (SkipWithoutRedis(), true);

class RedisLease : public ::testing::Test {
 protected:
  std::unique_ptr<RedisSolveLease> Lease(milliseconds time_to_live = std::chrono::seconds(5)) {
    RedisLeaseOptions options;
    options.time_to_live = time_to_live;
    return std::make_unique<RedisSolveLease>(options, server_.Pool());
  }
  int64_t LeasesThere() { return server_.Ask({"DBSIZE"}).integer; }

  RedisServer server_;
};

TEST_F(RedisLease, OneOfTwoIsGrantedUntilItLetsGo) {
  const auto a = Lease();
  const auto b = Lease();
  LeaseAnswer held = a->Acquire(kQuestion);
  EXPECT_EQ(held.state, LeaseState::kGranted);
  EXPECT_EQ(b->Acquire(kQuestion).state, LeaseState::kTaken);
  EXPECT_EQ(a->Acquire(kQuestion).state, LeaseState::kTaken);
  EXPECT_EQ(b->Acquire({KeyOf("b"), Bytes(100)}).state, LeaseState::kGranted);
  EXPECT_EQ(b->Acquire({KeyOf("a"), Bytes(101)}).state, LeaseState::kGranted);
  EXPECT_EQ(b->Acquire({KeyOf("a"), std::nullopt}).state, LeaseState::kGranted);
  held.held.reset();
  EXPECT_EQ(b->Acquire(kQuestion).state, LeaseState::kGranted);
  EXPECT_EQ(LeasesThere(), 0) << "all were let go of";
}

TEST_F(RedisLease, OfManyOneIsGranted) {
  std::vector<std::unique_ptr<RedisSolveLease>> servers;
  for (int s = 0; s < 8; ++s) servers.push_back(Lease());
  std::vector<LeaseAnswer> answers(servers.size());
  std::vector<std::thread> threads;
  for (size_t s = 0; s < servers.size(); ++s) {
    threads.emplace_back([&, s] { answers[s] = servers[s]->Acquire(kQuestion); });
  }
  for (std::thread& thread : threads) thread.join();
  int granted = 0;
  for (const LeaseAnswer& answer : answers) {
    if (answer.state == LeaseState::kGranted) ++granted;
  }
  EXPECT_EQ(granted, 1);
}

TEST_F(RedisLease, IsRenewedWhileItIsHeld) {
  const auto a = Lease(kShort);
  const auto b = Lease(kShort);
  LeaseAnswer held = a->Acquire(kQuestion);
  ASSERT_EQ(held.state, LeaseState::kGranted);
  for (int i = 0; i < 10; ++i) {
    std::this_thread::sleep_for(kShort / 4);
    ASSERT_EQ(b->Acquire(kQuestion).state, LeaseState::kTaken) << i;
  }
}

TEST_F(RedisLease, AHolderThatDiesLosesIt) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t holder = fork();  // before this process has threads
  if (holder == 0) {
    const auto lease = Lease(kShort);
    const LeaseAnswer held = lease->Acquire(kQuestion);
    const char granted = held.state == LeaseState::kGranted ? 'y' : 'n';
    if (write(ready[1], &granted, 1) != 1) _exit(1);
    pause();
    _exit(0);
  }
  const auto survivor = Lease(kShort);
  char granted = 0;
  ASSERT_EQ(read(ready[0], &granted, 1), 1);
  EXPECT_EQ(granted, 'y');
  std::this_thread::sleep_for(kShort + kShort / 2);
  EXPECT_EQ(survivor->Acquire(kQuestion).state, LeaseState::kTaken) << "it lives";
  kill(holder, SIGKILL);
  waitpid(holder, nullptr, 0);
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  LeaseState state = LeaseState::kTaken;
  while (state != LeaseState::kGranted && std::chrono::steady_clock::now() < patience) {
    std::this_thread::sleep_for(milliseconds(50));
    state = survivor->Acquire(kQuestion).state;
  }
  EXPECT_EQ(state, LeaseState::kGranted);
}

TEST_F(RedisLease, WhoLostItDoesNotDeleteAnothers) {
  const auto a = Lease();
  LeaseAnswer lost = a->Acquire(kQuestion);
  ASSERT_EQ(lost.state, LeaseState::kGranted);
  server_.Ask({"FLUSHALL"});
  const auto b = Lease();
  const LeaseAnswer held = b->Acquire(kQuestion);
  ASSERT_EQ(held.state, LeaseState::kGranted);
  lost.held.reset();
  EXPECT_EQ(a->Acquire(kQuestion).state, LeaseState::kTaken);
}

TEST_F(RedisLease, WhatRedisLostIsTakenAgainByItsHolder) {
  const auto a = Lease(kShort);
  LeaseAnswer held = a->Acquire(kQuestion);
  ASSERT_EQ(held.state, LeaseState::kGranted);
  server_.Ask({"FLUSHALL"});
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (LeasesThere() == 0 && std::chrono::steady_clock::now() < patience) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_EQ(Lease()->Acquire(kQuestion).state, LeaseState::kTaken);
  held.held.reset();
  EXPECT_EQ(LeasesThere(), 0);
}

TEST_F(RedisLease, WithoutRedisNobodyCanSay) {
  const auto a = Lease();
  const LeaseAnswer held = a->Acquire(kQuestion);
  server_.Kill();
  EXPECT_EQ(a->Acquire(kQuestion).state, LeaseState::kFailed);
}

TEST_F(RedisLease, MayBeHeldLongerThanItsMakerLives) {
  auto a = Lease();
  LeaseAnswer held = a->Acquire(kQuestion);
  a.reset();
  held.held.reset();
  EXPECT_EQ(LeasesThere(), 0);
}

// Two servers, each with its memory, at one Redis; many callers of each ask the same at once.
TEST_F(RedisLease, TwoServersSolveOnce) {
  CountingMetrics metrics;
  std::atomic<int> solves{0};
  std::atomic<int> found{0};
  const auto serve = [&] {
    const auto lease = Lease();
    TieredPlanStore store(
        std::make_unique<MemoryPlanStore>(Bytes(64 << 20)),
        std::make_unique<RedisPlanStore>(RedisStoreOptions{}, server_.Pool(), &metrics),
        std::chrono::seconds(10));
    LeasedSolve leased(LeasedSolveOptions{}, lease.get(), &metrics);
    const auto look = [&store] { return store.Get(kQuestion.key, Access::kUpdate) != nullptr; };
    std::vector<std::thread> callers;
    for (int c = 0; c < 4; ++c) {
      callers.emplace_back([&] {
        LeaseWait wait;
        Turn turn = leased.Take(kQuestion, look, &wait);
        for (; turn.turn == SolveTurn::kWait; turn = leased.Take(kQuestion, look, &wait)) {
          std::this_thread::sleep_for(wait.pause);
        }
        if (turn.turn == SolveTurn::kFound) {
          ++found;
          return;
        }
        ++solves;
        std::this_thread::sleep_for(milliseconds(150));
        EXPECT_TRUE(store.Put(kQuestion.key, EntryOf("a")).ok());
      });
    }
    for (std::thread& caller : callers) caller.join();
  };
  std::thread one(serve);
  std::thread two(serve);
  one.join();
  two.join();
  EXPECT_EQ(solves, 1);
  EXPECT_EQ(found, 7);
  EXPECT_EQ(metrics.leases[static_cast<size_t>(LeaseOutcome::kGranted)], 1);
  EXPECT_EQ(metrics.leases[static_cast<size_t>(LeaseOutcome::kWaited)], 7);
}

}  // namespace
}  // namespace stowage::testing
