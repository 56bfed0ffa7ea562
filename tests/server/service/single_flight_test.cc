// One solve for all who ask the same at once.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/server/service/planning_fixture.h"

namespace stowage::testing {
namespace {

using Clock = std::chrono::steady_clock;

TEST(SingleFlight, AHundredThreadsAskOneUnknownKeyAndOneSolveAnswersThem) {
  constexpr int kCallers = 100;
  PlanningFixture fixture(true);
  std::vector<std::thread> threads;
  for (int i = 0; i < kCallers; ++i) {
    threads.emplace_back([&fixture, i] {
      ProfileShape jittered;
      jittered.forward_time += i % 5;
      fixture.Ask(i, ChainProfile(jittered), kTight);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fixture.metrics.flights_joined, kCallers - 1);
  fixture.solver.Release();
  int solved = 0;
  for (int i = 0; i < kCallers; ++i) {
    const auto answer = fixture.answers.WaitFor(i);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->plan.status, PlanStatus::kFound);
    EXPECT_NE(answer->source, AnswerSource::kCache);
    if (answer->source == AnswerSource::kSolved) ++solved;
  }
  EXPECT_EQ(solved, 1);
  EXPECT_EQ(fixture.solver.started(), 1);
  EXPECT_EQ(fixture.answers.callbacks(), static_cast<size_t>(kCallers));
}

TEST(SingleFlight, ThreadsThatArriveWhileTheFlightLandsStillSolveOnce) {
  // No hold: the solve ends while others are between their lookup and their joining.
  for (int round = 0; round < 20; ++round) {
    PlanningFixture fixture(false);
    std::vector<std::thread> threads;
    for (int i = 0; i < 16; ++i) {
      threads.emplace_back([&fixture, i] { fixture.Ask(i, ChainProfile({}), kTight); });
    }
    for (std::thread& thread : threads) thread.join();
    for (int i = 0; i < 16; ++i) ASSERT_TRUE(fixture.answers.WaitFor(i).ok());
    EXPECT_EQ(fixture.solver.started(), 1);
  }
}

// Calls open flights, join them and are handed back by them while the service stops.
TEST(SingleFlight, AStopLeavesNoCallUnansweredWhateverItDoes) {
  constexpr int kThreads = 6, kCalls = 60;
  for (int round = 0; round < 12; ++round) {
    PlanningFixture fixture(false);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&fixture, t, round] {
        for (int i = 0; i < kCalls; ++i) {
          ProfileShape shape;
          shape.stages = 4 + (i + round) % 7;
          shape.overhead = t % 2 == 0 ? 0 : 60;
          const Budget budget = i % 2 == 0 ? Budget(LeastBudget{}) : Budget(Bytes(1400 + i));
          fixture.Ask(t * kCalls + i, ChainProfile(shape), budget);
        }
      });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(round));
    fixture.service->Stop();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(fixture.answers.callbacks(), static_cast<size_t>(kThreads * kCalls));
  }
}

TEST(SingleFlight, OtherBudgetsFlyApart) {
  PlanningFixture fixture(true);
  fixture.Ask(0, ChainProfile({}), kTight);
  fixture.Ask(1, ChainProfile({}), kTight - Bytes(100));
  EXPECT_TRUE(fixture.solver.WaitUntilStarted(2));
  fixture.solver.Release();
  EXPECT_TRUE(fixture.answers.WaitFor(0).ok());
  EXPECT_TRUE(fixture.answers.WaitFor(1).ok());
  EXPECT_EQ(fixture.metrics.flights_joined, 0);
}

TEST(SingleFlight, EqualDigestsOfDifferentProblemsFlyApart) {
  PlanningOptions options;
  options.digest = [](const std::string&) { return Digest(); };
  PlanningFixture fixture(true, options);
  ProfileShape other;
  other.stages = 7;
  fixture.Ask(0, ChainProfile({}), kTight);
  fixture.Ask(1, ChainProfile(other), kTight);
  EXPECT_TRUE(fixture.solver.WaitUntilStarted(2));
  fixture.solver.Release();
  for (const int i : {0, 1}) {
    const auto answer = fixture.answers.WaitFor(i);
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(answer->source, AnswerSource::kSolved);
  }
}

