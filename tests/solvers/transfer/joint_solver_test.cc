#include "solvers/transfer/solvers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "solvers/chain/solvers.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/lower_bound.h"
#include "solvers/transfer/internal/budget_grid.h"
#include "solvers/transfer/internal/peak_lower_bound.h"
#include "solvers/transfer/strategies.h"
#include "tests/solvers/naive_replay.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_transfers.h"
#include "tests/solvers/transfer/offload_from.h"

namespace stowage::testing {
namespace {

constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

Bytes StoreAllPeak(const Chain& chain) {
  return Evaluator(chain).Run(StoreAllSchedule(chain))->peak;
}

TransferModel EvenLink(int64_t bytes_per_second, int64_t host_memory) {
  TransferModel link;
  link.to_host.bytes_per_second = link.to_device.bytes_per_second = bytes_per_second;
  link.host_memory = Bytes(host_memory);
  return link;
}

// The makespan of a plan, by the second evaluator; kNone if there is none.
int64_t Makespan(const Chain& chain, const TransferModel& link, Bytes budget,
                 const absl::StatusOr<Plan>& plan) {
  EXPECT_TRUE(plan.ok()) << plan.status() << Describe(chain);
  if (!plan.ok() || plan->status != PlanStatus::kFound) return kNone;
  const NaiveResult naive = NaiveReplay(chain, plan->schedule, &link);
  EXPECT_TRUE(naive.valid) << Describe(chain);
  EXPECT_LE(naive.peak, budget.value()) << Describe(chain);
  EXPECT_LE(naive.host_peak, link.host_memory.value()) << Describe(chain);
  return naive.makespan;
}

int64_t OffloadingAlone(const Chain& chain, const TransferModel& link, Bytes budget) {
  int64_t best = kNone;
  for (const OffloadStrategy* strategy : {&GreedyOffload(), &DynProgOffload()}) {
    const auto found =
        OffloadFrom(Instance(chain, link), StoreAllSchedule(chain), budget, *strategy, {});
    EXPECT_TRUE(found.ok()) << found.status();
    if (found->has_value()) best = std::min(best, (*found)->prediction.makespan.value());
  }
  return best;
}

TEST(JointSolver, IsNeverSlowerThanEachAlone) {
  std::mt19937_64 rng(61);
  int faster = 0, only_joint = 0;
  for (int i = 0; i < 250; ++i) {
    const Chain chain = RandomChain(1 + i % 9, VariedOptions(i), &rng);
    TransferModel link = RandomTransferModel(&rng);
    const Bytes all = StoreAllPeak(chain);
    if (i % 3 == 0) link.host_memory = Bytes(all.value() / 4);
    const Bytes budget(all.value() * (2 + i % 8) / 10);
    const absl::StatusOr<Plan> plan = JointSolver().Solve(Instance(chain, link), budget, {});
    const int64_t joint = Makespan(chain, link, budget, plan);
    const int64_t recomputing =
        Makespan(chain, link, budget, ChosenChainSolver().Solve(chain, budget, {}));
    // Offloading is tried at budgets of the grid.
    const std::vector<Bytes> grid = JointGrid(PeakLowerBound(chain), all);
    const auto beyond = std::upper_bound(grid.begin(), grid.end(), budget);
    const int64_t offloading =
        beyond == grid.begin() ? kNone : OffloadingAlone(chain, link, *std::prev(beyond));
    const int64_t alone = std::min(recomputing, offloading);
    EXPECT_LE(joint, alone) << Describe(chain) << " budget " << budget.value();
    if (joint == kNone) continue;
    const int64_t bound = MakespanLowerBound(Instance(chain, link), budget).value();
    EXPECT_GE(joint, bound);
    EXPECT_TRUE(plan->bounds.proven_optimal || joint != bound) << Describe(chain);
    EXPECT_FALSE(plan->explanation.empty());
    faster += alone != kNone && joint < alone ? 1 : 0;
    only_joint += alone == kNone ? 1 : 0;
  }
  EXPECT_GT(faster, 30);
  EXPECT_GT(only_joint, 10);
}

TEST(JointSolver, LeastBudgetIsProvenAndFits) {
  std::mt19937_64 rng(62);
  int infeasible = 0;
  for (int i = 0; i < 60; ++i) {
    const Chain chain = RandomChain(1 + i % 8, VariedOptions(i), &rng);
    TransferModel link = RandomTransferModel(&rng);
    link.host_memory = Bytes(int64_t{1} << 40);
    const absl::StatusOr<Bytes> least = JointSolver().LeastBudget(Instance(chain, link), {});
    ASSERT_TRUE(least.ok()) << least.status();
    EXPECT_EQ(*least, PeakLowerBound(chain));
    EXPECT_NE(Makespan(chain, link, *least, JointSolver().Solve(Instance(chain, link), *least, {})),
              kNone)
        << Describe(chain);
    if (*least == Bytes(0)) continue;
    const absl::StatusOr<Plan> below =
        JointSolver().Solve(Instance(chain, link), *least - Bytes(1), {});
    ASSERT_TRUE(below.ok()) << below.status();
    EXPECT_EQ(below->status, PlanStatus::kProvenInfeasible);
    EXPECT_EQ(below->bounds.least_budget, *least);
    EXPECT_FALSE(below->explanation.empty());
    ++infeasible;
  }
  EXPECT_GT(infeasible, 40);
}

TEST(JointSolver, LeastBudgetOfASmallHostIsFound) {
  std::mt19937_64 rng(63);
  int between = 0;
  for (int i = 0; i < 60; ++i) {
    const Chain chain = RandomChain(2 + i % 7, VariedOptions(i), &rng);
    TransferModel link = RandomTransferModel(&rng);
    link.host_memory = Bytes(1 + i % 7);
    const absl::StatusOr<Bytes> least = JointSolver().LeastBudget(Instance(chain, link), {});
    ASSERT_TRUE(least.ok()) << least.status();
    EXPECT_LE(*least, *ChosenChainSolver().LeastBudget(chain, {}));
    EXPECT_NE(Makespan(chain, link, *least, JointSolver().Solve(Instance(chain, link), *least, {})),
              kNone)
        << Describe(chain);
    between += PeakLowerBound(chain) < *least ? 1 : 0;
  }
  EXPECT_GT(between, 10);
}

TEST(JointSolver, WithoutALinkIsTheChainSolver) {
  std::mt19937_64 rng(64);
  for (int i = 0; i < 20; ++i) {
    const Chain chain = RandomChain(1 + i % 8, VariedOptions(i), &rng);
    const Bytes budget(StoreAllPeak(chain).value() * 7 / 10);
    const absl::StatusOr<Plan> alone = ChosenChainSolver().Solve(chain, budget, {});
    ASSERT_TRUE(alone.ok()) << alone.status();
    for (const Instance& instance : {Instance(chain), Instance(chain, EvenLink(1000000000, 0))}) {
      const absl::StatusOr<Plan> plan = JointSolver().Solve(instance, budget, {});
      ASSERT_TRUE(plan.ok()) << plan.status();
      EXPECT_EQ(plan->status, alone->status);
      EXPECT_EQ(plan->schedule, alone->schedule);
      EXPECT_EQ(plan->bounds.least_budget, alone->bounds.least_budget);
      EXPECT_EQ(JointSolver().SolveFrontier(instance, {})->Encode(),
                ChosenChainSolver().SolveFrontier(chain, {})->Encode());
    }
  }
}

TEST(JointSolver, TakesLinksOfAnySpeed) {
  std::mt19937_64 rng(65);
  for (int i = 0; i < 40; ++i) {
    const Chain chain = RandomChain(1 + i % 8, VariedOptions(i), &rng);
    const Bytes budget(
        std::max(PeakLowerBound(chain).value(), StoreAllPeak(chain).value() * (4 + i % 5) / 10));
    const TransferModel slow = EvenLink(1, int64_t{1} << 40);
    const int64_t slowly =
        Makespan(chain, slow, budget, JointSolver().Solve(Instance(chain, slow), budget, {}));
    EXPECT_LE(slowly, Makespan(chain, slow, budget, ChosenChainSolver().Solve(chain, budget, {})));
    const TransferModel fast = EvenLink(std::numeric_limits<int64_t>::max(), kMaxTotal);
    const int64_t quickly =
        Makespan(chain, fast, budget, JointSolver().Solve(Instance(chain, fast), budget, {}));
    EXPECT_LE(quickly, slowly) << Describe(chain);
  }
}

// As large as a chain may be: no sum overflows.
TEST(JointSolver, TakesHostileNumbers) {
  ChainSpec spec;
  spec.input = Bytes(int64_t{1} << 57);
  for (int l = 0; l < 6; ++l) {
    Stage stage;
    stage.forward_time = stage.backward_time = Nanos(int64_t{1} << 53);
    stage.output = stage.output_gradient = Bytes(int64_t{1} << 56);
    stage.saved = Bytes(int64_t{1} << 57);
    spec.stages.push_back(stage);
  }
  const Chain chain = *Chain::Create(std::move(spec));
  const Bytes all = StoreAllPeak(chain);
  for (const int64_t speed : {int64_t{1}, int64_t{12200000000}, int64_t{1} << 62}) {
    const TransferModel link = EvenLink(speed, kMaxTotal);
    for (const int64_t budget : {all.value() / 3, all.value() / 2, all.value() - 1}) {
      const absl::StatusOr<Plan> plan =
          JointSolver().Solve(Instance(chain, link), Bytes(budget), {});
      ASSERT_TRUE(plan.ok()) << plan.status();
      if (plan->status != PlanStatus::kFound) continue;
      const absl::StatusOr<Simulation> s = Evaluator(Instance(chain, link)).Run(plan->schedule);
      ASSERT_TRUE(s.ok()) << s.status();
      EXPECT_LE(s->peak.value(), budget);
    }
  }
}

TEST(JointSolver, TakesSizesAndTimesOfNothing) {
  ChainSpec spec;
  spec.stages.resize(5);
  const Chain nothing = *Chain::Create(spec);
  const TransferModel link = EvenLink(1000, 1000);
  EXPECT_EQ(
      Makespan(nothing, link, Bytes(0), JointSolver().Solve(Instance(nothing, link), Bytes(0), {})),
      0);
  EXPECT_TRUE(JointSolver().SolveFrontier(Instance(nothing, link), {}).ok());
  for (Stage& stage : spec.stages) stage.saved = stage.output = Bytes(3);
  const Chain timeless = *Chain::Create(spec);
  const Bytes least = *JointSolver().LeastBudget(Instance(timeless, link), {});
  EXPECT_NE(
      Makespan(timeless, link, least, JointSolver().Solve(Instance(timeless, link), least, {})),
      kNone);
}

TEST(JointSolver, EqualOptionsGiveEqualPlans) {
  std::mt19937_64 rng(66);
  const Chain chain = RandomChain(25, {40, 60}, &rng);
  const Instance instance(chain, EvenLink(400000000, int64_t{1} << 40));
  SolveOptions options;
  const Bytes budget(StoreAllPeak(chain).value() / 2);
  const absl::StatusOr<Plan> first = JointSolver().Solve(instance, budget, options);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_EQ(first->status, PlanStatus::kFound);
  std::vector<double> shares;
  options.threads = 2;
  options.progress = [&shares](double share) { shares.push_back(share); };
  const absl::StatusOr<Plan> second = JointSolver().Solve(instance, budget, options);
  EXPECT_EQ(first->schedule, second->schedule);
  EXPECT_EQ(first->explanation, second->explanation);
  ASSERT_FALSE(shares.empty());
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_EQ(shares.back(), 1.0);
}

TEST(JointSolver, DeadlinesCutTheSearchShort) {
  std::mt19937_64 rng(67);
  const Chain chain = RandomChain(120, {40, 60}, &rng);
  const Instance instance(chain, EvenLink(400000000, int64_t{1} << 40));
  const Bytes budget(StoreAllPeak(chain).value() / 2);
  int plans = 0;
  for (const int64_t look : {1, 2, 5, 20, 100}) {
    StopToken stop;
    stop.PassDeadlineAtLook(look);
    SolveOptions options;
    options.stop = &stop;
    const absl::StatusOr<Plan> plan = JointSolver().Solve(instance, budget, options);
    if (absl::IsDeadlineExceeded(plan.status())) {
      EXPECT_EQ(plans, 0) << "a later deadline has a plan, too";
      continue;
    }
    ++plans;
    EXPECT_NE(Makespan(chain, *instance.link(), budget, plan), kNone);
    EXPECT_NE(plan->explanation.find("deadline"), std::string::npos);
    EXPECT_FALSE(plan->search_complete);
  }
  EXPECT_GT(plans, 0);
}

TEST(JointSolver, StopsWhenAsked) {
  std::mt19937_64 rng(68);
  const Chain chain = RandomChain(20, {40, 60}, &rng);
  const Instance instance(chain, EvenLink(400000000, int64_t{1} << 40));
  SolveOptions options;
  StopToken stop;
  stop.RequestStop();
  options.stop = &stop;
  const Bytes budget(StoreAllPeak(chain).value() / 2);
  EXPECT_TRUE(absl::IsCancelled(JointSolver().Solve(instance, budget, options).status()));
  EXPECT_TRUE(absl::IsCancelled(JointSolver().SolveFrontier(instance, options).status()));
  const StopToken late(StopToken::Clock::now());
  options.stop = &late;
  EXPECT_TRUE(absl::IsDeadlineExceeded(JointSolver().SolveFrontier(instance, options).status()));
}

TEST(JointSolver, FrontiersHaveTheLeastBudgetAndTheIdealTime) {
  std::mt19937_64 rng(69);
  for (int i = 0; i < 12; ++i) {
    const Chain chain = RandomChain(1 + i, VariedOptions(i), &rng);
    TransferModel link = RandomTransferModel(&rng);
    const absl::StatusOr<Frontier> frontier =
        JointSolver().SolveFrontier(Instance(chain, link), {});
    ASSERT_TRUE(frontier.ok()) << frontier.status();
    ASSERT_FALSE(frontier->points().empty());
    EXPECT_EQ(frontier->points().back().makespan, chain.ideal_time());
    EXPECT_EQ(frontier->points().front().peak,
              *JointSolver().LeastBudget(Instance(chain, link), {}));
    for (const Frontier::Point& point : frontier->points()) {
      EXPECT_EQ(Makespan(chain, link, point.peak, frontier->PlanAt(point.peak)),
                point.makespan.value());
    }
  }
}

}  // namespace
}  // namespace stowage::testing
