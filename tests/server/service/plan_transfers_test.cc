// Plans with transfers, and whose link judges them.
#include <gtest/gtest.h>

#include "server/entries/plan_lookup.h"
#include "server/entries/plan_record.h"
#include "server/entries/plan_under.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/lower_bound.h"
#include "tests/server/service/planning_fixture.h"

namespace stowage::testing {
namespace {

using Asked = std::shared_ptr<const PlanningProblem>;

// Copies of 300 bytes take 30 ns at this speed, three forwards.
constexpr int64_t kSpeed = 10000000000;
constexpr int64_t kHost = 1000;
// Stated, so that all of these have one key.
constexpr int32_t kClass = 1;

Asked WithLink(int64_t bandwidth, int64_t overhead = 0, const KeyOptions& options = {}) {
  ProfileShape shape;
  shape.host_memory = kHost;
  shape.bandwidth = bandwidth;
  shape.link_class = kClass;
  shape.overhead = overhead;
  return *MakePlanningProblem(ChainProfile(shape), options, Sha256);
}

// Store-all, but for what stage 1 saves, which is on the host around the turn.
Schedule Offloading(const Chain& chain) {
  const int last = chain.length() + 1;
  Schedule schedule = {ForwardSave(1), OffloadStart(TensorKind::kSaved, 1)};
  for (int l = 2; l <= last; ++l) {
    if (l == 6) schedule.push_back(OffloadWait(TensorKind::kSaved, 1));
    schedule.push_back(ForwardSave(l));
  }
  for (int l = last; l >= 1; --l) {
    if (l == 4) schedule.push_back(PrefetchStart(TensorKind::kSaved, 1));
    if (l == 2) schedule.push_back(PrefetchWait(TensorKind::kSaved, 1));
    schedule.push_back(Backward(l));
  }
  return schedule;
}

Plan PlanOf(const Asked& problem, const Schedule& schedule) {
  Plan plan;
  plan.status = PlanStatus::kFound;
  plan.schedule = schedule;
  const absl::StatusOr<Simulation> simulation = Evaluator(*problem->costs).Run(schedule);
  EXPECT_TRUE(simulation.ok()) << simulation.status();
  plan.budget = simulation->peak;
  EXPECT_TRUE(ValidatePlan(*problem->costs, &plan).ok());
  return plan;
}

Plan PlanWithTransfers(const Asked& problem) {
  return PlanOf(problem, Offloading(std::get<Chain>(problem->costs->problem())));
}

// One that recomputes, whatever the link.
Plan PlanWithRecomputing(const Asked& problem) {
  const PlanOptions options{"optimal_persistent", {}};
  Plan plan = *MakePlan(problem->costs->problem(), Bytes(1500), options);
  EXPECT_GT(plan.prediction.recomputed_forwards, 0);
  return plan;
}

Plan StoreAllPlan(const Asked& problem) {
  return PlanOf(problem, problem->costs->store_all_schedule());
}

std::optional<Plan> Under(const Asked& caller, const Asked& reference, const Plan& plan) {
  return PlanUnder(*caller->costs, caller->store_all, *reference->costs, plan, plan.budget);
}

TEST(PlanTransfers, WhereAClassIsStatedTheMeasuredLinkIsNotInTheKey) {
  KeyOptions recompute_only;
  recompute_only.recompute_only = true;
  EXPECT_EQ(WithLink(kSpeed)->key, WithLink(2 * kSpeed)->key);
  EXPECT_EQ(WithLink(kSpeed)->key, WithLink(0)->key);
  EXPECT_NE(WithLink(kSpeed)->key, WithLink(kSpeed, 0, recompute_only)->key);
  EXPECT_TRUE(WithLink(kSpeed)->costs->link().has_value());
  EXPECT_FALSE(WithLink(0)->costs->link().has_value());
  EXPECT_FALSE(WithLink(kSpeed, 0, recompute_only)->costs->link().has_value());
}

TEST(PlanTransfers, ElseCallersOfAFarFasterLinkHaveAnEntryOfTheirOwn) {
  PlanningFixture fixture(false);
  ProfileShape shape;
  shape.host_memory = kHost;
  shape.bandwidth = kSpeed;
  const Budget budget = Bytes(1500);
  ASSERT_TRUE(fixture.Compute(ChainProfile(shape), budget).ok());
  shape.bandwidth = kSpeed * 5 / 4;
  EXPECT_EQ(fixture.Compute(ChainProfile(shape), budget)->source, AnswerSource::kCache);
  shape.bandwidth = kSpeed * 4;
  EXPECT_EQ(fixture.Compute(ChainProfile(shape), budget)->source, AnswerSource::kSolved);
  shape.bandwidth = kSpeed * 5;
  EXPECT_EQ(fixture.Compute(ChainProfile(shape), budget)->source, AnswerSource::kCache);
  EXPECT_EQ(fixture.solver.started(), 2);
}

TEST(PlanTransfers, TheCallersOwnLinkPredicts) {
  const Asked reference = WithLink(kSpeed), slower = WithLink(kSpeed * 2 / 3);
  Plan plan = PlanWithTransfers(reference);
  plan.bounds.proven_optimal = true;
  const auto same = Under(WithLink(kSpeed), reference, plan);
  const auto other = Under(slower, reference, plan);
  ASSERT_TRUE(same && other);
  EXPECT_EQ(same->prediction.makespan, plan.prediction.makespan);
  EXPECT_TRUE(same->bounds.proven_optimal);
  EXPECT_EQ(same->prediction.offloaded, Bytes(300));
  EXPECT_GT(other->prediction.makespan, plan.prediction.makespan);
  EXPECT_GT(other->prediction.idle_time, plan.prediction.idle_time);
  EXPECT_FALSE(other->bounds.proven_optimal);
  EXPECT_EQ(other->bounds.lower_bound, MakespanLowerBound(*slower->costs, plan.budget));
}

TEST(PlanTransfers, WithoutTheLinkOrItsMemoryTransfersAreNoAnswer) {
  const Asked reference = WithLink(kSpeed);
  const Plan plan = PlanWithTransfers(reference);
  EXPECT_FALSE(Under(WithLink(0), reference, plan).has_value());
  ProfileShape little;
  little.host_memory = 299;
  little.bandwidth = kSpeed;
  little.link_class = kClass;
  const Asked caller = *MakePlanningProblem(ChainProfile(little), KeyOptions(), Sha256);
  EXPECT_FALSE(Under(caller, reference, plan).has_value());
}

TEST(PlanTransfers, WhatIsGoodWithOneLinkIsNotWithAnother) {
  const Asked reference = WithLink(kSpeed), far = WithLink(3 * kSpeed), none = WithLink(0);
  for (const Plan& plan : {PlanWithTransfers(reference), PlanWithRecomputing(reference)}) {
    EXPECT_FALSE(Under(far, reference, plan).has_value());
    EXPECT_FALSE(Under(WithLink(kSpeed / 3), reference, plan).has_value());
    EXPECT_TRUE(Under(WithLink(2 * kSpeed), reference, plan).has_value());
  }
  // A link may do better than recomputing; without one there is nothing better.
  const Plan recomputing = PlanWithRecomputing(none);
  EXPECT_FALSE(Under(reference, none, recomputing).has_value());
  EXPECT_TRUE(Under(none, reference, recomputing).has_value());
  // Nothing beats plain training.
  for (const Asked& caller : {reference, far, none}) {
    EXPECT_TRUE(Under(caller, none, StoreAllPlan(none)).has_value());
  }
}

TEST(PlanTransfers, WhatCopiesIsNoAnswerWhereStoreAllFits) {
  const Asked large = WithLink(kSpeed, 50), small = WithLink(kSpeed);
  Plan plan = PlanWithTransfers(large);
  plan.budget = large->store_all.peak - Bytes(1);
  ASSERT_GE(plan.budget, small->store_all.peak);
  EXPECT_TRUE(Under(large, large, plan).has_value());
  EXPECT_FALSE(Under(small, large, plan).has_value());
}

TEST(PlanTransfers, ALinkOfFarLongerCopiesIsAnotherLink) {
  ProfileShape late;
  late.host_memory = kHost;
  late.bandwidth = kSpeed;
  late.link_class = kClass;
  late.latency = 50'000'000;
  const Asked reference = WithLink(kSpeed);
  const Asked caller = *MakePlanningProblem(ChainProfile(late), KeyOptions(), Sha256);
  ASSERT_EQ(caller->key, reference->key);
  EXPECT_FALSE(Under(caller, reference, PlanWithTransfers(reference)).has_value());
  EXPECT_FALSE(Under(reference, caller, PlanWithTransfers(caller)).has_value());
}

TEST(PlanTransfers, InfeasibleWithoutTheLinkSaysNothingWithIt) {
  const Asked linked = WithLink(kSpeed), none = WithLink(0);
  const Plan plan = *MakePlan(none->costs->problem(), Bytes(10), PlanOptions());
  ASSERT_EQ(plan.status, PlanStatus::kProvenInfeasible);
  EXPECT_TRUE(Under(none, none, plan).has_value());
  EXPECT_FALSE(Under(linked, none, plan).has_value());
  EXPECT_FALSE(Under(none, linked, plan).has_value());
  // The speed does not decide what fits.
  EXPECT_TRUE(Under(WithLink(5 * kSpeed), linked, plan).has_value());
}

TEST(PlanTransfers, APlanThatCopiesServesUpToItsBudget) {
  const Plan plan = PlanWithTransfers(WithLink(kSpeed));
  EXPECT_TRUE(Serves(plan, plan.budget));
  EXPECT_FALSE(Serves(plan, plan.budget + Bytes(1)));
}

TEST(PlanTransfers, ALinkBecomesTheReferenceWhenMostHaveIt) {
  const Asked linked = WithLink(kSpeed), none = WithLink(0);
  SolvedPlan store_all{none, StoreAllPlan(none), false, 1};
  PlanEntry entry = *Record(nullptr, &store_all);
  SolvedPlan recomputing{none, PlanWithRecomputing(none), true, 1};
  entry = *Record(&entry, &recomputing);
  ASSERT_EQ(entry.plans.size(), 2u);
  EXPECT_EQ(entry.least_budget, recomputing.plan.budget);

  SolvedPlan copying{linked, PlanWithTransfers(linked), false, 2};
  entry = *Record(&entry, &copying);
  EXPECT_EQ(entry.reference, none->costs);
  EXPECT_EQ(entry.plans.size(), 2u);
  copying.job = 3;
  entry = *Record(&entry, &copying);
  ASSERT_TRUE(entry.reference->link().has_value());
  EXPECT_EQ(entry.reference->link()->to_host.bytes_per_second, kSpeed);
  EXPECT_FALSE(entry.least_budget.has_value());
  // Plain training stays; what recomputed for want of a link does not.
  ASSERT_EQ(entry.plans.size(), 2u);
  EXPECT_EQ(entry.plans[0].plan->schedule, store_all.plan.schedule);
  EXPECT_EQ(entry.plans[1].plan->schedule, copying.plan.schedule);

  EXPECT_FALSE(Record(&entry, &recomputing).has_value());
  const Asked far = WithLink(10 * kSpeed);
  SolvedPlan of_another_link{far, PlanWithTransfers(far), false, 3};
  EXPECT_FALSE(Record(&entry, &of_another_link).has_value());
}

Profile LinkedProfile(int64_t bandwidth, int64_t host_memory = kHost) {
  ProfileShape shape;
  shape.host_memory = host_memory;
  shape.bandwidth = bandwidth;
  shape.link_class = kClass;
  return ChainProfile(shape);
}

TEST(PlanTransfers, AreServedFromTheCacheToThoseWithTheLinkAlone) {
  PlanningFixture fixture(false);
  KeyOptions greedy;
  greedy.solver = "offload_greedy";
  const Bytes budget = StoreAllPeak(LinkedProfile(kSpeed)) - Bytes(400);
  const auto solved = fixture.Compute(LinkedProfile(kSpeed), budget, greedy);
  ASSERT_TRUE(solved.ok()) << solved.status();
  ASSERT_EQ(solved->plan.status, PlanStatus::kFound);
  EXPECT_GE(solved->plan.prediction.offloaded, Bytes(400));
  EXPECT_EQ(solved->plan.prediction.recomputed_forwards, 0);

  const auto cached = fixture.Compute(LinkedProfile(kSpeed * 9 / 10), budget, greedy);
  ASSERT_TRUE(cached.ok()) << cached.status();
  EXPECT_EQ(cached->source, AnswerSource::kCache);
  EXPECT_EQ(cached->plan.schedule, solved->plan.schedule);
  EXPECT_GT(cached->plan.prediction.makespan, solved->plan.prediction.makespan);

  // Without the link there is no such plan; that is an answer, and one for such callers alone.
  const auto without = fixture.Compute(LinkedProfile(0), budget, greedy);
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_EQ(without->key, solved->key);
  EXPECT_EQ(without->source, AnswerSource::kSolved);
  EXPECT_EQ(without->plan.status, PlanStatus::kProvenInfeasible);
  EXPECT_EQ(fixture.Compute(LinkedProfile(kSpeed), budget, greedy)->source, AnswerSource::kCache);
  EXPECT_EQ(fixture.solver.started(), 2);
}

TEST(PlanTransfers, AreNeverWhatWhoeverCopiesNothingGets) {
  PlanningFixture fixture(false);
  KeyOptions greedy, recompute_only;
  greedy.solver = recompute_only.solver = "offload_greedy";
  recompute_only.recompute_only = true;
  const Bytes budget = StoreAllPeak(LinkedProfile(kSpeed)) - Bytes(400);
  ASSERT_TRUE(fixture.Compute(LinkedProfile(kSpeed), budget, greedy).ok());
  const PlanKey key = MakePlanKey(LinkedProfile(kSpeed), recompute_only);
  EXPECT_TRUE(absl::IsNotFound(fixture.service->GetPlan({key}, budget).status()));
  const auto plan = fixture.Compute(LinkedProfile(kSpeed), budget, recompute_only);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->key, key);
  EXPECT_EQ(plan->source, AnswerSource::kSolved);
  EXPECT_EQ(plan->plan.status, PlanStatus::kProvenInfeasible);
  // It is the plan of a device without host memory, whose entry it shares.
  const auto shared = fixture.Compute(LinkedProfile(kSpeed, 0), budget, greedy);
  EXPECT_EQ(shared->source, AnswerSource::kCache);
}

TEST(PlanTransfers, TheLeastBudgetIsThatOfTheCallersLink) {
  PlanningFixture fixture(false);
  KeyOptions greedy;
  greedy.solver = "offload_greedy";
  const auto with = fixture.Compute(LinkedProfile(kSpeed), LeastBudget{}, greedy);
  const auto without = fixture.Compute(LinkedProfile(0), LeastBudget{}, greedy);
  ASSERT_TRUE(with.ok() && without.ok());
  EXPECT_EQ(without->plan.budget, StoreAllPeak(LinkedProfile(0)));
  EXPECT_LT(with->plan.budget, without->plan.budget);
  EXPECT_EQ(fixture.Compute(LinkedProfile(2 * kSpeed), LeastBudget{}, greedy)->plan.budget,
            with->plan.budget);
}

}  // namespace
}  // namespace stowage::testing
