#include "server/entries/revisions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "server/entries/plan_lookup.h"
#include "server/entries/planning_error.h"
#include "tests/server/support/asked.h"

namespace stowage::testing {
namespace {

constexpr Bytes kBudget{100};

std::shared_ptr<const Plan> PlanOf(int64_t revision, int64_t makespan = 60,
                                   Bytes budget = kBudget) {
  Plan plan;
  plan.status = PlanStatus::kFound;
  plan.budget = budget;
  plan.revision = revision;
  plan.prediction.peak = Bytes(80);
  plan.prediction.makespan = Nanos(makespan);
  plan.prediction.recomputed_forwards = 1;
  return std::make_shared<const Plan>(plan);
}

PlanEntry Revisions(int64_t count) {
  PlanEntry entry;
  for (int64_t i = 1; i <= count; ++i) AddRevision({PlanOf(i)}, &entry);
  return entry;
}

int64_t Serving(const PlanEntry& entry) {
  const auto plans = PlansServing(entry, kBudget);
  EXPECT_LE(plans.size(), 1u);
  return plans.empty() ? 0 : plans[0]->revision;
}

RevisionId Id(int64_t revision) { return {kBudget, revision}; }

TEST(Revisions, TheLatestServes) {
  EXPECT_EQ(Serving(Revisions(3)), 3);
  EXPECT_EQ(NextRevision(Revisions(3), kBudget), 4);
  EXPECT_EQ(NextRevision(Revisions(3), Bytes(99)), 1);
}

TEST(Revisions, OneThatIsPinnedServesWhateverComesLater) {
  PlanEntry entry = *Pin(Revisions(2), Id(1));
  EXPECT_EQ(Serving(entry), 1);
  AddRevision({PlanOf(3)}, &entry);
  EXPECT_EQ(Serving(entry), 1);
  // Of plans for other budgets, too.
  AddRevision({PlanOf(1, 10, Bytes(110))}, &entry);
  EXPECT_EQ(Serving(entry), 1);
  ASSERT_EQ(PlansServing(entry, Bytes(105)).size(), 1u);
  ASSERT_EQ(PlansServing(entry, Bytes(90)).size(), 2u);

  entry = *Pin(entry, Id(2));
  EXPECT_EQ(Serving(entry), 2);
  EXPECT_EQ(Unpin(entry, Id(1)).status().code(), absl::StatusCode::kFailedPrecondition);
  entry = *Unpin(entry, Id(2));
  EXPECT_EQ(PinnedRevision(entry, kBudget), nullptr);
  EXPECT_EQ(ServingRevision(entry, kBudget)->plan->revision, 3);
}

TEST(Revisions, RolledBackTheOneBeforeServes) {
  PlanEntry entry = *RollBack(Revisions(3), Id(3));
  EXPECT_EQ(Serving(entry), 2);
  EXPECT_EQ(RollBack(entry, Id(3)).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Pin(entry, Id(3)).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Promote(entry, Id(3)).status().code(), absl::StatusCode::kFailedPrecondition);
  entry = *RollBack(*Pin(entry, Id(2)), Id(2));
  EXPECT_EQ(Serving(entry), 1);
  EXPECT_EQ(PinnedRevision(entry, kBudget), nullptr);
  // Nothing would serve: the same plan would be solved again.
  EXPECT_EQ(RollBack(entry, Id(1)).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(NextRevision(entry, kBudget), 4);
}

TEST(Revisions, OneInShadowServesOnceItIsPromoted) {
  PlanEntry entry = Revisions(1);
  AddRevision({PlanOf(2), RevisionState::kShadow}, &entry);
  EXPECT_EQ(Serving(entry), 1);
  EXPECT_EQ(Promote(*Pin(entry, Id(1)), Id(2)).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Promote(entry, Id(1)).status().code(), absl::StatusCode::kFailedPrecondition);
  AddRevision({PlanOf(3)}, &entry);
  EXPECT_EQ(Serving(entry), 3);
  entry = *Promote(entry, Id(2));
  EXPECT_EQ(Serving(entry), 2);
  EXPECT_EQ(entry.plans[2].state, RevisionState::kShadow);
  EXPECT_EQ(Serving(*Promote(entry, Id(3))), 3);
  EXPECT_EQ(Serving(*Pin(entry, Id(3))), 3);
}

TEST(Revisions, FreezingTwiceIsAnError) {
  const PlanEntry frozen = *Freeze(Revisions(1));
  EXPECT_TRUE(frozen.frozen);
  EXPECT_EQ(Freeze(frozen).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(Unfreeze(frozen)->frozen);
  EXPECT_EQ(Unfreeze(Revisions(1)).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(Revisions, UnknownOnesAreNotFound) {
  const PlanEntry entry = Revisions(2);
  for (const auto& action : {Pin, Unpin, RollBack, Promote}) {
    for (const RevisionId& id : {Id(3), RevisionId{Bytes(99), 1}}) {
      const absl::Status status = action(entry, id).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
      EXPECT_EQ(PlanningReason(status), "PLAN_NOT_CACHED");
    }
  }
}

TEST(Revisions, AreBoundedAndTheServingOneStays) {
  PlanEntry entry = *Pin(Revisions(1), Id(1));
  for (int64_t i = 2; i <= 10; ++i) AddRevision({PlanOf(i), RevisionState::kShadow}, &entry);
  ASSERT_EQ(entry.plans.size(), kMostRevisions);
  EXPECT_EQ(entry.plans[0].plan->revision, 1);
  EXPECT_EQ(entry.plans[1].plan->revision, 8);
  EXPECT_EQ(Serving(entry), 1);

  PlanEntry unpinned = Revisions(10);
  EXPECT_EQ(unpinned.plans.size(), kMostRevisions);
  EXPECT_EQ(Serving(unpinned), 10);
}

TEST(Revisions, AnEntryKeepsWhatServesAndWhatIsPinned) {
  PlanEntry entry;
  const int64_t most = static_cast<int64_t>(kMaxPlansPerEntry);
  AddRevision({PlanOf(1, 60, Bytes(1))}, &entry);
  AddRevision({PlanOf(1, 60, Bytes(2))}, &entry);
  AddRevision({PlanOf(2, 60, Bytes(2))}, &entry);
  entry = *Pin(entry, {Bytes(1), 1});
  for (int64_t i = 3; i <= most; ++i) AddRevision({PlanOf(1, 60, Bytes(i))}, &entry);
  ASSERT_EQ(entry.plans.size(), kMaxPlansPerEntry);
  // The former revision for 2 bytes has gone first, now the oldest that is not pinned goes.
  EXPECT_EQ(entry.plans[1].plan->revision, 2);
  AddRevision({PlanOf(1, 60, Bytes(1000))}, &entry);
  EXPECT_EQ(entry.plans.size(), kMaxPlansPerEntry);
  EXPECT_EQ(entry.plans[0].plan->budget, Bytes(1));
  EXPECT_EQ(entry.plans[1].plan->budget, Bytes(3));

  for (StoredPlan& stored : entry.plans) stored.pinned = true;
  EXPECT_FALSE(AddRevision({PlanOf(1, 60, Bytes(1001))}, &entry));
  EXPECT_EQ(entry.plans.size(), kMaxPlansPerEntry);
}

// A solve of the same question, with another solver.
SolvedPlan By(const char* solver, const Asked& problem, Bytes budget) {
  return {problem, *MakePlan(problem->costs->problem(), budget, PlanOptions{solver, {}}), false, 0};
}

TEST(RecordRevisions, AFasterPlanServesAndTheFormerStays) {
  const Asked problem = ProblemOf(ProfileShape());
  SolvedPlan slow = By("chen_sqrt", problem, Bytes(1500));
  const PlanEntry first = *Record(nullptr, &slow);
  SolvedPlan fast = By("optimal_persistent", problem, Bytes(1500));
  const PlanEntry second = *Record(&first, &fast);
  ASSERT_LT(fast.plan.prediction.makespan, slow.plan.prediction.makespan);
  EXPECT_EQ(fast.plan.revision, 2);
  ASSERT_EQ(second.plans.size(), 2u);
  ASSERT_EQ(PlansServing(second, Bytes(1500)).size(), 1u);
  EXPECT_EQ(PlansServing(second, Bytes(1500))[0]->revision, 2);
  // Nor does the slow one come back; rolled back, the fast one does not.
  EXPECT_FALSE(Record(&second, &slow).has_value());
  const PlanEntry back = *RollBack(second, {Bytes(1500), 2});
  EXPECT_EQ(PlansServing(back, Bytes(1500))[0]->revision, 1);
  fast.plan.provenance.solver_version = "0.2.0";
  EXPECT_FALSE(Record(&back, &fast).has_value());
}

TEST(RecordRevisions, WhatAnotherVersionSolvesNoFasterWaitsInShadow) {
  const Asked problem = ProblemOf(ProfileShape());
  SolvedPlan fast = By("optimal_persistent", problem, Bytes(1500));
  const PlanEntry first = *Record(nullptr, &fast);
  SolvedPlan slow = By("chen_sqrt", problem, Bytes(1500));
  slow.plan.provenance.solver_version = "0.2.0";
  const PlanEntry second = *Record(&first, &slow);
  ASSERT_EQ(second.plans.size(), 2u);
  EXPECT_EQ(second.plans[1].state, RevisionState::kShadow);
  EXPECT_EQ(PlansServing(second, Bytes(1500))[0]->revision, 1);
}

TEST(RecordRevisions, AnEqualScheduleIsNoNewRevision) {
  const Asked problem = ProblemOf(ProfileShape());
  SolvedPlan solved = By("optimal_persistent", problem, Bytes(1500));
  const PlanEntry first = *Record(nullptr, &solved);
  EXPECT_FALSE(Record(&first, &solved).has_value());
  solved.plan.provenance.solver_version = "0.2.0";
  const PlanEntry second = *Record(&first, &solved);
  ASSERT_EQ(second.plans.size(), 1u);
  EXPECT_EQ(second.plans[0].plan->revision, 1);
  EXPECT_EQ(solved.plan.revision, 1);
  EXPECT_EQ(second.plans[0].plan->provenance.solver_version, "0.2.0");
}

TEST(RecordRevisions, AnOlderVersionTakesNothingBack) {
  const Asked problem = ProblemOf(ProfileShape());
  SolvedPlan fast = By("optimal_persistent", problem, Bytes(1500));
  const PlanEntry entry = *Record(nullptr, &fast);
  fast.plan.provenance.solver_version = "0.0.9";
  EXPECT_FALSE(Record(&entry, &fast).has_value());
  SolvedPlan slow = By("chen_sqrt", problem, Bytes(1500));
  slow.plan.provenance.solver_version = "0.0.9";
  EXPECT_FALSE(Record(&entry, &slow).has_value());
}

TEST(RecordRevisions, WhilePinnedNewOnesWaitInShadow) {
  const Asked problem = ProblemOf(ProfileShape());
  SolvedPlan slow = By("chen_sqrt", problem, Bytes(1500));
  const PlanEntry pinned = *Pin(*Record(nullptr, &slow), {Bytes(1500), 1});
  SolvedPlan fast = By("optimal_persistent", problem, Bytes(1500));
  const PlanEntry entry = *Record(&pinned, &fast);
  ASSERT_EQ(entry.plans.size(), 2u);
  EXPECT_EQ(entry.plans[1].state, RevisionState::kShadow);
  EXPECT_EQ(BestAccepted(*problem, entry, Bytes(1500)).plan->revision, 1);
  EXPECT_EQ(BestAccepted(*problem, *Promote(*Unpin(entry, {Bytes(1500), 1}), {Bytes(1500), 2}),
                         Bytes(1500))
                .plan->revision,
            2);
}

TEST(RecordRevisions, NothingChangesWhatIsFrozen) {
  const Asked problem = ProblemOf(ProfileShape());
  SolvedPlan slow = By("chen_sqrt", problem, Bytes(1500));
  const PlanEntry frozen = *Freeze(*Record(nullptr, &slow));
  SolvedPlan fast = By("optimal_persistent", problem, Bytes(1500));
  fast.job = 7;
  EXPECT_FALSE(Record(&frozen, &fast).has_value());
  EXPECT_EQ(fast.plan.revision, 2);
}

TEST(Etag, IsOfWhatAnAdministratorSeesAndChanges) {
  const PlanEntry entry = Revisions(2);
  std::set<std::string> etags = {EtagOf(entry)};
  for (const PlanEntry& changed : {*Pin(entry, Id(1)), *Pin(entry, Id(2)), *RollBack(entry, Id(2)),
                                   *Freeze(entry), Revisions(1), Revisions(3)}) {
    EXPECT_TRUE(etags.insert(EtagOf(changed)).second);
  }
  PlanEntry later = entry;
  later.generation += kChangesPerHistory;
  EXPECT_TRUE(etags.insert(EtagOf(later)).second) << "deleted and solved anew";
  PlanEntry same = entry;
  ++same.generation;
  same.reports.push_back({});
  same.profile_wanted = true;
  std::reverse(same.plans.begin(), same.plans.end());
  EXPECT_EQ(EtagOf(same), EtagOf(entry));
  EXPECT_EQ(EtagOf(entry).front(), '"');
}

}  // namespace
}  // namespace stowage::testing
