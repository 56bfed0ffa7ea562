#include "server/entries/plan_lookup.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <variant>

#include "tests/server/support/profiles.h"

namespace stowage {
namespace {

std::shared_ptr<const Plan> Solved(int64_t budget, int64_t peak, int64_t makespan,
                                   int recomputed = 1) {
  Plan plan;
  plan.status = PlanStatus::kFound;
  plan.budget = Bytes(budget);
  plan.prediction.peak = Bytes(peak);
  plan.prediction.makespan = Nanos(makespan);
  plan.prediction.recomputed_forwards = recomputed;
  plan.bounds.store_all_makespan = Nanos(50);
  return std::make_shared<const Plan>(plan);
}

std::shared_ptr<const Plan> Without(PlanStatus status, int64_t budget, int64_t least) {
  Plan plan;
  plan.status = status;
  plan.budget = Bytes(budget);
  plan.bounds.least_budget = Bytes(least);
  return std::make_shared<const Plan>(plan);
}

TEST(PlanLookup, APlanServesFromItsPeakToItsBudget) {
  const auto plan = Solved(100, 80, 60);
  EXPECT_FALSE(Serves(*plan, Bytes(79)));
  EXPECT_TRUE(Serves(*plan, Bytes(80)));
  EXPECT_TRUE(Serves(*plan, Bytes(100)));
  EXPECT_FALSE(Serves(*plan, Bytes(101)));
}

TEST(PlanLookup, APlanWithoutRecomputeServesEveryLargerBudget) {
  const auto plan = Solved(100, 80, 50, 0);
  EXPECT_FALSE(Serves(*plan, Bytes(79)));
  EXPECT_TRUE(Serves(*plan, Bytes(1000000)));
}

TEST(PlanLookup, APlanThatRecomputesInNoTimeServesNoLargerBudget) {
  const auto plan = Solved(100, 80, 50, 2);
  ASSERT_EQ(plan->prediction.makespan, plan->bounds.store_all_makespan);
  EXPECT_TRUE(Serves(*plan, Bytes(100)));
  EXPECT_FALSE(Serves(*plan, Bytes(101)));
}

TEST(PlanLookup, ProvenInfeasibleServesBelowTheLeastBudget) {
  const auto plan = Without(PlanStatus::kProvenInfeasible, 10, 70);
  EXPECT_TRUE(Serves(*plan, Bytes(0)));
  EXPECT_TRUE(Serves(*plan, Bytes(69)));
  EXPECT_FALSE(Serves(*plan, Bytes(70)));
}

TEST(PlanLookup, NotFoundServesItsOwnBudgetAlone) {
  const auto plan = Without(PlanStatus::kNotFound, 60, 0);
  EXPECT_FALSE(Serves(*plan, Bytes(59)));
  EXPECT_TRUE(Serves(*plan, Bytes(60)));
  EXPECT_FALSE(Serves(*plan, Bytes(61)));
}

TEST(PlanLookup, TheFastestComesFirstAndSchedulesBeforeRefusals) {
  PlanEntry entry;
  entry.plans = {{Without(PlanStatus::kNotFound, 90, 0)},
                 {Solved(100, 80, 70)},
                 {Solved(95, 85, 60)},
                 {Solved(70, 60, 55)}};
  const auto serving = PlansServing(entry, Bytes(90));
  ASSERT_EQ(serving.size(), 3u);
  EXPECT_EQ(serving[0], entry.plans[2].plan);
  EXPECT_EQ(serving[1], entry.plans[1].plan);
  EXPECT_EQ(serving[2], entry.plans[0].plan);
  EXPECT_TRUE(PlansServing(entry, Bytes(75)).empty());
  EXPECT_EQ(FirstPlanServing(entry, Bytes(90)), serving[0]);
  EXPECT_EQ(FirstPlanServing(entry, Bytes(75)), nullptr);
}

// Equal ones, shadows, pins and what is not found: in any of them the first is the first of all.
TEST(PlanLookup, TheFirstThatServesIsTheFirstOfAllThatServe) {
  std::mt19937 random(5);
  const auto below = [&random](int limit) { return static_cast<int>(random() % limit); };
  int served = 0;
  for (int i = 0; i < 2000; ++i) {
    PlanEntry entry;
    for (int plans = below(6); plans > 0; --plans) {
      const int64_t budget = 80 + 10 * below(3);
      StoredPlan stored{below(5) == 0 ? Without(PlanStatus::kNotFound, budget, 0)
                                      : Solved(budget, 60 + 10 * below(3), 50 + 10 * below(2))};
      stored.state = static_cast<RevisionState>(below(3));
      stored.pinned = stored.state == RevisionState::kServing && below(4) == 0;
      entry.plans.push_back(stored);
    }
    for (const int64_t budget : {60, 70, 80, 90, 100}) {
      const auto all = PlansServing(entry, Bytes(budget));
      EXPECT_EQ(FirstPlanServing(entry, Bytes(budget)), all.empty() ? nullptr : all.front());
      served += all.empty() ? 0 : 1;
    }
  }
  EXPECT_GT(served, 1000);
}

TEST(PlanLookup, WhatWaitsInShadowOrWasRolledBackServesNobody) {
  PlanEntry entry;
  entry.plans = {{Solved(100, 80, 70)}, {Solved(101, 80, 50)}, {Solved(102, 80, 60)}};
  entry.plans[1].state = RevisionState::kShadow;
  entry.plans[2].state = RevisionState::kRetired;
  const auto serving = PlansServing(entry, Bytes(90));
  ASSERT_EQ(serving.size(), 1u);
  EXPECT_EQ(serving[0], entry.plans[0].plan);
}

// A problem, its first stage's forward taking `first_forward`.
std::shared_ptr<PlanningProblem> ProblemWith(int64_t first_forward) {
  ChainSpec spec = std::get<Chain>(testing::ChainProfile({}).problem).spec();
  spec.stages[0].forward_time = Nanos(first_forward);
  const Profile profile{"test", Device(), *Chain::Create(spec), CostSource::kMeasured};
  return *MakePlanningProblem(profile, KeyOptions(), Sha256);
}

// Store-all, but for one stage that runs forward twice.
std::shared_ptr<const Plan> Recomputing(int stage, const Chain& chain) {
  auto plan = std::make_shared<Plan>();
  plan->status = PlanStatus::kFound;
  plan->budget = Bytes(100000);
  const int last = chain.length() + 1;
  for (int l = 1; l <= last; ++l) {
    plan->schedule.push_back(l == stage ? ForwardNoSave(l) : ForwardSave(l));
  }
  for (int l = last; l >= 1; --l) {
    if (l == stage) plan->schedule.push_back(ForwardSave(l));
    plan->schedule.push_back(Backward(l));
  }
  EXPECT_TRUE(ValidatePlan(chain, plan.get()).ok());
  return plan;
}

std::shared_ptr<const Plan> For(Bytes budget, const std::shared_ptr<const Plan>& plan) {
  auto copy = std::make_shared<Plan>(*plan);
  copy->budget = budget;
  return copy;
}

TEST(BestAccepted, IsTheFastestUnderTheCallersOwnTimes) {
  const auto reference = ProblemWith(1);
  const auto caller = ProblemWith(1000);
  PlanEntry entry;
  entry.canonical = *reference->canonical;
  entry.reference = reference->costs;
  entry.plans = {
      {Recomputing(1, std::get<Chain>(reference->costs->problem()))},
      {For(Bytes(100001), Recomputing(3, std::get<Chain>(reference->costs->problem())))}};
  const Found ours = BestAccepted(*reference, entry, Bytes(100000));
  const Found theirs = BestAccepted(*caller, entry, Bytes(100000));
  ASSERT_TRUE(ours.plan && theirs.plan);
  EXPECT_EQ(ours.plan->schedule, entry.plans[0].plan->schedule);
  EXPECT_EQ(theirs.plan->schedule, entry.plans[1].plan->schedule);
  EXPECT_EQ(theirs.outcome, PlanLookup::kHit);
}

// Repeating a first stage of 1000 where it took 1: far from what a solve would reach.
TEST(BestAccepted, IsNotWhatIsStaleUnderTheCallersTimes) {
  const auto reference = ProblemWith(10), caller = ProblemWith(1000);
  PlanEntry entry;
  entry.canonical = *reference->canonical;
  entry.reference = reference->costs;
  entry.plans = {{Recomputing(1, std::get<Chain>(reference->costs->problem()))}};
  EXPECT_EQ(BestAccepted(*reference, entry, Bytes(100000)).freshness, Freshness::kFresh);
  const Found found = BestAccepted(*caller, entry, Bytes(100000));
  EXPECT_FALSE(found.plan.has_value());
  EXPECT_EQ(found.freshness, Freshness::kStale);
  EXPECT_EQ(found.outcome, PlanLookup::kRefused);
  EXPECT_EQ(found.refused, 1);

  const Found tolerant = BestAccepted(*caller, entry, Bytes(100000), 0.5);
  EXPECT_TRUE(tolerant.plan.has_value());
  EXPECT_EQ(tolerant.freshness, Freshness::kAging);
  EXPECT_EQ(tolerant.outcome, PlanLookup::kHit);

  // Where nothing may change, it is the answer.
  PlanEntry frozen = entry, pinned = entry;
  frozen.frozen = true;
  pinned.plans[0].pinned = true;
  for (const PlanEntry& kept : {frozen, pinned}) {
    EXPECT_TRUE(BestAccepted(*caller, kept, Bytes(100000)).plan.has_value());
  }
}

TEST(BestAccepted, JudgesNoMoreThanItsLimit) {
  const auto problem = ProblemWith(1);
  PlanEntry entry;
  entry.canonical = *problem->canonical;
  entry.reference = problem->costs;
  for (int i = 0; i <= kMaxJudged; ++i) entry.plans.push_back({Solved(100 + i, 80, 60)});
  const Found found = BestAccepted(*problem, entry, Bytes(90));
  EXPECT_FALSE(found.plan.has_value());
  EXPECT_EQ(found.outcome, PlanLookup::kRefused);
  EXPECT_EQ(found.refused, kMaxJudged);
}

}  // namespace
}  // namespace stowage
