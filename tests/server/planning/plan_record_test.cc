#include "server/planning/plan_record.h"

#include <gtest/gtest.h>

#include "server/planning/plan_under.h"
#include "tests/server/support/profiles.h"

namespace stowage::testing {
namespace {

using Problem = std::shared_ptr<const PlanningProblem>;

Problem ProblemOf(const ProfileShape& shape) {
  return *MakePlanningProblem(ChainProfile(shape), KeyOptions(), Sha256);
}

Problem WithOverhead(int64_t overhead) {
  ProfileShape shape;
  shape.overhead = overhead;
  return ProblemOf(shape);
}

SolvedPlan Solved(const Problem& problem, Bytes budget) {
  return SolvedPlan{problem, *MakeChainPlan(*problem->chain, budget, PlanOptions()), false};
}

TEST(PlanRecord, TheKeyIsTheOneEverybodyComputes) {
  EXPECT_EQ(ProblemOf({})->key, MakePlanKey(ChainProfile({}), KeyOptions()));
}

TEST(PlanRecord, TheFirstPlanBringsItsCostsAsReference) {
  const Problem problem = ProblemOf({});
  SolvedPlan solved = Solved(problem, Bytes(1500));
  const PlanEntry entry = Record(nullptr, &solved);
  EXPECT_EQ(entry.canonical, problem->canonical);
  EXPECT_EQ(entry.reference, problem->chain);
  ASSERT_EQ(entry.plans.size(), 1u);
  EXPECT_EQ(entry.plans[0]->revision, 1);
  EXPECT_FALSE(entry.least_budget.has_value());
}

TEST(PlanRecord, APlanOfEqualBudgetIsReplacedByTheNextRevision) {
  const Problem problem = ProblemOf({});
  SolvedPlan solved = Solved(problem, Bytes(1500));
  const PlanEntry first = Record(nullptr, &solved);
  SolvedPlan other = Solved(problem, Bytes(1600));
  const PlanEntry second = Record(&first, &other);
  EXPECT_EQ(second.plans.size(), 2u);
  EXPECT_EQ(other.plan.revision, 1);
  SolvedPlan again = Solved(problem, Bytes(1500));
  const PlanEntry third = Record(&second, &again);
  EXPECT_EQ(third.plans.size(), 2u);
  EXPECT_EQ(again.plan.revision, 2);
}

TEST(PlanRecord, ALeastBudgetIsRemembered) {
  const Problem problem = ProblemOf({});
  const Bytes least = LeastPeak(ChainProfile({}));
  SolvedPlan solved = Solved(problem, least);
  solved.least = true;
  const PlanEntry entry = Record(nullptr, &solved);
  EXPECT_EQ(entry.least_budget, least);
}

TEST(PlanRecord, CostsUnderWhichThePlanHoldsStayTheReference) {
  const Problem large = WithOverhead(50);
  const Problem small = WithOverhead(0);
  SolvedPlan first = Solved(small, StoreAllPeak(ChainProfile({})));
  const PlanEntry before = Record(nullptr, &first);
  SolvedPlan second = Solved(large, Bytes(1500));
  const PlanEntry after = Record(&before, &second);
  EXPECT_EQ(after.reference, small->chain);
  EXPECT_EQ(after.plans.size(), 2u);
  EXPECT_LT(after.plans[1]->prediction.peak, second.plan.prediction.peak);
}

TEST(PlanRecord, CostsUnderWhichItDoesNotHoldGiveWay) {
  const Problem large = WithOverhead(50);
  const Problem small = WithOverhead(0);
  const Bytes peak = StoreAllPeak(ChainProfile({}));
  SolvedPlan first = Solved(large, Bytes(1500));
  SolvedPlan roomy = Solved(large, peak + Bytes(1000));
  const PlanEntry one = Record(nullptr, &first);
  const PlanEntry before = Record(&one, &roomy);
  // Store-all at its exact peak without overheads does not fit with them.
  SolvedPlan tight = Solved(small, peak);
  ASSERT_EQ(tight.plan.prediction.peak, peak);
  const PlanEntry after = Record(&before, &tight);
  EXPECT_EQ(after.reference, small->chain);
  EXPECT_EQ(after.plans.size(), 3u);
  for (const auto& plan : after.plans) {
    Plan copy = *plan;
    EXPECT_TRUE(Referee(*small->chain, &copy).ok());
    EXPECT_EQ(copy.prediction.peak, plan->prediction.peak);
  }
}

TEST(PlanRecord, PlansPerEntryAreBounded) {
  const Problem problem = ProblemOf({});
  SolvedPlan solved = Solved(problem, Bytes(1500));
  PlanEntry entry = Record(nullptr, &solved);
  for (size_t i = 1; i <= kMaxPlansPerEntry; ++i) {
    SolvedPlan next = solved;
    next.plan.budget = Bytes(1500 + static_cast<int64_t>(i));
    entry = Record(&entry, &next);
  }
  EXPECT_EQ(entry.plans.size(), kMaxPlansPerEntry);
  EXPECT_EQ(entry.plans.front()->budget, Bytes(1501));
}

TEST(PlanUnder, OptimalUnderOtherTimesIsNotClaimedOptimalUnderThese) {
  const Problem reference = ProblemOf({});
  ProfileShape jittered;
  jittered.forward_time += 3;
  const Problem caller = ProblemOf(jittered);
  const Plan plan = Solved(reference, Bytes(1500)).plan;
  ASSERT_TRUE(plan.bounds.proven_optimal);
  ASSERT_GT(plan.prediction.recomputed_forwards, 0);
  const auto same = PlanUnder(*reference->chain, *reference->chain, plan, Bytes(1500));
  const auto other = PlanUnder(*caller->chain, *reference->chain, plan, Bytes(1500));
  ASSERT_TRUE(same && other);
  EXPECT_TRUE(same->bounds.proven_optimal);
  EXPECT_FALSE(other->bounds.proven_optimal);
  EXPECT_GT(other->prediction.makespan, plan.prediction.makespan);
}

TEST(PlanUnder, InfeasibleUnderOtherOverheadsSaysNothing) {
  const Problem small = WithOverhead(0);
  const Problem large = WithOverhead(50);
  const Plan plan = Solved(large, Bytes(10)).plan;
  ASSERT_EQ(plan.status, PlanStatus::kProvenInfeasible);
  EXPECT_FALSE(PlanUnder(*small->chain, *large->chain, plan, Bytes(10)).has_value());
  EXPECT_TRUE(PlanUnder(*large->chain, *large->chain, plan, Bytes(10)).has_value());
}

}  // namespace
}  // namespace stowage::testing
