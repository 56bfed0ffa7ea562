#include "server/store/leased_solve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include "tests/server/store/entries.h"
#include "tests/server/support/counting_metrics.h"

namespace stowage::testing {
namespace {

using std::chrono::milliseconds;

const SolveQuestion kQuestion{KeyOf("a"), Bytes(100)};

class Nothing final : public HeldLease {};

// Answers as it was told; the last answer for ever.
class ScriptedLease final : public SolveLease {
 public:
  explicit ScriptedLease(std::deque<LeaseState> states) : states_(std::move(states)) {}
  LeaseAnswer Acquire(const SolveQuestion&) override {
    ++asked;
    const LeaseState state = states_.front();
    if (states_.size() > 1) states_.pop_front();
    return {state, state == LeaseState::kGranted ? std::make_unique<Nothing>() : nullptr};
  }
  std::atomic<int> asked{0};

 private:
  std::deque<LeaseState> states_;
};

class LeasedSolveTest : public ::testing::Test {
 protected:
  // Asks again after each pause until there is no more to wait for.
  Turn Await(SolveLease* lease, int found_at_look) {
    LeasedSolve leased(options_, lease, &metrics_);
    const auto look = [this, found_at_look] { return ++looks_ == found_at_look; };
    LeaseWait wait;
    while (true) {
      Turn turn = leased.Take(kQuestion, look, &wait);
      if (turn.turn != SolveTurn::kWait) return turn;
      pauses_.push_back(wait.pause);
      std::this_thread::sleep_for(wait.pause);
    }
  }
  int64_t Leases(LeaseOutcome outcome) const {
    return metrics_.leases[static_cast<size_t>(outcome)];
  }

