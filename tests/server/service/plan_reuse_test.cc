// When a cached plan answers, and when it is solved anew.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <utility>

#include "server/entries/planning_error.h"
#include "tests/server/service/planning_fixture.h"
#include "tests/server/support/forwarding_store.h"

namespace stowage::testing {
namespace {

TEST(PlanReuse, TheFirstQuestionIsSolvedTheSecondIsNot) {
  PlanningFixture fixture(false);
  const auto first = fixture.Compute(ChainProfile({}), kTight);
  const auto second = fixture.Compute(ChainProfile({}), kTight);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->source, AnswerSource::kSolved);
  EXPECT_EQ(second->source, AnswerSource::kCache);
  EXPECT_EQ(first->key, MakePlanKey(ChainProfile({}), KeyOptions()));
  EXPECT_EQ(first->plan.schedule, second->plan.schedule);
  EXPECT_LE(first->plan.prediction.peak, kTight);
  EXPECT_EQ(fixture.solver.started(), 1);
  EXPECT_EQ(fixture.metrics.cache_hits, 1);
  EXPECT_EQ(fixture.metrics.cache_misses, 1);
  EXPECT_EQ(fixture.metrics.Lookups(PlanLookup::kHit), 1);
  EXPECT_EQ(fixture.metrics.Lookups(PlanLookup::kNoEntry), 1);
  EXPECT_EQ(fixture.metrics.Solves(SolveOutcome::kFound), 1);
}

// Where somebody else is faster with the first changes.
class OvertakenStore final : public ForwardingStore {
 public:
  OvertakenStore(std::shared_ptr<PlanStore> store, int times)
      : ForwardingStore(std::move(store)), times_(times) {}

  absl::Status Replace(const PlanKey& key, int64_t read, std::shared_ptr<const PlanEntry> entry,
                       Durability durability) override {
    if (times_-- > 0) return StaleGenerationError();
    return ForwardingStore::Replace(key, read, std::move(entry), durability);
  }

 private:
  std::atomic<int> times_;
};

TEST(PlanReuse, APlanIsKeptAlsoWhereOthersWereFasterSeveralTimes) {
  OvertakenStore store(std::make_shared<MemoryPlanStore>(Bytes(64 << 20)), 5);
  Answers answers;
  CountingMetrics metrics;
  FakeSolver solver(false);
  PlanningService service(PlanningOptions(), &store, &solver, &metrics);
  for (const AnswerSource source : {AnswerSource::kSolved, AnswerSource::kCache}) {
    const int index = static_cast<int>(source);
    service.ComputePlan(ComputeRequest{ChainProfile({}), kTight, KeyOptions(), std::nullopt},
                        answers.Of(index));
    const auto answer = answers.WaitFor(index);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->source, source);
  }
  EXPECT_EQ(solver.started(), 1);
}

TEST(PlanReuse, JitteredTimesHitAndArePredictedAnew) {
  PlanningFixture fixture(false);
  const auto first = fixture.Compute(ChainProfile({}), kTight);
  ProfileShape jittered;
  jittered.forward_time += 2;
  const auto second = fixture.Compute(ChainProfile(jittered), kTight);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(second->source, AnswerSource::kCache);
  EXPECT_EQ(second->plan.schedule, first->plan.schedule);
  EXPECT_GT(second->plan.prediction.makespan, first->plan.prediction.makespan);
  EXPECT_EQ(fixture.solver.started(), 1);
}

