// Solves that another server is at: who waits for them takes no solver's thread.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "tests/server/planning/asked.h"
#include "tests/server/planning/planning_fixture.h"
#include "tests/server/support/shared_lease.h"

namespace stowage::testing {
namespace {

constexpr int64_t kTight = 1500;

PlanningOptions Sharing(SharedLease* lease) {
  PlanningOptions options;
  options.solver_threads = 2;
  options.lease = lease;
  return options;
}

Profile OtherProfile() {
  ProfileShape shape;
  shape.stages = 7;
  return ChainProfile(shape);
}

TEST(LeasedFlights, HoweverManyWaitOthersAreSolvedAndNoneOfThemTwice) {
  constexpr int kWaiting = 8;
  SharedLease lease;
  PlanningFixture fixture(false, Sharing(&lease));
  const PlanKey key = ProblemOf(ProfileShape())->key;
  std::vector<LeaseAnswer> held;  // of another server
  for (int i = 0; i < kWaiting; ++i) held.push_back(lease.Acquire({key, Bytes(kTight + i)}));
  for (int i = 0; i < kWaiting; ++i) fixture.Ask(i, ChainProfile({}), Bytes(kTight + i));
  for (int64_t budget = kTight; budget < kTight + 5; ++budget) {
    const auto other = fixture.Compute(OtherProfile(), Bytes(budget));
    ASSERT_TRUE(other.ok()) << other.status();
  }
  EXPECT_EQ(fixture.solver.started(), 5);
  for (int i = 0; i < kWaiting; ++i) EXPECT_FALSE(fixture.answers.Has(i)) << i;
  held.clear();  // it has died
  for (int i = 0; i < kWaiting; ++i) EXPECT_TRUE(fixture.answers.WaitFor(i).ok()) << i;
  EXPECT_EQ(fixture.answers.callbacks(), kWaiting + 5u);
}

TEST(LeasedFlights, GetWhatTheOtherServerHasSolved) {
  SharedLease lease;
  PlanningFixture one(true, Sharing(&lease));
  const FakeSolver solver(false);
  CountingMetrics metrics;
  PlanningService two(Sharing(&lease), &one.store, &solver, &metrics);
  Answers answers;
  const ComputeRequest request{ChainProfile({}), Bytes(kTight), KeyOptions(), std::nullopt};
  one.Ask(0, request.profile, request.budget);
  ASSERT_TRUE(one.solver.WaitUntilStarted(1));
  two.ComputePlan(request, answers.Of(0));
  one.solver.Release();
  const auto plan = answers.WaitFor(0);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->source, AnswerSource::kCache);
  EXPECT_EQ(solver.started(), 0);

  one.solver.Hold();
  one.service->GetFrontier(request, one.answers.Of(1));
  while (one.solver.frontiers() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  two.GetFrontier(request, answers.Of(1));
  one.solver.Release();
  const auto frontier = answers.WaitFor(1);
  ASSERT_TRUE(frontier.ok()) << frontier.status();
  EXPECT_EQ(frontier->source, AnswerSource::kCache);
  EXPECT_EQ(solver.frontiers(), 0);
}

TEST(LeasedFlights, WhoLeavesWhileAnotherSolvesLeavesNothingBehind) {
  SharedLease lease;
  PlanningFixture fixture(false, Sharing(&lease));
  LeaseAnswer held = lease.Acquire({ProblemOf(ProfileShape())->key, Bytes(kTight)});
  const auto call = fixture.Ask(0, ChainProfile({}), Bytes(kTight));
  fixture.service->Cancel(call);
  EXPECT_TRUE(absl::IsCancelled(fixture.answers.WaitFor(0).status()));
  const auto late = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  fixture.Ask(1, ChainProfile({}), Bytes(kTight), late);
  EXPECT_TRUE(absl::IsDeadlineExceeded(fixture.answers.WaitFor(1).status()));
  fixture.Ask(2, ChainProfile({}), Bytes(kTight));
  fixture.service->Stop();
  EXPECT_TRUE(absl::IsUnavailable(fixture.answers.WaitFor(2).status()));
  EXPECT_EQ(fixture.solver.started(), 0);
}

}  // namespace
}  // namespace stowage::testing