TEST(SingleFlight, AWaiterWhoseOverheadsBreakTheSharedPlanGetsItsOwn) {
  PlanningFixture probe(false);
  const Bytes budget = probe.Compute(ChainProfile({}), kTight)->plan.prediction.peak;
  PlanningFixture fixture(true);
  ProfileShape heavy;
  heavy.overhead = 60;
  fixture.Ask(0, ChainProfile({}), budget);
  ASSERT_TRUE(fixture.solver.WaitUntilStarted(1));
  fixture.Ask(1, ChainProfile(heavy), budget);
  fixture.Ask(2, ChainProfile(heavy), budget);
  EXPECT_EQ(fixture.metrics.flights_joined, 2);
  fixture.solver.Release();
  for (const int i : {0, 1, 2}) {
    const auto answer = fixture.answers.WaitFor(i);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_LE(answer->plan.prediction.peak, budget);
  }
  EXPECT_EQ(fixture.solver.started(), 2);
  EXPECT_GE(fixture.metrics.plans_refused, 2);
}

TEST(SingleFlight, AWaiterWithTimesIsNotAnsweredByAPlanThatWasMadeWithoutAny) {
  PlanningFixture fixture(true);
  ProfileShape bytes_only;
  bytes_only.timed = false;
  fixture.Ask(0, ChainProfile(bytes_only), kTight);
  ASSERT_TRUE(fixture.solver.WaitUntilStarted(1));
  fixture.Ask(1, ChainProfile({}), kTight);
  EXPECT_EQ(fixture.metrics.flights_joined, 1);
  fixture.solver.Release();
  for (const int i : {0, 1}) {
    const auto answer = fixture.answers.WaitFor(i);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->source, AnswerSource::kSolved);
  }
}

// Another server says what "least" is while a flight is under way that turns out to be no answer: the
// call takes that from the cache while who watches it looks.
TEST(SingleFlight, WhatLeastIsMayBecomeKnownWhileAWatcherLooks) {
  ProfileShape shape;
  shape.overhead = 60;
  const Profile light = ChainProfile({}), heavy = ChainProfile(shape);
  PlanningFixture fixture(true);
  fixture.solver.TellOf(MakePlan(light, LeastPeak(light), PlanOptions())->schedule);
  FakeSolver other_solver(false);
  PlanningService other(PlanningOptions(), &fixture.store, &other_solver, &fixture.metrics);
  const auto solve_elsewhere = [&](int index, const Budget& budget) {
    other.ComputePlan(ComputeRequest{heavy, budget, KeyOptions(), std::nullopt},
                      fixture.answers.Of(index));
    return fixture.answers.WaitFor(index).ok();
  };
  ASSERT_TRUE(solve_elsewhere(10, Bytes(1000000)));
  fixture.Ask(0, light, LeastBudget{});
  ASSERT_TRUE(fixture.solver.WaitUntilStarted(1));
  const auto watched = fixture.Ask(1, heavy, LeastBudget{});
  ASSERT_EQ(fixture.metrics.flights_joined, 1);
  ASSERT_TRUE(solve_elsewhere(11, LeastBudget{}));
  std::thread watcher([&] { EXPECT_FALSE(fixture.service->Latest(watched).plan.has_value()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  fixture.solver.Release();
  const auto answer = fixture.answers.WaitFor(1);
  watcher.join();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->source, AnswerSource::kCache);
  EXPECT_EQ(answer->plan.budget, LeastPeak(heavy));
}

TEST(SingleFlight, AJoinerGivesItsCanonicalBytesUp) {
  FlightTable flights;
  std::vector<std::shared_ptr<PlanCall>> calls;
  for (uint64_t id = 0; id < 2; ++id) {
    calls.push_back(std::make_shared<PlanCall>(id, Account(), std::nullopt, ComputeCallback()));
    calls.back()->problem = *MakePlanningProblem(ChainProfile({}), KeyOptions(), Sha256);
    calls.back()->budget = kTight;
  }
  ASSERT_NE(calls[0]->problem->canonical, calls[1]->problem->canonical);
  EXPECT_TRUE(flights.Join(calls[0]).created);
  EXPECT_FALSE(flights.Join(calls[1]).created);
  EXPECT_EQ(calls[0]->problem->canonical, calls[1]->problem->canonical);
  // Flight and waiters hold each other until it lands.
  EXPECT_EQ(flights.LandAll().size(), 2u);
}

TEST(SingleFlight, TheSolveGoesOnUntilTheLastWaiterHasLeft) {
  PlanningFixture fixture(true);
  const auto first = fixture.Ask(0, ChainProfile({}), kTight);
  ASSERT_TRUE(fixture.solver.WaitUntilStarted(1));
  const auto second = fixture.Ask(1, ChainProfile({}), kTight);
  fixture.service->Cancel(first);
  EXPECT_TRUE(absl::IsCancelled(fixture.answers.WaitFor(0).status()));
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_EQ(fixture.solver.stopped(), 0);
  fixture.service->Cancel(second);
  EXPECT_TRUE(absl::IsCancelled(fixture.answers.WaitFor(1).status()));
  EXPECT_TRUE(fixture.solver.WaitUntilStopped(1));
  EXPECT_EQ(fixture.answers.callbacks(), 2u);
}

TEST(SingleFlight, AnAbandonedFlightIsNotJoined) {
  PlanningFixture fixture(true);
  fixture.service->Cancel(fixture.Ask(0, ChainProfile({}), kTight));
  fixture.Ask(1, ChainProfile({}), kTight);
  fixture.solver.Release();
  const auto answer = fixture.answers.WaitFor(1);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->source, AnswerSource::kSolved);
}

TEST(SingleFlight, WhoStaysGetsThePlanAfterTheFirstHasLeft) {
  PlanningFixture fixture(true);
  const auto first = fixture.Ask(0, ChainProfile({}), kTight);
  ASSERT_TRUE(fixture.solver.WaitUntilStarted(1));
  fixture.Ask(1, ChainProfile({}), kTight, Clock::now() + std::chrono::seconds(30));
  fixture.service->Cancel(first);
  fixture.solver.Release();
  const auto answer = fixture.answers.WaitFor(1);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->source, AnswerSource::kShared);
}

