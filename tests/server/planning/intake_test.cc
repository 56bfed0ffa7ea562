// Who asks never waits for the store.
#include "server/planning/intake.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <thread>

#include "server/planning/planning_error.h"
#include "server/planning/planning_service.h"
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

constexpr Bytes kTight{1500};

// An intake of one thread that is busy until the gate opens; writes down who may run, and who may not.
struct BusyIntake {
  explicit BusyIntake(size_t limit = 2) : intake(1, limit) {
    intake.TrySubmit([this](const absl::Status&) {
      started.set_value();
      gate.get_future().wait();
    });
    started.get_future().wait();
  }

  bool Submit(const std::string& name, IntakeLane lane = IntakeLane::kCalls) {
    return intake.TrySubmit(
        [this, name](const absl::Status& admitted) {
          (admitted.ok() ? ran : refused) += name;
          if (!admitted.ok()) reason = PlanningReason(admitted);
          if (ran.size() + refused.size() == expected) ended.set_value();
        },
        lane);
  }

  std::promise<void> started, gate, ended;
  std::string ran, refused, reason;
  size_t expected = 0;
  Intake intake;
};

TEST(Intake, RunsInOrderAndRefusesBeyondItsLimit) {
  BusyIntake busy;
  busy.expected = 2;
  EXPECT_TRUE(busy.Submit("1"));
  EXPECT_TRUE(busy.Submit("2"));
  EXPECT_FALSE(busy.Submit("3"));
  busy.gate.set_value();
  busy.ended.get_future().wait();
  EXPECT_EQ(busy.ran, "12");
  busy.intake.Stop();
  EXPECT_FALSE(busy.Submit("4"));
}

TEST(Intake, CallsAndNewsHaveTurnsAndLimitsOfTheirOwn) {
  BusyIntake busy;
  busy.expected = 4;
  for (const char* name : {"a", "b"}) EXPECT_TRUE(busy.Submit(name, IntakeLane::kNews));
  EXPECT_FALSE(busy.Submit("c", IntakeLane::kNews));
  for (const char* name : {"1", "2"}) EXPECT_TRUE(busy.Submit(name));
  busy.gate.set_value();
  busy.ended.get_future().wait();
  EXPECT_EQ(busy.ran, "a1b2");
}

TEST(Intake, WhatIsQueuedWhenItStopsIsToldAndDoesNotRun) {
  BusyIntake busy(100000);
  EXPECT_TRUE(busy.Submit("1"));
  EXPECT_TRUE(busy.Submit("a", IntakeLane::kNews));
  std::thread stopper([&busy] { busy.intake.Stop(); });
  while (busy.intake.TrySubmit([](const absl::Status&) {})) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  busy.gate.set_value();
  stopper.join();
  EXPECT_EQ(busy.ran, "");
  EXPECT_EQ(busy.refused.size(), 2u);
  EXPECT_EQ(busy.reason, "DRAINING");
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
  options.intake_threads = 1;
  options.intake_limit = 1;
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
  options.intake_threads = 1;
  SlowFixture fixture(options);
  fixture.store.Hold();
  for (int i = 0; i < 5; ++i) fixture.Ask(i);
  ASSERT_TRUE(fixture.store.WaitUntilAsked(1));
  std::thread opener([&] {
    std::this_thread::sleep_for(milliseconds(30));
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
