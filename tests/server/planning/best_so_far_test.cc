// A search that has found something has an answer for whoever cannot wait for its end.
#include <gtest/gtest.h>

#include <thread>

#include "server/planning/planning_error.h"
#include "tests/server/planning/planning_fixture.h"

namespace stowage::testing {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Bytes kTight{1500};

// A schedule within kTight.
Schedule TightSchedule() { return MakePlan(ChainProfile({}), kTight, PlanOptions())->schedule; }

TEST(BestSoFar, WhatTheDeadlineCutShortIsAnsweredInTimeAndNotKept) {
  PlanningFixture fixture(true);
  fixture.solver.AnswerAtDeadline();
  const auto deadline = Clock::now() + milliseconds(300);
  fixture.Ask(0, ChainProfile({}), kTight, deadline);
  const auto answer = fixture.answers.WaitFor(0);
  EXPECT_LT(Clock::now(), deadline);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_FALSE(answer->plan.search_complete);
  EXPECT_LE(answer->plan.prediction.peak, kTight);
  EXPECT_EQ(fixture.store.stats().entries, 0);
  fixture.solver.Release();
  const auto complete = fixture.Compute(ChainProfile({}), kTight);
  ASSERT_TRUE(complete.ok());
  EXPECT_EQ(complete->source, AnswerSource::kSolved);
  EXPECT_EQ(fixture.store.stats().entries, 1);
}

TEST(BestSoFar, AServersOwnBoundIsSuchADeadline) {
  PlanningOptions options;
  options.max_solve_time = milliseconds(200);
  PlanningFixture fixture(true, options);
  fixture.solver.AnswerAtDeadline();
  const auto answer = fixture.Compute(ChainProfile({}), kTight);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_FALSE(answer->plan.search_complete);
}

TEST(BestSoFar, ALaterCallerMovesTheDeadlineAndTheEarlierOneGetsWhatThereIs) {
  PlanningFixture fixture(true);
  fixture.solver.AnswerAtDeadline();
  fixture.solver.TellOf(TightSchedule());
  const auto deadline = Clock::now() + milliseconds(400);
  fixture.Ask(0, ChainProfile({}), kTight, deadline);
  ASSERT_TRUE(fixture.solver.WaitUntilStarted(1));
  fixture.Ask(1, ChainProfile({}), kTight, Clock::now() + seconds(60));
  const auto early = fixture.answers.WaitFor(0);
  EXPECT_LT(Clock::now(), deadline);
  ASSERT_TRUE(early.ok()) << early.status();
  EXPECT_FALSE(early->plan.search_complete);
  EXPECT_LE(early->plan.prediction.peak, kTight);
  EXPECT_EQ(fixture.solver.stopped(), 0);
  fixture.solver.Release();
  const auto late = fixture.answers.WaitFor(1);
  ASSERT_TRUE(late.ok());
  EXPECT_TRUE(late->plan.search_complete);
  EXPECT_EQ(late->source, AnswerSource::kShared);
  EXPECT_EQ(fixture.solver.started(), 1);
}

TEST(BestSoFar, WithoutAPlanADeadlineIsAnErrorAtTheDeadlineAndNotBefore) {
  PlanningFixture fixture(true);
  const auto deadline = Clock::now() + milliseconds(200);
  fixture.Ask(0, ChainProfile({}), kTight, deadline);
  EXPECT_TRUE(absl::IsDeadlineExceeded(fixture.answers.WaitFor(0).status()));
  EXPECT_GE(Clock::now(), deadline);
  EXPECT_EQ(fixture.solver.stopped(), 1);
}

TEST(BestSoFar, WhatTheEvaluatorRefusesIsNoPlan) {
  PlanningFixture fixture(true);
  fixture.solver.TellOf(Instance(ChainProfile({})).store_all_schedule());  // over the budget
  fixture.Ask(0, ChainProfile({}), kTight, Clock::now() + milliseconds(150));
  EXPECT_TRUE(absl::IsDeadlineExceeded(fixture.answers.WaitFor(0).status()));
}

TEST(BestSoFar, ItIsJudgedUnderTheCallersOwnCosts) {
  PlanningFixture fixture(true);
  fixture.solver.TellOf(TightSchedule());
  fixture.Ask(0, ChainProfile({}), kTight);
  ASSERT_TRUE(fixture.solver.WaitUntilStarted(1));
  ProfileShape heavy;
  heavy.overhead = 200;
  fixture.Ask(1, ChainProfile(heavy), kTight, Clock::now() + milliseconds(150));
  ProfileShape slow;
  slow.forward_time = 1000;
  fixture.Ask(2, ChainProfile(slow), kTight, Clock::now() + milliseconds(150));
  EXPECT_TRUE(absl::IsDeadlineExceeded(fixture.answers.WaitFor(1).status()));
  const auto judged = fixture.answers.WaitFor(2);
  ASSERT_TRUE(judged.ok()) << judged.status();
  EXPECT_GT(judged->plan.prediction.makespan, Nanos(6000));
  fixture.solver.Release();
  EXPECT_TRUE(fixture.answers.WaitFor(0).ok());
}

}  // namespace
}  // namespace stowage::testing