  LeasedSolveOptions options_{milliseconds(1), milliseconds(4), std::chrono::seconds(10)};
  CountingMetrics metrics_;
  int looks_ = 0;
  std::vector<std::chrono::nanoseconds> pauses_;
};

constexpr int kNever = -1;

TEST_F(LeasedSolveTest, AServerAloneLooksAtNothingAndCountsNothing) {
  NoLease alone;
  EXPECT_EQ(Await(&alone, kNever).turn, SolveTurn::kSolve);
  EXPECT_EQ(looks_, 0);
  for (const auto& count : metrics_.leases) EXPECT_EQ(count, 0);
}

TEST_F(LeasedSolveTest, WhatNobodyWaitsForIsLeftToWhoIsAtIt) {
  const auto now = [this](LeaseState state, bool found) {
    ScriptedLease lease({state});
    const Turn turn =
        LeasedSolve(options_, &lease, &metrics_).TryNow(kQuestion, [found] { return found; });
    EXPECT_EQ(lease.asked, 1);
    EXPECT_EQ(turn.held != nullptr, state == LeaseState::kGranted && !found);
    return turn.turn;
  };
  EXPECT_EQ(now(LeaseState::kTaken, false), SolveTurn::kFound);
  EXPECT_EQ(now(LeaseState::kGranted, true), SolveTurn::kFound);
  EXPECT_EQ(Leases(LeaseOutcome::kGranted), 0);
  EXPECT_EQ(now(LeaseState::kGranted, false), SolveTurn::kSolve);
  EXPECT_EQ(now(LeaseState::kFailed, false), SolveTurn::kSolve);
  EXPECT_EQ(now(LeaseState::kAlone, false), SolveTurn::kSolve);
  EXPECT_EQ(Leases(LeaseOutcome::kGranted), 1);
  EXPECT_EQ(Leases(LeaseOutcome::kFailed), 1);
}

TEST_F(LeasedSolveTest, WhoIsGrantedLooksOnceMoreAndSolves) {
  ScriptedLease lease({LeaseState::kGranted});
  const Turn turn = Await(&lease, kNever);
  EXPECT_EQ(turn.turn, SolveTurn::kSolve);
  EXPECT_NE(turn.held, nullptr);
  EXPECT_EQ(looks_, 1);
  EXPECT_EQ(Leases(LeaseOutcome::kGranted), 1);
}

TEST_F(LeasedSolveTest, WhatAnotherSolvedJustBeforeIsFound) {
  ScriptedLease lease({LeaseState::kGranted});
  const Turn turn = Await(&lease, 1);
  EXPECT_EQ(turn.turn, SolveTurn::kFound);
  EXPECT_EQ(turn.held, nullptr);
  EXPECT_EQ(Leases(LeaseOutcome::kWaited), 1);
  EXPECT_EQ(Leases(LeaseOutcome::kGranted), 0);
}

TEST_F(LeasedSolveTest, WhatAnotherSolvesIsWaitedFor) {
  ScriptedLease lease({LeaseState::kTaken});
  EXPECT_EQ(Await(&lease, 5).turn, SolveTurn::kFound);
  EXPECT_EQ(looks_, 5);
  EXPECT_THAT(pauses_, ::testing::ElementsAre(milliseconds(1), milliseconds(2), milliseconds(4),
                                              milliseconds(4)));
  EXPECT_EQ(Leases(LeaseOutcome::kWaited), 1);
}

TEST_F(LeasedSolveTest, WhatIsFoundBeforeTheNextTakeWasWaitedForOnce) {
  ScriptedLease lease({LeaseState::kTaken});
  LeasedSolve leased(options_, &lease, &metrics_);
  LeaseWait wait;
  EXPECT_FALSE(leased.Found(&wait)) << "nothing was asked for";
  EXPECT_EQ(leased
                .Take(
                    kQuestion, [] { return false; }, &wait)
                .turn,
            SolveTurn::kWait);
  EXPECT_TRUE(leased.Found(&wait));
  EXPECT_FALSE(leased.Found(&wait));
  EXPECT_EQ(Leases(LeaseOutcome::kWaited), 1);

  ScriptedLease freed({LeaseState::kTaken, LeaseState::kGranted});
  LeasedSolve then(options_, &freed, &metrics_);
  EXPECT_EQ(then.Take(
                    kQuestion, [] { return false; }, &wait)
                .turn,
            SolveTurn::kWait);
  EXPECT_EQ(then.Take(
                    kQuestion, [] { return false; }, &wait)
                .turn,
            SolveTurn::kSolve);
  EXPECT_FALSE(then.Found(&wait)) << "it was granted, and is counted";
}

TEST_F(LeasedSolveTest, WhenTheHolderDiesTheNextOneSolves) {
  ScriptedLease lease({LeaseState::kTaken, LeaseState::kTaken, LeaseState::kGranted});
  const Turn turn = Await(&lease, kNever);
  EXPECT_EQ(turn.turn, SolveTurn::kSolve);
  EXPECT_NE(turn.held, nullptr);
  EXPECT_EQ(Leases(LeaseOutcome::kGranted), 1);
}

TEST_F(LeasedSolveTest, WhereNobodyCanSayItIsSolvedHere) {
  ScriptedLease lease({LeaseState::kFailed});
  const Turn turn = Await(&lease, kNever);
  EXPECT_EQ(turn.turn, SolveTurn::kSolve);
  EXPECT_EQ(turn.held, nullptr);
  EXPECT_EQ(Leases(LeaseOutcome::kFailed), 1);
  EXPECT_EQ(lease.asked, 1);
}

TEST_F(LeasedSolveTest, WhereNobodyCanSayAnyMoreTheLeaseIsWaitedOut) {
  options_.lease_time = milliseconds(500);
  ScriptedLease lease({LeaseState::kTaken, LeaseState::kFailed});
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(Await(&lease, kNever).turn, SolveTurn::kSolve);
  EXPECT_GE(std::chrono::steady_clock::now() - start, options_.lease_time);
  EXPECT_EQ(Leases(LeaseOutcome::kFailed), 1);
  EXPECT_GT(lease.asked, 3);
}

TEST_F(LeasedSolveTest, WhatIsFoundWhileNobodyCanSayIsFound) {
  ScriptedLease lease({LeaseState::kTaken, LeaseState::kFailed});
  EXPECT_EQ(Await(&lease, 3).turn, SolveTurn::kFound);
  EXPECT_EQ(Leases(LeaseOutcome::kFailed), 0);
}

TEST_F(LeasedSolveTest, AFailoverHasNobodySolveTwice) {
  ScriptedLease lease({LeaseState::kTaken, LeaseState::kFailed, LeaseState::kFailed,
                       LeaseState::kFailed, LeaseState::kTaken, LeaseState::kGranted});
  EXPECT_NE(Await(&lease, kNever).held, nullptr);
  EXPECT_EQ(Leases(LeaseOutcome::kFailed), 0);
  EXPECT_EQ(Leases(LeaseOutcome::kGranted), 1);
}

TEST_F(LeasedSolveTest, PatienceEnds) {
  options_.longest_wait = milliseconds(500);
  ScriptedLease lease({LeaseState::kTaken});
  EXPECT_EQ(Await(&lease, kNever).turn, SolveTurn::kSolve);
  EXPECT_GT(lease.asked, 3);
  EXPECT_EQ(Leases(LeaseOutcome::kExpired), 1);
}

}  // namespace
}  // namespace stowage::testing