// Asks as WatchPlan does.
std::shared_ptr<PlanCall> Watch(
    PlanningFixture* fixture, int index, const std::string& tenant = "",
    std::function<void()> changed = [] {}) {
  ComputeRequest request{ChainProfile({}), kTight, KeyOptions(), std::nullopt};
  request.options.tenant = tenant;
  return fixture->service->ComputePlan(request, fixture->answers.Of(index), std::move(changed));
}

TEST(LostWatcher, FindsItsSolveAndWhatItHasFoundWhenItComesBack) {
  PlanningFixture fixture(true);
  const Schedule schedule = MakePlan(ChainProfile({}), kTight, PlanOptions())->schedule;
  fixture.solver.TellOf(schedule);
  const auto lost = Watch(&fixture, 0);
  ASSERT_TRUE(fixture.solver.WaitUntilStarted(1));
  fixture.service->Cancel(lost);
  EXPECT_TRUE(absl::IsCancelled(fixture.answers.WaitFor(0).status()));
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_EQ(fixture.solver.stopped(), 0);

  std::atomic<int> told{0};
  const auto back = Watch(&fixture, 1, "", [&told] { ++told; });
  EXPECT_EQ(fixture.metrics.flights_joined, 1);
  EXPECT_EQ(told, 1);
  const std::optional<Plan> shown = fixture.service->Latest(back).plan;
  EXPECT_TRUE(shown.has_value() && shown->schedule == schedule);
  fixture.solver.Release();
  const auto answer = fixture.answers.WaitFor(1);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->source, AnswerSource::kShared);
  EXPECT_EQ(fixture.solver.started(), 1);
}

TEST(LostWatcher, LeavesAPlanForThoseWhoAskNext) {
  PlanningFixture fixture(true);
  const auto lost = Watch(&fixture, 0);
  ASSERT_TRUE(fixture.solver.WaitUntilStarted(1));
  fixture.service->Cancel(lost);
  fixture.solver.Release();
  const auto answer = fixture.Compute(ChainProfile({}), kTight);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_NE(answer->source, AnswerSource::kSolved);
  EXPECT_EQ(fixture.solver.started(), 1);
}

TEST(LostWatcher, IsWaitedForNoLongerThanTheGrace) {
  PlanningOptions options;
  options.watch_grace = std::chrono::milliseconds(20);
  PlanningFixture fixture(true, options);
  const auto lost = Watch(&fixture, 0);
  ASSERT_TRUE(fixture.solver.WaitUntilStarted(1));
  fixture.service->Cancel(lost);
  EXPECT_TRUE(fixture.solver.WaitUntilStopped(1));
  // Nor joined by who comes later.
  Watch(&fixture, 1);
  EXPECT_TRUE(fixture.solver.WaitUntilStarted(2));
  fixture.solver.Release();
  EXPECT_EQ(fixture.answers.WaitFor(1)->source, AnswerSource::kSolved);
}