TEST(PlanReuse, OverheadsThatBreakTheBudgetAreSolvedAnewAndKept) {
  PlanningFixture fixture(false);
  const auto first = fixture.Compute(ChainProfile({}), Bytes(1599));
  ASSERT_TRUE(first.ok());
  const Bytes budget = first->plan.prediction.peak;
  ProfileShape heavy;
  heavy.overhead = 60;
  const auto second = fixture.Compute(ChainProfile(heavy), budget);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->source, AnswerSource::kSolved);
  EXPECT_LE(second->plan.prediction.peak, budget);
  EXPECT_EQ(fixture.solver.started(), 2);
  EXPECT_EQ(fixture.metrics.plans_refused, 1);
  EXPECT_EQ(fixture.metrics.Lookups(PlanLookup::kRefused), 1);
  const auto third = fixture.Compute(ChainProfile(heavy), budget);
  ASSERT_TRUE(third.ok());
  EXPECT_EQ(third->source, AnswerSource::kCache);
  EXPECT_EQ(third->plan.schedule, second->plan.schedule);
  EXPECT_EQ(fixture.solver.started(), 2);
}

// Hits tell, too: the prediction that GetPlan gives is that of several jobs' costs.
TEST(PlanReuse, JobsThatAgreeMoveTheReference) {
  PlanningFixture fixture(false);
  const auto ask = [&fixture](int64_t forward_time, const std::string& job) {
    ProfileShape shape;
    shape.forward_time = forward_time;
    ComputeRequest request{ChainProfile(shape), kTight, KeyOptions(), std::nullopt};
    request.job = job;
    const int index = fixture.next_index++;
    fixture.service->ComputePlan(request, fixture.answers.Of(index));
    return *fixture.answers.WaitFor(index);
  };
  const ComputeAnswer first = ask(100, "a");
  const auto known = [&] {
    return fixture.service->GetPlan({first.key}, kTight)->plan->prediction.makespan;
  };
  EXPECT_EQ(known(), first.plan.prediction.makespan);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(ask(120, "b").source, AnswerSource::kCache);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (known() == first.plan.prediction.makespan && std::chrono::steady_clock::now() < deadline) {
    ask(120, "c");
  }
  EXPECT_EQ(known(), ask(120, "d").plan.prediction.makespan);
}

TEST(PlanReuse, AnotherStructureIsAnotherKey) {
  PlanningFixture fixture(false);
  ProfileShape other;
  other.output = 101;
  ASSERT_TRUE(fixture.Compute(ChainProfile({}), kTight).ok());
  ASSERT_TRUE(fixture.Compute(ChainProfile(other), kTight).ok());
  EXPECT_EQ(fixture.solver.started(), 2);
}

TEST(PlanReuse, ABudgetBetweenPeakAndBudgetOfAPlanIsServedByIt) {
  PlanningFixture fixture(false);
  const auto solved = fixture.Compute(ChainProfile({}), Bytes(1599));
  ASSERT_TRUE(solved.ok());
  const Bytes peak = solved->plan.prediction.peak;
  ASSERT_LT(peak, Bytes(1599));
  const auto served = fixture.Compute(ChainProfile({}), peak);
  ASSERT_TRUE(served.ok());
  EXPECT_EQ(served->source, AnswerSource::kCache);
  EXPECT_EQ(served->plan.budget, peak);
  const auto below = fixture.Compute(ChainProfile({}), peak - Bytes(1));
  ASSERT_TRUE(below.ok());
  EXPECT_EQ(below->source, AnswerSource::kSolved);
}

TEST(PlanReuse, InfeasibleIsAnAnswerThatServesBelowTheLeastBudget) {
  PlanningFixture fixture(false);
  const Bytes least = LeastPeak(ChainProfile({}));
  const auto first = fixture.Compute(ChainProfile({}), least - Bytes(1));
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->plan.status, PlanStatus::kProvenInfeasible);
  EXPECT_EQ(first->plan.bounds.least_budget, least);
  const auto second = fixture.Compute(ChainProfile({}), Bytes(5));
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->source, AnswerSource::kCache);
  EXPECT_EQ(second->plan.budget, Bytes(5));
  EXPECT_EQ(fixture.solver.started(), 1);
  const auto feasible = fixture.Compute(ChainProfile({}), least);
  ASSERT_TRUE(feasible.ok());
  EXPECT_EQ(feasible->plan.status, PlanStatus::kFound);
}

