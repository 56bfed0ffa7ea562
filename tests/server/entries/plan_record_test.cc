#include "server/entries/plan_record.h"

#include <gtest/gtest.h>

#include "server/entries/cost_compare.h"
#include "server/entries/plan_lookup.h"
#include "server/entries/plan_under.h"
#include "server/entries/revisions.h"
#include "tests/server/support/asked.h"

namespace stowage::testing {
namespace {

ProfileShape Shape(int64_t overhead) {
  ProfileShape shape;
  shape.overhead = overhead;
  return shape;
}

Asked WithOverhead(int64_t overhead) { return ProblemOf(Shape(overhead)); }

std::optional<Plan> Under(const Asked& caller, const Asked& reference, const Plan& plan,
                          Bytes budget) {
  return PlanUnder(*caller->costs, caller->store_all, *reference->costs, plan, budget);
}

TEST(PlanRecord, TheKeyIsTheOneEverybodyComputes) {
  EXPECT_EQ(ProblemOf(ProfileShape())->key, MakePlanKey(ChainProfile({}), KeyOptions()));
}

TEST(PlanRecord, TheFirstPlanBringsItsCostsAsReference) {
  const Asked problem = ProblemOf(ProfileShape());
  SolvedPlan solved = Solved(problem, Bytes(1500));
  const PlanEntry entry = *Record(nullptr, &solved);
  EXPECT_EQ(entry.canonical, *problem->canonical);
  EXPECT_EQ(entry.reference, problem->costs);
  ASSERT_EQ(entry.plans.size(), 1u);
  EXPECT_EQ(entry.plans[0].plan->revision, 1);
  EXPECT_FALSE(entry.least_budget.has_value());
}

TEST(PlanRecord, AFarSlowerPlanDoesNotTakeTheirPlace) {
  const Asked problem = ProblemOf(ProfileShape());
  SolvedPlan solved = Solved(problem, Bytes(1500));
  const PlanEntry first = *Record(nullptr, &solved);
  ASSERT_EQ(solved.plan.status, PlanStatus::kFound);

  PlanOptions options;
  options.solver = "chen_sqrt";
  SolvedPlan slower{problem, *MakePlan(problem->costs->problem(), Bytes(1500), options), false};
  ASSERT_EQ(slower.plan.status, PlanStatus::kFound);
  ASSERT_GT(slower.plan.prediction.makespan.value(),
            solved.plan.prediction.makespan.value() * 21 / 20);
  EXPECT_FALSE(Record(&first, &slower).has_value());

  SolvedPlan nothing = slower;
  nothing.plan.status = PlanStatus::kNotFound;
  nothing.plan.schedule.clear();
  EXPECT_FALSE(Record(&first, &nothing).has_value());
}

TEST(PlanRecord, EveryBudgetCountsItsOwnRevisions) {
  const Asked problem = ProblemOf(ProfileShape());
  SolvedPlan solved = Solved(problem, Bytes(1500));
  const PlanEntry first = *Record(nullptr, &solved);
  SolvedPlan other = Solved(problem, Bytes(1600));
  const PlanEntry second = *Record(&first, &other);
  EXPECT_EQ(second.plans.size(), 2u);
  EXPECT_EQ(other.plan.revision, 1);
}

TEST(PlanRecord, ALeastBudgetIsRemembered) {
  const Asked problem = ProblemOf(ProfileShape());
  const Bytes least = LeastPeak(ChainProfile({}));
  SolvedPlan solved = Solved(problem, least);
  solved.least = true;
  const PlanEntry entry = *Record(nullptr, &solved);
  EXPECT_EQ(entry.least_budget, least);
}

TEST(PlanRecord, CostsUnderWhichThePlanHoldsStayTheReference) {
  const Asked large = WithOverhead(50);
  const Asked small = WithOverhead(0);
  SolvedPlan first = Solved(small, StoreAllPeak(ChainProfile({})));
  const PlanEntry before = *Record(nullptr, &first);
  SolvedPlan second = Solved(large, Bytes(1500));
  const PlanEntry after = *Record(&before, &second);
  EXPECT_EQ(after.reference, small->costs);
  EXPECT_EQ(after.plans.size(), 2u);
  EXPECT_LT(after.plans[1].plan->prediction.peak, second.plan.prediction.peak);
}

TEST(PlanRecord, SmallerOverheadsDoNotBecomeTheReference) {
  const Asked large = WithOverhead(50);
  const Asked small = WithOverhead(0);
  const Bytes peak = StoreAllPeak(ChainProfile({}));
  SolvedPlan first = Solved(large, Bytes(1500));
  const PlanEntry before = *Record(nullptr, &first);
  // Store-all at its exact peak without overheads does not fit with them.
  SolvedPlan tight = Solved(small, peak);
  ASSERT_EQ(tight.plan.prediction.peak, peak);
  EXPECT_FALSE(Record(&before, &tight).has_value());
}

TEST(PlanRecord, LargerOverheadsBecomeTheReferenceWhenAQuorumHasThem) {
  const Asked large = WithOverhead(50), small = WithOverhead(0);
  const Bytes peak = StoreAllPeak(ChainProfile({}));
  PlanEntry entry = EntryFor(small, peak, 1);
  // What recomputes here is no answer under the reference, where store-all fits.
  SolvedPlan heavy = Solved(large, peak, 2);
  ASSERT_GT(heavy.plan.prediction.recomputed_forwards, 0);
  entry = *Record(&entry, &heavy);
  EXPECT_EQ(entry.reference, small->costs);
  EXPECT_EQ(entry.plans.size(), 1u);
  EXPECT_FALSE(Record(&entry, &heavy).has_value()) << "the same job again";

  heavy.job = 3;
  entry = *Record(&entry, &heavy);
  EXPECT_TRUE(SameMemory(*entry.reference, *large->costs));
  EXPECT_EQ(entry.store_all.peak, StoreAllPeak(ChainProfile(Shape(50))));
  // Store-all at its old peak has gone, what holds under the new reference has come.
  ASSERT_EQ(entry.plans.size(), 1u);
  EXPECT_EQ(entry.plans[0].plan->schedule, heavy.plan.schedule);
}

// Callers of two overheads that ask for one budget: each gets its own, in whatever order they come.
TEST(PlanRecord, WhatHoldsForLargerOverheadsStandsBesideTheFasterOne) {
  const Asked large = WithOverhead(50), small = WithOverhead(0);
  const Bytes budget = Solved(small, Bytes(1500)).plan.prediction.peak;
  PlanEntry entry = EntryFor(small, budget, 1);
  EXPECT_FALSE(BestAccepted(*large, entry, budget).plan.has_value());
  SolvedPlan heavy = Solved(large, budget, 2);
  entry = *Record(&entry, &heavy);
  ASSERT_EQ(entry.plans.size(), 2u);
  EXPECT_GT(entry.plans[1].plan->prediction.makespan, entry.plans[0].plan->prediction.makespan);
  EXPECT_EQ(BestAccepted(*large, entry, budget).plan->schedule, heavy.plan.schedule);
  EXPECT_EQ(BestAccepted(*small, entry, budget).plan->schedule, entry.plans[0].plan->schedule);
  ASSERT_EQ(PlansServing(entry, budget).size(), 1u);
  EXPECT_EQ(PlansServing(entry, budget)[0], entry.plans[0].plan);
}

// One job, as often and with whatever it comes, leaves what the others are answered.
TEST(PlanRecord, OneJobTakesNothingFromTheOthers) {
  const Asked problem = ProblemOf(ProfileShape());
  const PlanEntry before = EntryFor(problem, Bytes(1500), 1);
  PlanEntry entry = before;
  for (int64_t i = 0; i < 20; ++i) {
    ProfileShape shape;
    shape.forward_time = 1 + i * i * i;
    shape.overhead = i % 3 * 100;
    const Asked odd = ProblemOf(shape);
    for (const char* solver : {"optimal_persistent", "chen_sqrt", "revolve"}) {
      SolvedPlan solved{odd,
                        *MakePlan(odd->costs->problem(), Bytes(1500), PlanOptions{solver, {}})};
      solved.job = 2;
      if (auto next = Record(&entry, &solved)) entry = *std::move(next);
    }
  }
  EXPECT_EQ(entry.reference, before.reference);
  const StoredPlan* serving = ServingRevision(entry, Bytes(1500));
  ASSERT_NE(serving, nullptr);
  EXPECT_EQ(serving->plan->prediction.makespan, before.plans[0].plan->prediction.makespan);
}

TEST(PlanRecord, ThatNothingFitsLargerOverheadsChangesNothing) {
  const Asked small = WithOverhead(0);
  const Asked large = WithOverhead(5000);
  SolvedPlan first = Solved(small, Bytes(1500));
  const PlanEntry before = *Record(nullptr, &first);
  SolvedPlan infeasible = Solved(large, Bytes(1500));
  ASSERT_EQ(infeasible.plan.status, PlanStatus::kProvenInfeasible);
  EXPECT_FALSE(Record(&before, &infeasible).has_value());
}

TEST(PlanRecord, AProfileWithoutTimesLeavesNothing) {
  ProfileShape shape;
  shape.timed = false;
  SolvedPlan solved = Solved(ProblemOf(shape), Bytes(1500));
  ASSERT_EQ(solved.plan.status, PlanStatus::kFound);
  EXPECT_FALSE(Record(nullptr, &solved).has_value());
}

TEST(PlanRecord, PlansPerEntryAreBounded) {
  const Asked problem = ProblemOf(ProfileShape());
  SolvedPlan solved = Solved(problem, Bytes(1500));
  PlanEntry entry = *Record(nullptr, &solved);
  for (size_t i = 1; i <= kMaxPlansPerEntry; ++i) {
    SolvedPlan next = solved;
    next.plan.budget = Bytes(1500 + static_cast<int64_t>(i));
    entry = *Record(&entry, &next);
  }
  EXPECT_EQ(entry.plans.size(), kMaxPlansPerEntry);
  EXPECT_EQ(entry.plans.front().plan->budget, Bytes(1501));
}

TEST(PlanUnder, OptimalUnderOtherTimesIsNotClaimedOptimalUnderThese) {
  const Asked reference = ProblemOf(ProfileShape());
  ProfileShape jittered;
  jittered.forward_time += 3;
  const Asked caller = ProblemOf(jittered);
  const Plan plan = Solved(reference, Bytes(1500)).plan;
  ASSERT_TRUE(plan.bounds.proven_optimal);
  ASSERT_GT(plan.prediction.recomputed_forwards, 0);
  const auto same = Under(reference, reference, plan, Bytes(1500));
  const auto other = Under(caller, reference, plan, Bytes(1500));
  ASSERT_TRUE(same && other);
  EXPECT_TRUE(same->bounds.proven_optimal);
  EXPECT_FALSE(other->bounds.proven_optimal);
  EXPECT_GT(other->prediction.makespan, plan.prediction.makespan);
}

TEST(PlanUnder, InfeasibleUnderOtherOverheadsSaysNothing) {
  const Asked small = WithOverhead(0);
  const Asked large = WithOverhead(50);
  const Plan plan = Solved(large, Bytes(10)).plan;
  ASSERT_EQ(plan.status, PlanStatus::kProvenInfeasible);
  EXPECT_FALSE(Under(small, large, plan, Bytes(10)).has_value());
  EXPECT_TRUE(Under(large, large, plan, Bytes(10)).has_value());
}

// A search under other times may find one.
TEST(PlanUnder, NotFoundUnderOtherTimesSaysNothing) {
  const Asked reference = ProblemOf(ProfileShape());
  ProfileShape jittered;
  jittered.forward_time += 3;
  Plan plan;
  plan.status = PlanStatus::kNotFound;
  plan.budget = Bytes(700);
  EXPECT_TRUE(Under(reference, reference, plan, Bytes(700)).has_value());
  EXPECT_FALSE(Under(ProblemOf(jittered), reference, plan, Bytes(700)).has_value());
  plan.status = PlanStatus::kProvenInfeasible;
  EXPECT_TRUE(Under(ProblemOf(jittered), reference, plan, Bytes(700)).has_value());
}

TEST(PlanUnder, JudgesGraphsVertexByVertex) {
  const auto problem_with = [](int64_t overhead, int64_t time) {
    GraphSpec spec;
    for (int64_t id = 0; id < 6; ++id) {
      Vertex v;
      v.id = v.program_order = id;
      v.output = v.output_gradient = Bytes(100);
      v.forward_time = Nanos(id == 3 ? time : 10);
      v.backward_overhead = Bytes(id == 3 ? overhead : 0);
      if (id > 0) v.inputs = {{id - 1, true}};
      spec.vertices.push_back(v);
    }
    const Profile profile{"graph", Device(), Graph::Create(spec).value(), CostSource::kMeasured};
    return *MakePlanningProblem(profile, KeyOptions(), Sha256);
  };
  const Asked reference = problem_with(0, 10);
  const Plan plan = Solved(reference, Bytes(reference->store_all.peak.value() * 3 / 4)).plan;
  ASSERT_EQ(plan.status, PlanStatus::kFound);
  const auto slower = Under(problem_with(0, 500), reference, plan, plan.budget);
  ASSERT_TRUE(slower.has_value());
  EXPECT_GT(slower->prediction.makespan, plan.prediction.makespan);
  EXPECT_FALSE(Under(problem_with(5000, 10), reference, plan, plan.budget).has_value());
  // A chain of as many steps is another problem.
  EXPECT_FALSE(SameMemory(*reference->costs, *ProblemOf(ProfileShape())->costs));
}

TEST(PlanUnder, WhatRecomputesIsNoAnswerWhereStoreAllFits) {
  const Asked small = WithOverhead(0);
  const Asked large = WithOverhead(50);
  const Bytes peak = StoreAllPeak(ChainProfile({}));
  const Plan plan = Solved(large, peak).plan;
  ASSERT_GT(plan.prediction.recomputed_forwards, 0);
  EXPECT_FALSE(Under(small, large, plan, peak).has_value());
  EXPECT_TRUE(Under(small, large, plan, peak - Bytes(1)).has_value());
  EXPECT_TRUE(Under(large, large, plan, peak).has_value());
}

TEST(PlanUnder, KeepsABetterBoundWhereItHolds) {
  const Asked reference = ProblemOf(ProfileShape());
  const Asked larger = WithOverhead(20);
  // A plan that is far from the fastest.
  Plan plan = *MakePlan(reference->costs->problem(), Bytes(1500), PlanOptions{"chen_sqrt", {}});
  ASSERT_EQ(plan.status, PlanStatus::kFound);
  plan.bounds.lower_bound = plan.prediction.makespan;
  const auto at = [&plan](const Asked& who, const Asked& whose, int64_t budget) {
    return Under(who, whose, plan, Bytes(budget))->bounds.lower_bound;
  };
  EXPECT_EQ(at(reference, reference, 1500), plan.bounds.lower_bound);
  EXPECT_EQ(at(reference, reference, plan.prediction.peak.value()), plan.bounds.lower_bound);
  EXPECT_LT(at(reference, reference, 1501), plan.bounds.lower_bound);
  // What fits with larger overheads fits with these; not the other way round.
  EXPECT_EQ(at(larger, reference, 1500), plan.bounds.lower_bound);
  EXPECT_LT(at(reference, larger, 1500), plan.bounds.lower_bound);
}

TEST(PlanUnder, SaysWhatTheEvaluatorSays) {
  const Asked caller = WithOverhead(20);
  const Asked reference = WithOverhead(50);
  const Plan plan = Solved(reference, Bytes(1500)).plan;
  const auto judged = Under(caller, reference, plan, Bytes(1499));
  ASSERT_TRUE(judged.has_value());
  Plan validated = plan;
  validated.budget = Bytes(1499);
  ASSERT_TRUE(ValidatePlan(*caller->costs, &validated).ok());
  EXPECT_EQ(judged->prediction.peak, validated.prediction.peak);
  EXPECT_EQ(judged->prediction.makespan, validated.prediction.makespan);
  EXPECT_EQ(judged->bounds.store_all_peak, validated.bounds.store_all_peak);
  EXPECT_EQ(judged->bounds.store_all_makespan, validated.bounds.store_all_makespan);
  EXPECT_EQ(judged->bounds.lower_bound, validated.bounds.lower_bound);
  EXPECT_FALSE(Under(caller, reference, plan, validated.prediction.peak - Bytes(1)).has_value());
}

}  // namespace
}  // namespace stowage::testing
