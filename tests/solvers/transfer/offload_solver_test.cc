// The strategies of offloading as chain solvers, beyond what every chain solver is held to
// (tests/solvers/chain/chain_solvers_test.cc).
#include "solvers/transfer/solvers.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "solvers/transfer/strategies.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_transfers.h"
#include "tests/solvers/transfer/offload_from.h"

namespace stowage::testing {
namespace {

class OffloadSolverTest : public ::testing::TestWithParam<size_t> {
 protected:
  const Solver& solver() const { return *OffloadSolvers()[GetParam()]; }
  const OffloadStrategy& strategy() const { return *AllOffloadStrategies()[GetParam()]; }
};

Bytes StoreAllPeak(const Chain& chain) {
  return Evaluator(chain).Run(StoreAllSchedule(chain))->peak;
}

TEST_P(OffloadSolverTest, IsTheStrategyOfItsName) {
  EXPECT_EQ(solver().info().name, strategy().info().name);
  EXPECT_EQ(solver().info().schedule_class,
            "schedules that recompute nothing and copy whole tensors to the host");
}

TEST_P(OffloadSolverTest, PlansFitBothMemoriesAndRecomputeNothing) {
  std::mt19937_64 rng(51);
  int found = 0;
  for (int i = 0; i < 200; ++i) {
    const Chain chain = RandomChain(1 + i % 10, VariedOptions(i), &rng);
    TransferModel link = RandomTransferModel(&rng);
    const Bytes all = StoreAllPeak(chain);
    if (i % 2 == 1) link.host_memory = Bytes(all.value() / 3);
    const Bytes budget(all.value() * (1 + i % 4) / 4 - 1);
    if (budget < Bytes(0)) continue;
    const absl::StatusOr<Plan> plan = solver().Solve(Instance(chain, link), budget, {});
    ASSERT_TRUE(plan.ok()) << plan.status();
    const OffloadProblem direct = *MakeOffloadProblem(chain, link, budget);
    EXPECT_FALSE(plan->explanation.empty());
    if (budget < direct.least_memory()) {
      EXPECT_EQ(plan->status, PlanStatus::kProvenInfeasible) << Describe(chain);
    }
    if (plan->status == PlanStatus::kProvenInfeasible) {
      EXPECT_GT(plan->bounds.least_budget, budget);
      const absl::StatusOr<OffloadPlan> optimum = DynProgOffload().Solve(direct, {});
      EXPECT_EQ(optimum->status, PlanStatus::kProvenInfeasible) << Describe(chain);
    }
    if (plan->status != PlanStatus::kFound) continue;
    ++found;
    const absl::StatusOr<Simulation> run = Evaluator(Instance(chain, link)).Run(plan->schedule);
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_LE(run->peak, budget);
    EXPECT_LE(run->host_peak, link.host_memory);
    EXPECT_GT(run->offloaded, Bytes(0));
    EXPECT_EQ(run->recomputed_forwards, 0);
    EXPECT_GE(run->makespan, direct.LowerBound());
  }
  EXPECT_GT(found, 20);
}

TEST_P(OffloadSolverTest, TheLeastBudgetIsThatOfTheProblemWhereTheHostHasRoom) {
  if (&strategy() == &TflmsOffload()) GTEST_SKIP() << "it watches no memory";
  std::mt19937_64 rng(52);
  for (int i = 0; i < 100; ++i) {
    const Chain chain = RandomChain(1 + i % 12, VariedOptions(i), &rng);
    TransferModel link = RandomTransferModel(&rng);
    const OffloadProblem direct = *MakeOffloadProblem(chain, link, Bytes(0));
    EXPECT_EQ(*solver().LeastBudget(Instance(chain, link), {}), direct.least_memory())
        << Describe(chain);
  }
}

TEST_P(OffloadSolverTest, LittleHostMemoryRaisesTheLeastBudget) {
  std::mt19937_64 rng(53);
  for (int i = 0; i < 60; ++i) {
    const Chain chain = RandomChain(2 + i % 8, VariedOptions(i), &rng);
    TransferModel link = RandomTransferModel(&rng);
    link.host_memory = Bytes(static_cast<int64_t>(rng() % 10));
    const Bytes least = *solver().LeastBudget(Instance(chain, link), {});
    EXPECT_GE(least, StoreAllPeak(chain) - link.host_memory);
    EXPECT_EQ(solver().Solve(Instance(chain, link), least, {})->status, PlanStatus::kFound);
    if (least == Bytes(0)) continue;
    EXPECT_NE(solver().Solve(Instance(chain, link), least - Bytes(1), {})->status,
              PlanStatus::kFound);
  }
}

TEST_P(OffloadSolverTest, WithoutALinkThereIsPlainTrainingOrNothing) {
  std::mt19937_64 rng(54);
  const Chain chain = RandomChain(8, {}, &rng);
  const Bytes all = StoreAllPeak(chain);
  EXPECT_EQ(solver().Solve(chain, all, {})->schedule, StoreAllSchedule(chain));
  const absl::StatusOr<Plan> below = solver().Solve(chain, all - Bytes(1), {});
  EXPECT_EQ(below->status, PlanStatus::kProvenInfeasible);
  EXPECT_EQ(below->bounds.least_budget, all);
  EXPECT_EQ(*solver().LeastBudget(chain, {}), all);
  // People who name it are told what is missing.
  EXPECT_EQ(below->explanation,
            "without a link to host memory, " + std::to_string(all.value()) + " bytes are needed");
  const absl::StatusOr<Frontier> frontier = solver().SolveFrontier(chain, {});
  ASSERT_EQ(frontier->points().size(), 1u);
  EXPECT_TRUE(frontier->info().exact);
}

TEST_P(OffloadSolverTest, CopiesTooLongForTimesAreNotFound) {
  ChainSpec spec;
  spec.stages.resize(3);
  for (Stage& stage : spec.stages) stage.saved = Bytes(kMaxTotal / 8);
  const Chain chain = *Chain::Create(spec);
  const TransferModel link = {{1, Nanos(0)}, {1, Nanos(0)}, false, Bytes(kMaxTotal)};
  const absl::StatusOr<Plan> plan = solver().Solve(Instance(chain, link), Bytes(kMaxTotal / 4), {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->status, PlanStatus::kNotFound);
  EXPECT_EQ(*solver().LeastBudget(Instance(chain, link), {}), StoreAllPeak(chain));
  EXPECT_EQ(solver().SolveFrontier(Instance(chain, link), {})->points().size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(All, OffloadSolverTest,
                         ::testing::Range(size_t{0}, AllOffloadStrategies().size()),
                         [](const auto& param) {
                           return AllOffloadStrategies()[param.param]->info().name;
                         });

}  // namespace
}  // namespace stowage::testing
