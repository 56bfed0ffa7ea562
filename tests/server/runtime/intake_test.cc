// Who asks never waits for the store.
#include "server/runtime/intake.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/entries/planning_error.h"
#include "server/service/planning_service.h"
#include "tests/server/support/answers.h"
#include "tests/server/support/counting_metrics.h"
#include "tests/server/support/fake_solver.h"
#include "tests/server/support/profiles.h"
#include "tests/server/support/slow_store.h"

namespace stowage::testing {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

const Account kA = Account::Of("a", ""), kB = Account::Of("b", "");

// A lane of one thread that is busy until the gate opens; writes down who may run, and who may not.
struct BusyLane {
  explicit BusyLane(size_t limit = 2, double share = 1) : lane(1, limit, {share, share}) {
    lane.TrySubmit(Account(), [this](const absl::Status&) {
      started.set_value();
      gate.get_future().wait();
    });
    started.get_future().wait();
  }

  FairLane::Taken Submit(const std::string& name, const Account& account = Account()) {
    return lane.TrySubmit(account, [this, name](const absl::Status& admitted) {
      (admitted.ok() ? ran : refused) += name;
      if (!admitted.ok()) reason = PlanningReason(admitted);
      if (ran.size() + refused.size() == expected) ended.set_value();
    });
  }

  std::string Ran() {
    gate.set_value();
    ended.get_future().wait();
    return ran;
  }