TEST(LostWatcher, ThatIsBackIsWaitedForLikeAnyOther) {
  PlanningOptions options;
  options.watch_grace = std::chrono::milliseconds(200);
  PlanningFixture fixture(true, options);
  const auto lost = Watch(&fixture, 0);
  ASSERT_TRUE(fixture.solver.WaitUntilStarted(1));
  fixture.service->Cancel(lost);
  Watch(&fixture, 1);
  const bool joined = fixture.metrics.flights_joined == 1;  // unless this thread was held up
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_TRUE(!joined || fixture.solver.stopped() == 0);
  fixture.solver.Release();
  EXPECT_TRUE(fixture.answers.WaitFor(1).ok());
}

PlanningOptions OneSolverThread() {
  PlanningOptions options;
  options.solver_threads = 1;
  return options;
}

TEST(LostWatcher, KeepsNobodyWhoComesFromAThread) {
  PlanningFixture fixture(true, OneSolverThread());
  const auto lost = Watch(&fixture, 0);
  ASSERT_TRUE(fixture.solver.WaitUntilStarted(1));
  fixture.service->Cancel(lost);
  EXPECT_EQ(fixture.solver.stopped(), 0);
  fixture.Ask(1, ProfileOfLength(7), kTight);
  EXPECT_TRUE(fixture.solver.WaitUntilStarted(2));
  EXPECT_EQ(fixture.solver.stopped(), 1);
  fixture.solver.Release();
  EXPECT_TRUE(fixture.answers.WaitFor(1).ok());
}

TEST(LostWatcher, KeepsNobodyWhoWaitsFromAThread) {
  PlanningFixture fixture(true, OneSolverThread());
  const auto lost = Watch(&fixture, 0);
  ASSERT_TRUE(fixture.solver.WaitUntilStarted(1));
  fixture.Ask(1, ProfileOfLength(7), kTight);
  fixture.service->Cancel(lost);
  EXPECT_TRUE(fixture.solver.WaitUntilStarted(2));
  fixture.solver.Release();
  EXPECT_TRUE(fixture.answers.WaitFor(1).ok());
}

// Of two threads a tenant has one.
TEST(LostWatcher, KeepsItsOwnTenantFromNoThread) {
  PlanningFixture fixture(true);
  const auto lost = Watch(&fixture, 0, "vision");
  ASSERT_TRUE(fixture.solver.WaitUntilStarted(1));
  fixture.service->Cancel(lost);
  ComputeRequest other{ProfileOfLength(7), kTight, KeyOptions(), std::nullopt};
  other.options.tenant = "vision";
  fixture.service->ComputePlan(other, fixture.answers.Of(1));
  EXPECT_TRUE(fixture.solver.WaitUntilStarted(2));
  fixture.solver.Release();
  EXPECT_TRUE(fixture.answers.WaitFor(1).ok());
}

TEST(LostWatcher, GivesItsPlaceInTheQueueBack) {
  PlanningFixture fixture(true, OneSolverThread());
  fixture.Ask(0, ProfileOfLength(7), kTight);
  ASSERT_TRUE(fixture.solver.WaitUntilStarted(1));
  const auto queued = Watch(&fixture, 1);
  fixture.service->Cancel(queued);
  EXPECT_EQ(fixture.metrics.queue_depth, 0);
  fixture.solver.Release();
  EXPECT_TRUE(fixture.answers.WaitFor(0).ok());
  EXPECT_EQ(fixture.solver.started(), 1);
}

TEST(LostWatcher, HoldsNoDrainUp) {
  PlanningFixture fixture(true);
  const auto lost = Watch(&fixture, 0);
  ASSERT_TRUE(fixture.solver.WaitUntilStarted(1));
  fixture.service->Cancel(lost);
  const auto start = Clock::now();
  EXPECT_EQ(fixture.service->Drain(start + std::chrono::seconds(20)).abandoned, 0);
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(10));
  EXPECT_EQ(fixture.solver.stopped(), 1);
}

TEST(SingleFlight, AFailureReachesEveryWaiterAndIsNotCached) {
  PlanningFixture fixture(true);
  fixture.solver.FailWith(absl::ResourceExhaustedError("tables too large"));
  fixture.Ask(0, ChainProfile({}), kTight);
  ASSERT_TRUE(fixture.solver.WaitUntilStarted(1));
  fixture.Ask(1, ChainProfile({}), kTight);
  fixture.solver.Release();
  EXPECT_TRUE(absl::IsResourceExhausted(fixture.answers.WaitFor(0).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(fixture.answers.WaitFor(1).status()));
  EXPECT_EQ(fixture.metrics.Solves(SolveOutcome::kError), 1);
  fixture.solver.FailWith(absl::OkStatus());
  EXPECT_TRUE(fixture.Compute(ChainProfile({}), kTight).ok());
}

}  // namespace
}  // namespace stowage::testing