TEST(PlanReuse, LeastIsSolvedOnceAndThenKnown) {
  PlanningFixture fixture(false);
  const auto first = fixture.Compute(ChainProfile({}), LeastBudget{});
  const auto second = fixture.Compute(ChainProfile({}), LeastBudget{});
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->plan.budget, LeastPeak(ChainProfile({})));
  EXPECT_EQ(second->source, AnswerSource::kCache);
  EXPECT_EQ(second->plan.budget, first->plan.budget);
  EXPECT_EQ(fixture.solver.started(), 1);
  EXPECT_EQ(fixture.metrics.cache_misses, 1);
  EXPECT_EQ(fixture.metrics.cache_hits, 1);
}

TEST(PlanReuse, GraphPlansNameTheCallersOwnVertices) {
  PlanningFixture fixture(false);
  const Budget budget = ShareOfStoreAll{0.7};
  const auto first = fixture.Compute(GraphProfile(8, 0, 1), budget);
  const auto second = fixture.Compute(GraphProfile(8, 500, 10), budget);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(second->source, AnswerSource::kCache);
  const auto& ours = first->plan.stage_vertices;
  const auto& theirs = second->plan.stage_vertices;
  ASSERT_FALSE(ours.empty());
  ASSERT_EQ(ours.size(), theirs.size());
  for (size_t stage = 0; stage < ours.size(); ++stage) {
    ASSERT_EQ(ours[stage].size(), theirs[stage].size());
    for (size_t i = 0; i < ours[stage].size(); ++i) {
      EXPECT_EQ(theirs[stage][i], 500 + 10 * ours[stage][i]);
    }
  }
}

TEST(PlanReuse, EqualDigestsOfDifferentProblemsAreAMissThatIsCounted) {
  PlanningOptions options;
  options.digest = [](const std::string&) { return Digest(); };
  PlanningFixture fixture(false, options);
  ProfileShape other;
  other.stages = 7;
  ASSERT_TRUE(fixture.Compute(ChainProfile({}), kTight).ok());
  const auto answer = fixture.Compute(ChainProfile(other), kTight);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->source, AnswerSource::kSolved);
  EXPECT_EQ(fixture.metrics.Lookups(PlanLookup::kCollision), 1);
  Plan plan = answer->plan;
  EXPECT_TRUE(ValidatePlan(std::get<Chain>(ChainProfile(other).problem), &plan).ok());
}

TEST(PlanReuse, ThatNothingFitsOneCallerTakesNothingFromTheOthers) {
  PlanningFixture fixture(false);
  ASSERT_TRUE(fixture.Compute(ChainProfile({}), kTight).ok());
  ProfileShape heavy;
  heavy.overhead = 5000;
  const auto infeasible = fixture.Compute(ChainProfile(heavy), kTight);
  ASSERT_TRUE(infeasible.ok());
  EXPECT_EQ(infeasible->plan.status, PlanStatus::kProvenInfeasible);
  const auto again = fixture.Compute(ChainProfile({}), kTight);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->source, AnswerSource::kCache);
  EXPECT_EQ(again->plan.status, PlanStatus::kFound);
}

TEST(PlanReuse, WhatWasMadeWithoutTimesIsNotKept) {
  PlanningFixture fixture(false);
  ProfileShape bytes_only;
  bytes_only.timed = false;
  for (int round = 0; round < 2; ++round) {
    const auto answer = fixture.Compute(ChainProfile(bytes_only), kTight);
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(answer->plan.status, PlanStatus::kFound);
    EXPECT_EQ(answer->source, AnswerSource::kSolved);
  }
  EXPECT_EQ(fixture.store.stats().entries, 0);
}

TEST(PlanReuse, StoreAllWinsWheneverItFitsTheCaller) {
  PlanningFixture fixture(false);
  const Bytes peak = StoreAllPeak(ChainProfile({}));
  ProfileShape heavy;
  heavy.overhead = 50;
  const auto theirs = fixture.Compute(ChainProfile(heavy), peak);
  ASSERT_TRUE(theirs.ok());
  ASSERT_GT(theirs->plan.prediction.recomputed_forwards, 0);
  const auto ours = fixture.Compute(ChainProfile({}), peak);
  ASSERT_TRUE(ours.ok());
  EXPECT_EQ(ours->plan.prediction.recomputed_forwards, 0);
  // Nor does ours take the plan of the larger overheads away.
  const auto again = fixture.Compute(ChainProfile(heavy), peak);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->source, AnswerSource::kCache);
}