  std::promise<void> started, gate, ended;
  std::string ran, refused, reason;
  size_t expected = 0;
  FairLane lane;
};

TEST(FairLane, RunsInOrderAndRefusesBeyondItsLimit) {
  BusyLane busy;
  busy.expected = 2;
  EXPECT_EQ(busy.Submit("1"), FairLane::Taken::kYes);
  EXPECT_EQ(busy.Submit("2"), FairLane::Taken::kYes);
  EXPECT_EQ(busy.Submit("3"), FairLane::Taken::kFull);
  EXPECT_EQ(busy.lane.tasks(), 3u) << "one runs";
  EXPECT_EQ(busy.Ran(), "12");
  busy.lane.Stop();
  EXPECT_EQ(busy.lane.tasks(), 0u);
  EXPECT_EQ(busy.Submit("4"), FairLane::Taken::kStopped);
}

TEST(FairLane, AccountsHaveTurnsHoweverManyTasksOneHas) {
  BusyLane busy(100);
  busy.expected = 9;
  for (const char* name : {"1", "2", "3", "4", "5"}) busy.Submit(name, kA);
  for (const char* name : {"x", "y"}) busy.Submit(name, kB);
  for (const char* name : {"m", "n"}) busy.Submit(name, Account::Of("", "a"));
  EXPECT_EQ(busy.Ran(), "1xm2yn345");
}

TEST(FairLane, AnAccountHasItsShareOfThePlaces) {
  BusyLane busy(4, 0.5);
  busy.expected = 3;
  EXPECT_EQ(busy.Submit("1", kA), FairLane::Taken::kYes);
  EXPECT_EQ(busy.Submit("2", kA), FairLane::Taken::kYes);
  EXPECT_EQ(busy.Submit("3", kA), FairLane::Taken::kFullOfAccount);
  EXPECT_EQ(busy.Submit("x", kB), FairLane::Taken::kYes);
  EXPECT_EQ(busy.Ran(), "1x2");
}

TEST(FairLane, AnAccountThatWaitsHoldsItsShareOfTheThreadsAndNoMore) {
  std::promise<void> gate;
  const std::shared_future<void> open = gate.get_future().share();
  std::atomic<int> running{0}, most{0}, done{0};
  FairLane lane(4, 100, {0.5, 0.5});  // ends first: its tasks read the others
  for (int i = 0; i < 8; ++i) {
    lane.TrySubmit(kA, [&](const absl::Status&) {
      most = std::max<int>(most, ++running);
      open.wait();
      --running;
      ++done;
    });
  }
  // There is a thread for whoever else comes, while that one's wait.
  std::promise<void> other;
  lane.TrySubmit(kB, [&](const absl::Status&) { other.set_value(); });
  EXPECT_EQ(other.get_future().wait_for(seconds(10)), std::future_status::ready);
  EXPECT_LE(most, 2);
  gate.set_value();
  while (done < 8) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_LE(most, 2);
}

TEST(FairLane, AnotherShareHoldsForWhatComesAndWhatWaits) {
  std::promise<void> gate, second;
  const std::shared_future<void> open = gate.get_future().share();
  FairLane lane(2, 4, {0.5, 0.5});  // ends first: its tasks read the others
  const auto hold = [&open](const absl::Status&) { open.wait(); };
  EXPECT_EQ(lane.LimitOf(kA), 2u);
  ASSERT_EQ(lane.TrySubmit(kA, hold), FairLane::Taken::kYes);
  // It waits: the account has one of two threads, until it has both.
  ASSERT_EQ(lane.TrySubmit(kA, [&](const absl::Status&) { second.set_value(); }),
            FairLane::Taken::kYes);
  std::future<void> ran = second.get_future();
  EXPECT_EQ(ran.wait_for(milliseconds(20)), std::future_status::timeout);
  lane.SetShare({1, 1});
  EXPECT_EQ(ran.wait_for(seconds(10)), std::future_status::ready);
  EXPECT_EQ(lane.LimitOf(kA), 4u);
  lane.SetShare({0.25, 0.25});
  ASSERT_EQ(lane.TrySubmit(kA, hold), FairLane::Taken::kYes);
  EXPECT_EQ(lane.TrySubmit(kA, hold), FairLane::Taken::kFullOfAccount);
  gate.set_value();
}

TEST(FairLane, WhatWaitsWhenItStopsIsToldAndDoesNotRun) {
  BusyLane busy(100000);
  busy.Submit("1");
  busy.Submit("a", kA);
  std::thread stopper([&busy] { busy.lane.Stop(); });
  while (busy.lane.TrySubmit(kB, [](const absl::Status&) {}) == FairLane::Taken::kYes) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  busy.gate.set_value();
  stopper.join();
  EXPECT_EQ(busy.ran, "");
  EXPECT_EQ(busy.refused.size(), 2u);
  EXPECT_EQ(busy.reason, "DRAINING");
}

TEST(FairLane, EveryTaskIsToldOnceWhateverRaces) {
  std::atomic<int> told{0}, taken{0};
  {
    FairLane lane(3, 50, {0.34, 0.34});
    std::vector<std::thread> threads;
    for (int t = 0; t < 6; ++t) {
      threads.emplace_back([&, account = Account::Of(std::to_string(t % 4), "")] {
        for (int i = 0; i < 2000; ++i) {
          if (lane.TrySubmit(account, [&told](const absl::Status&) { ++told; }) ==
              FairLane::Taken::kYes) {
            ++taken;
          }
        }
      });
    }
    std::this_thread::sleep_for(milliseconds(5));
    lane.Stop();
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(told, taken);
}

TEST(Intake, LanesDoNotWaitForEachOther) {
  CountingMetrics metrics;
  Intake intake(IntakeOptions(), &metrics);
  std::promise<void> gate;
  const std::shared_future<void> open = gate.get_future().share();
  const auto all = {Lane::kLookups, Lane::kConversions, Lane::kJudging, Lane::kAdministration,
                    Lane::kParked};
  for (const Lane held : all) {
    for (int i = 0; i < 20; ++i) {
      intake.TrySubmit(held, Account(), [open](const absl::Status&) { open.wait(); });
    }
    for (const Lane lane : all) {
      if (lane <= held) continue;
      std::promise<void> ran;
      intake.TrySubmit(lane, Account(), [&ran](const absl::Status&) { ran.set_value(); });
      EXPECT_EQ(ran.get_future().wait_for(seconds(10)), std::future_status::ready);
    }
  }
  for (const Lane lane : all) {
    const auto waits = static_cast<int64_t>(metrics.lane_waits[static_cast<size_t>(lane)]);
    EXPECT_GE(waits, static_cast<int64_t>(lane)) << ToString(lane);
    EXPECT_LT(waits, 20) << "that wait still";
  }
  gate.set_value();
}

struct SlowFixture {
  explicit SlowFixture(const PlanningOptions& options = PlanningOptions())
      : solver(false),
        service(std::make_unique<PlanningService>(options, &store, &solver, &metrics)) {}
  ~SlowFixture() { store.Release(); }

  std::shared_ptr<PlanCall> Ask(int index,
                                std::optional<Clock::time_point> deadline = std::nullopt) {
    return service->ComputePlan(ComputeRequest{ChainProfile({}), kTight, KeyOptions(), deadline},
                                answers.Of(index));
  }

  Answers answers;
  CountingMetrics metrics;
  FakeSolver solver;
  SlowStore store;
  std::unique_ptr<PlanningService> service;
};

TEST(SlowStores, ComputePlanReturnsAndIsAnsweredLater) {
  SlowFixture fixture;
  fixture.store.Hold();
  fixture.Ask(0);
  ASSERT_TRUE(fixture.store.WaitUntilAsked(1));
  EXPECT_FALSE(fixture.answers.Has(0));
  fixture.store.Release();
  ASSERT_TRUE(fixture.answers.WaitFor(0).ok());
  fixture.Ask(1);
  const auto cached = fixture.answers.WaitFor(1);
  ASSERT_TRUE(cached.ok());
  EXPECT_EQ(cached->source, AnswerSource::kCache);
}

TEST(SlowStores, GetPlanReturnsAndIsAnsweredLater) {
  SlowFixture fixture;
  fixture.Ask(0);
  const auto computed = fixture.answers.WaitFor(0);
  ASSERT_TRUE(computed.ok());
  fixture.store.Hold();
  std::promise<absl::StatusOr<CachedPlan>> got;
  PlanKey unknown;
  fixture.service->GetPlanAsync({unknown, computed->key}, kTight,
                                [&got](auto plan) { got.set_value(std::move(plan)); });
  auto answer = got.get_future();
  EXPECT_EQ(answer.wait_for(milliseconds(30)), std::future_status::timeout);
  fixture.store.Release();
  const auto plan = answer.get();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->key.digest, computed->key.digest);
}

TEST(SlowStores, DeadlinesAndCancelsAreAnsweredWhileTheStoreIsSilent) {
  SlowFixture fixture;
  fixture.store.Hold();
  fixture.Ask(0, Clock::now() + milliseconds(40));
  const auto cancelled = fixture.Ask(1);
  fixture.service->Cancel(cancelled);
  EXPECT_TRUE(absl::IsDeadlineExceeded(fixture.answers.WaitFor(0).status()));
  EXPECT_TRUE(absl::IsCancelled(fixture.answers.WaitFor(1).status()));
  fixture.store.Release();
  fixture.service->Drain(Clock::now() + seconds(10));
  EXPECT_EQ(fixture.solver.started(), 0);
  EXPECT_EQ(fixture.answers.callbacks(), 2u);
}

TEST(SlowStores, AnEntryThatIsSlowToChangeHoldsNoOtherUp) {
  SlowFixture fixture;
  fixture.store.HoldChangesOf(MakePlanKey(ChainProfile({}), KeyOptions()));
  fixture.Ask(0);
  ASSERT_TRUE(fixture.store.WaitUntilAsked(3));  // twice for a plan, then to keep one
  ProfileShape other;
  other.stages = 7;
  fixture.service->ComputePlan(
      ComputeRequest{ChainProfile(other), kTight, KeyOptions(), std::nullopt},
      fixture.answers.Of(1));
  EXPECT_TRUE(fixture.answers.WaitFor(1).ok());
  EXPECT_FALSE(fixture.answers.Has(0));
  fixture.store.Release();
  EXPECT_TRUE(fixture.answers.WaitFor(0).ok());
}

TEST(SlowStores, NoMemoryForALookupIsAnErrorForItsCallAlone) {
  SlowFixture fixture;
  fixture.store.ThrowBadAlloc();
  fixture.Ask(0);
  const absl::Status status = fixture.answers.WaitFor(0).status();
  EXPECT_EQ(PlanningReason(status), "OUT_OF_MEMORY") << status;
  std::promise<absl::Status> got;
  fixture.service->GetPlanAsync({PlanKey()}, kTight,
                                [&got](const auto& plan) { got.set_value(plan.status()); });
  EXPECT_EQ(PlanningReason(got.get_future().get()), "OUT_OF_MEMORY");
  EXPECT_EQ(fixture.service->Drain(Clock::now() + seconds(10)).abandoned, 0);
}

TEST(SlowStores, AFullIntakeRefusesWithATimeToRetryAfter) {
  PlanningOptions options;
  options.intake.threads.fill(1);
  options.intake.queue_limit = 1;
  SlowFixture fixture(options);
  fixture.store.Hold();
  fixture.Ask(0);
  ASSERT_TRUE(fixture.store.WaitUntilAsked(1));
  fixture.Ask(1);
  fixture.Ask(2);
  const absl::Status refused = fixture.answers.WaitFor(2).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_TRUE(PlanningRetryAfter(refused).has_value());
  EXPECT_EQ(fixture.metrics.Sheds(Shed::kTooManyCalls), 1);
  fixture.store.Release();
  for (const int i : {0, 1}) EXPECT_TRUE(fixture.answers.WaitFor(i).ok());
}

TEST(SlowStores, StopAnswersWhatIsQueued) {
  PlanningOptions options;
  options.intake.threads.fill(1);
  SlowFixture fixture(options);
  fixture.store.Hold();
  for (int i = 0; i < 5; ++i) fixture.Ask(i);
  ASSERT_TRUE(fixture.store.WaitUntilAsked(1));
  std::thread opener([&] {
    const auto nothing = [](const absl::Status&) {};  // until the lane says that it is stopped
    while (!absl::IsUnavailable(fixture.service->Defer(Lane::kLookups, Account(), nothing))) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    fixture.store.Release();
  });
  fixture.service->Stop();
  opener.join();
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(absl::IsUnavailable(fixture.answers.WaitFor(i).status())) << i;
  }
}

}  // namespace
}  // namespace stowage::testing
