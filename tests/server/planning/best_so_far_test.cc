// A search that has found something has an answer for whoever cannot wait for its end.
#include <gtest/gtest.h>

#include <thread>

#include "server/planning/planning_error.h"
#include "tests/server/planning/planning_fixture.h"
#include "tests/server/support/growing_deadline.h"

namespace stowage::testing {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Bytes kTight{1500};

// A schedule within kTight.
Schedule TightSchedule() { return MakePlan(ChainProfile({}), kTight, PlanOptions())->schedule; }

TEST(BestSoFar, WhatTheDeadlineCutShortIsAnsweredInTimeAndNotKept) {
  EXPECT_TRUE(WithinSomeTime(milliseconds(300), [](milliseconds time) {
    PlanningFixture fixture(true);
    fixture.solver.AnswerAtDeadline();
    fixture.Ask(0, ChainProfile({}), kTight, Clock::now() + time);
    const auto answer = fixture.answers.WaitFor(0);
    if (absl::IsDeadlineExceeded(answer.status())) return false;
    EXPECT_TRUE(answer.ok()) << answer.status();
    if (!answer.ok()) return true;
    EXPECT_FALSE(answer->plan.search_complete);
    EXPECT_LE(answer->plan.prediction.peak, kTight);
    EXPECT_EQ(fixture.store.stats().entries, 0);
    fixture.solver.Release();
    const auto complete = fixture.Compute(ChainProfile({}), kTight);
    EXPECT_TRUE(complete.ok() && complete->source == AnswerSource::kSolved) << complete.status();
    EXPECT_EQ(fixture.store.stats().entries, 1);
    return true;
  }));
}

TEST(BestSoFar, AServersOwnBoundIsSuchADeadline) {
  EXPECT_TRUE(WithinSomeTime(milliseconds(200), [](milliseconds time) {
    PlanningOptions options;
    options.max_solve_time = time;
    PlanningFixture fixture(true, options);
    fixture.solver.AnswerAtDeadline();
    const auto answer = fixture.Compute(ChainProfile({}), kTight);
    if (absl::IsDeadlineExceeded(answer.status())) return false;
    EXPECT_TRUE(answer.ok() && !answer->plan.search_complete) << answer.status();
    return true;
  }));
}

TEST(BestSoFar, ALaterCallerMovesTheDeadlineAndTheEarlierOneGetsWhatThereIs) {
  EXPECT_TRUE(WithinSomeTime(milliseconds(400), [](milliseconds time) {
    PlanningFixture fixture(true);
    fixture.solver.AnswerAtDeadline();
    fixture.solver.TellOf(TightSchedule());
    fixture.Ask(0, ChainProfile({}), kTight, Clock::now() + time);
    fixture.Ask(1, ChainProfile({}), kTight, Clock::now() + seconds(60));
    const auto early = fixture.answers.WaitFor(0);
    if (absl::IsDeadlineExceeded(early.status())) return false;
    EXPECT_TRUE(early.ok()) << early.status();
    if (fixture.metrics.flights_joined == 0 || !early.ok()) return false;
    EXPECT_FALSE(early->plan.search_complete);
    EXPECT_LE(early->plan.prediction.peak, kTight);
    EXPECT_EQ(fixture.solver.stopped(), 0);
    fixture.solver.Release();
    const auto late = fixture.answers.WaitFor(1);
    EXPECT_TRUE(late.ok() && late->plan.search_complete) << late.status();
    EXPECT_TRUE(late.ok() && late->source == AnswerSource::kShared);
    EXPECT_EQ(fixture.solver.started(), 1);
    return true;
  }));
}

TEST(BestSoFar, WithoutAPlanADeadlineIsAnErrorAtTheDeadlineAndNotBefore) {
  EXPECT_TRUE(WithinSomeTime(milliseconds(200), [](milliseconds time) {
    PlanningFixture fixture(true);
    const auto deadline = Clock::now() + time;
    fixture.Ask(0, ChainProfile({}), kTight, deadline);
    EXPECT_TRUE(absl::IsDeadlineExceeded(fixture.answers.WaitFor(0).status()));
    EXPECT_GE(Clock::now(), deadline);
    return fixture.solver.started() == 1 && fixture.solver.WaitUntilStopped(1);
  }));
}

TEST(BestSoFar, WhatTheEvaluatorRefusesIsNoPlan) {
  PlanningFixture fixture(true);
  fixture.solver.TellOf(Instance(ChainProfile({})).store_all_schedule());  // over the budget
  fixture.Ask(0, ChainProfile({}), kTight, Clock::now() + milliseconds(150));
  EXPECT_TRUE(absl::IsDeadlineExceeded(fixture.answers.WaitFor(0).status()));
}

TEST(BestSoFar, ItIsJudgedUnderTheCallersOwnCosts) {
  EXPECT_TRUE(WithinSomeTime(milliseconds(150), [](milliseconds time) {
    PlanningFixture fixture(true);
    fixture.solver.TellOf(TightSchedule());
    fixture.Ask(0, ChainProfile({}), kTight);
    EXPECT_TRUE(fixture.solver.WaitUntilStarted(1));
    ProfileShape heavy;
    heavy.overhead = 200;
    fixture.Ask(1, ChainProfile(heavy), kTight, Clock::now() + time);
    ProfileShape slow;
    slow.forward_time = 1000;
    fixture.Ask(2, ChainProfile(slow), kTight, Clock::now() + time);
    EXPECT_TRUE(absl::IsDeadlineExceeded(fixture.answers.WaitFor(1).status()));
    const auto judged = fixture.answers.WaitFor(2);
    fixture.solver.Release();
    EXPECT_TRUE(fixture.answers.WaitFor(0).ok());
    if (absl::IsDeadlineExceeded(judged.status())) return false;
    EXPECT_TRUE(judged.ok()) << judged.status();
    if (!judged.ok()) return true;
    EXPECT_GT(judged->plan.prediction.makespan, Nanos(6000));
    return true;
  }));
}

}  // namespace
}  // namespace stowage::testing