TEST(GetPlan, ThatNothingFitsIsNoAnswer) {
  PlanningFixture fixture(false);
  const PlanKey key = MakePlanKey(ChainProfile({}), KeyOptions());
  const auto computed = fixture.Compute(ChainProfile({}), Bytes(5));
  ASSERT_TRUE(computed.ok());
  ASSERT_EQ(computed->plan.status, PlanStatus::kProvenInfeasible);
  EXPECT_TRUE(absl::IsNotFound(fixture.service->GetPlan({key}, Bytes(5)).status()));
}

TEST(GetPlan, TheFirstKeyWithAPlanAnswers) {
  PlanningFixture fixture(false);
  const PlanKey key = MakePlanKey(ChainProfile({}), KeyOptions());
  PlanKey unknown;
  EXPECT_TRUE(absl::IsNotFound(fixture.service->GetPlan({key}, kTight).status()));
  const auto solved = fixture.Compute(ChainProfile({}), kTight);
  ASSERT_TRUE(solved.ok());
  const auto cached = fixture.service->GetPlan({unknown, key}, kTight);
  ASSERT_TRUE(cached.ok());
  EXPECT_EQ(cached->key, key);
  EXPECT_EQ(cached->budget, kTight);
  EXPECT_EQ(cached->plan->schedule, solved->plan.schedule);
  EXPECT_EQ(cached->plan->prediction.makespan, solved->plan.prediction.makespan);
}

TEST(GetPlan, AnotherBudgetIsNotFoundWithItsReason) {
  PlanningFixture fixture(false);
  const PlanKey key = MakePlanKey(ChainProfile({}), KeyOptions());
  ASSERT_TRUE(fixture.Compute(ChainProfile({}), kTight).ok());
  const auto other = fixture.service->GetPlan({key}, kTight + Bytes(1));
  EXPECT_TRUE(absl::IsNotFound(other.status()));
  EXPECT_EQ(PlanningReason(other.status()), "PLAN_NOT_CACHED");
  EXPECT_EQ(fixture.metrics.Lookups(PlanLookup::kNoBudget), 1);
}

TEST(GetPlan, SharesAndLeastMeanTheReferenceCosts) {
  PlanningFixture fixture(false);
  const Profile profile = ChainProfile({});
  const PlanKey key = MakePlanKey(profile, KeyOptions());
  const Budget share = ShareOfStoreAll{0.6};
  ASSERT_TRUE(fixture.Compute(profile, share).ok());
  const auto by_share = fixture.service->GetPlan({key}, share);
  ASSERT_TRUE(by_share.ok());
  EXPECT_EQ(by_share->budget.value(), StoreAllPeak(profile).value() * 6 / 10);
  EXPECT_EQ(fixture.solver.resolved(), 0) << "a share asks no solver";
  EXPECT_TRUE(absl::IsNotFound(fixture.service->GetPlan({key}, LeastBudget{}).status()));
  ASSERT_TRUE(fixture.Compute(profile, LeastBudget{}).ok());
  const auto by_least = fixture.service->GetPlan({key}, LeastBudget{});
  ASSERT_TRUE(by_least.ok());
  EXPECT_EQ(by_least->budget, LeastPeak(profile));
}

TEST(GetPlan, ABudgetThatIsNoneIsRefused) {
  PlanningFixture fixture(false);
  EXPECT_TRUE(absl::IsInvalidArgument(fixture.service->GetPlan({PlanKey()}, Bytes(-1)).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(fixture.Compute(ChainProfile({}), Bytes(-1)).status()));
}

}  // namespace
}  // namespace stowage::testing
