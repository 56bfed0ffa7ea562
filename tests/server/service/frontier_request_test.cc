// All budgets at once: solved once, kept, and judged under each caller's own costs.
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <vector>

#include "server/entries/frontier_under.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/schedule.h"
#include "tests/server/service/planning_fixture.h"
#include "tests/server/support/growing_deadline.h"

namespace stowage::testing {
namespace {

struct FrontierFixture : PlanningFixture {
  using PlanningFixture::PlanningFixture;

  using Deadline = std::optional<std::chrono::steady_clock::time_point>;

  void AskFrontier(int index, const Profile& profile, Deadline deadline = std::nullopt) {
    service->GetFrontier(ComputeRequest{profile, kTight, KeyOptions(), deadline},
                         answers.Of(index));
  }
  absl::StatusOr<ComputeAnswer> Get(const Profile& profile) {
    const int index = next_index++;
    AskFrontier(index, profile);
    return answers.WaitFor(index);
  }
};

// Every point is what its schedule takes on the profile.
void ExpectTrue(const Frontier& frontier, const Profile& profile) {
  ASSERT_FALSE(frontier.points().empty());
  for (const Frontier::Point& point : frontier.points()) {
    const auto simulation = Evaluator(profile.problem).Run(point.schedule.Unpack());
    ASSERT_TRUE(simulation.ok()) << simulation.status();
    EXPECT_EQ(simulation->peak, point.peak);
    EXPECT_EQ(simulation->makespan, point.makespan);
  }
}

TEST(FrontierRequest, IsSolvedOnceAndKeptBesideThePlans) {
  FrontierFixture fixture(false);
  const Profile profile = ChainProfile({});
  ASSERT_TRUE(fixture.Compute(profile, kTight).ok());
  const auto solved = fixture.Get(profile);
  ASSERT_TRUE(solved.ok()) << solved.status();
  EXPECT_EQ(solved->source, AnswerSource::kSolved);
  ExpectTrue(*solved->frontier, profile);
  EXPECT_EQ(solved->frontier->points().front().peak, LeastPeak(profile));
  const auto cached = fixture.Get(profile);
  ASSERT_TRUE(cached.ok());
  EXPECT_EQ(cached->source, AnswerSource::kCache);
  EXPECT_EQ(cached->frontier->Encode(), solved->frontier->Encode());
  EXPECT_EQ(fixture.solver.frontiers(), 1);
  EXPECT_EQ(fixture.metrics.Solves(SolveOutcome::kFound), 2);  // the plan, and the frontier
  EXPECT_EQ(fixture.Compute(profile, kTight)->source, AnswerSource::kCache);
  EXPECT_EQ(fixture.store.stats().entries, 1);
}

TEST(FrontierRequest, OneSolveForAllWhoAskAtOnce) {
  FrontierFixture fixture(true);
  for (int i = 0; i < 10; ++i) {
    ProfileShape jittered;
    jittered.forward_time += i % 2;
    fixture.AskFrontier(i, ChainProfile(jittered));
  }
  fixture.solver.Release();
  for (int i = 0; i < 10; ++i) {
    ProfileShape jittered;
    jittered.forward_time += i % 2;
    const auto answer = fixture.answers.WaitFor(i);
    ASSERT_TRUE(answer.ok()) << answer.status();
    ExpectTrue(*answer->frontier, ChainProfile(jittered));
  }
  EXPECT_EQ(fixture.solver.frontiers(), 1);
  EXPECT_EQ(fixture.metrics.flights_joined, 9);
}

TEST(FrontierRequest, OtherMemoryOrFarOtherTimesAreSolvedAnew) {
  FrontierFixture fixture(false);
  ASSERT_TRUE(fixture.Get(ChainProfile({})).ok());
  ProfileShape heavy, slow;
  heavy.overhead = 60;
  slow.forward_time = 1000;
  for (const ProfileShape& shape : {heavy, slow}) {
    const auto answer = fixture.Get(ChainProfile(shape));
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(answer->source, AnswerSource::kSolved);
    ExpectTrue(*answer->frontier, ChainProfile(shape));
  }
  // They did not take the first one's place.
  EXPECT_EQ(fixture.Get(ChainProfile({}))->source, AnswerSource::kCache);
}

TEST(FrontierRequest, CancelsStopTheSolve) {
  FrontierFixture fixture(true);
  const auto call = fixture.service->GetFrontier(
      ComputeRequest{ChainProfile({}), kTight, KeyOptions(), std::nullopt}, fixture.answers.Of(0));
  fixture.service->Cancel(call);
  EXPECT_TRUE(absl::IsCancelled(fixture.answers.WaitFor(0).status()));
}

TEST(FrontierRequest, WhatTheDeadlineCutShortIsAnsweredInTimeAndNotKept) {
  EXPECT_TRUE(WithinSomeTime(std::chrono::milliseconds(300), [](std::chrono::milliseconds time) {
    FrontierFixture fixture(true);
    fixture.solver.AnswerAtDeadline();
    fixture.AskFrontier(0, ChainProfile({}), std::chrono::steady_clock::now() + time);
    const auto answer = fixture.answers.WaitFor(0);
    if (absl::IsDeadlineExceeded(answer.status())) return false;
    EXPECT_TRUE(answer.ok()) << answer.status();
    if (!answer.ok()) return true;
    EXPECT_FALSE(answer->frontier->info().search_complete);
    ExpectTrue(*answer->frontier, ChainProfile({}));
    EXPECT_EQ(fixture.store.stats().entries, 0);
    fixture.solver.Release();
    const auto whole = fixture.Get(ChainProfile({}));
    EXPECT_TRUE(whole.ok()) << whole.status();
    if (!whole.ok()) return true;
    EXPECT_TRUE(whole->frontier->info().search_complete);
    EXPECT_EQ(whole->source, AnswerSource::kSolved);
    EXPECT_EQ(fixture.store.stats().entries, 1);
    return true;
  }));
}

TEST(FrontierRequest, AServersOwnBoundIsSuchADeadline) {
  EXPECT_TRUE(WithinSomeTime(std::chrono::milliseconds(200), [](std::chrono::milliseconds time) {
    PlanningOptions options;
    options.max_solve_time = time;
    FrontierFixture fixture(true, options);
    fixture.solver.AnswerAtDeadline();
    const auto answer = fixture.Get(ChainProfile({}));
    if (absl::IsDeadlineExceeded(answer.status())) return false;
    EXPECT_TRUE(answer.ok() && !answer->frontier->info().search_complete) << answer.status();
    EXPECT_EQ(fixture.solver.frontiers(), 1);
    return true;
  }));
}

// Joined when the search had just ended, say.
TEST(FrontierRequest, WhatWasCutShortForOthersIsSolvedAnewForWhoHasTime) {
  FrontierFixture fixture(false);
  fixture.solver.CutNextFrontierShort();
  const auto answer = fixture.Get(ChainProfile({}));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE(answer->frontier->info().search_complete);
  EXPECT_EQ(fixture.solver.frontiers(), 2);
}

TEST(FrontierRequest, ACallerWithMoreTimeMovesTheDeadlineOfTheSolve) {
  EXPECT_TRUE(WithinSomeTime(std::chrono::milliseconds(300), [](std::chrono::milliseconds time) {
    FrontierFixture fixture(true);
    fixture.solver.AnswerAtDeadline();
    fixture.AskFrontier(0, ChainProfile({}), std::chrono::steady_clock::now() + time);
    fixture.AskFrontier(1, ChainProfile({}),
                        std::chrono::steady_clock::now() + std::chrono::seconds(60));
    const auto early = fixture.answers.WaitFor(0);
    fixture.solver.Release();
    const auto late = fixture.answers.WaitFor(1);
    EXPECT_TRUE(late.ok()) << late.status();
    EXPECT_TRUE(late.ok() && late->frontier->info().search_complete);
    return early.ok() || absl::IsDeadlineExceeded(early.status());
  }));
}

TEST(FitBatches, EverySolveCounts) {
  FrontierFixture fixture(false);
  ProfileShape larger;
  larger.output = 200;
  BatchRequest batches;
  batches.model = std::make_shared<const BatchModel>(
      *BatchModel::Create({{1, ChainProfile({})}, {2, ChainProfile(larger)}}));
  batches.budget = Bytes(5000);
  fixture.service->FitBatches(ComputeRequest{ChainProfile({}), kTight, KeyOptions(), std::nullopt},
                              batches, fixture.answers.Of(0));
  const auto answer = fixture.answers.WaitFor(0);
  ASSERT_TRUE(answer.ok()) << answer.status();
  int64_t solves = 0;
  for (const auto& count : fixture.metrics.solves) solves += count;
  EXPECT_EQ(solves, static_cast<int64_t>(answer->batches->points.size()));
  EXPECT_EQ(solves, fixture.solver.started());
}

}  // namespace
}  // namespace stowage::testing
