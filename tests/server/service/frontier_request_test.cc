// All budgets at once: solved once, kept, and judged under each caller's own costs.
#include <gtest/gtest.h>

#include <vector>

#include "server/entries/frontier_under.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/schedule.h"
#include "tests/server/service/planning_fixture.h"

namespace stowage::testing {
namespace {

struct FrontierFixture : PlanningFixture {
  using PlanningFixture::PlanningFixture;

  void AskFrontier(int index, const Profile& profile) {
    service->GetFrontier(ComputeRequest{profile, kTight, KeyOptions(), std::nullopt},
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
