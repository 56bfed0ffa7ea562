// What every chain solver must do, whatever its class: its plans. Instantiate the suite with the solver,
// without and with a link to host memory.
#ifndef STOWAGE_TESTS_SOLVERS_CHAIN_CHAIN_SOLVER_CONFORMANCE_H_
#define STOWAGE_TESTS_SOLVERS_CHAIN_CHAIN_SOLVER_CONFORMANCE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>

#include "solvers/chain/solvers.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "tests/solvers/chain/chain_solver_cases.h"
#include "tests/solvers/naive_replay.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/solver_promises.h"

namespace stowage::testing {

class ChainSolvers : public ChainSolverTest {};

TEST_P(ChainSolvers, PlansAreValidAndWithinBudget) {
  std::mt19937_64 rng(20);
  for (int i = 0; i < 200; ++i) {
    RandomChainOptions options;
    options.with_flags = i % 4 == 0;
    options.with_stops = i % 5 > 2;
    const Chain chain = RandomChain(1 + i % 12, options, &rng);
    NewLink(&rng);
    const int64_t all = Evaluator(chain).Run(StoreAllSchedule(chain))->peak.value();
    for (const double share : {0.3, 0.5, 0.7, 0.9, 1.0, 2.0}) {
      const Bytes budget(static_cast<int64_t>(share * static_cast<double>(all)));
      const absl::StatusOr<Plan> plan = Solve(chain, budget);
      ASSERT_TRUE(plan.ok()) << plan.status();
      EXPECT_EQ(plan->status == PlanStatus::kFound, budget >= Least(chain)) << Describe(chain);
      if (plan->status != PlanStatus::kFound) continue;
      const NaiveResult naive = Naive(chain, plan->schedule);
      EXPECT_TRUE(naive.valid) << Describe(chain);
      EXPECT_LE(naive.peak, budget.value()) << Describe(chain);
      EXPECT_FALSE(plan->bounds.schedule_class.empty());
    }
  }
}

TEST_P(ChainSolvers, LeastBudgetIsExact) {
  std::mt19937_64 rng(21);
  for (int i = 0; i < 100; ++i) {
    const Chain chain = RandomChain(1 + i % 9, {}, &rng);
    NewLink(&rng);
    const Bytes least = Least(chain);
    const absl::StatusOr<Plan> plan = Solve(chain, least);
    ASSERT_TRUE(plan.ok());
    ASSERT_EQ(plan->status, PlanStatus::kFound) << Describe(chain);
    EXPECT_EQ(Run(chain, plan->schedule).peak, least) << Describe(chain);
    if (least == Bytes(0)) continue;
    const absl::StatusOr<Plan> below = Solve(chain, least - Bytes(1));
    EXPECT_NE(below->status, PlanStatus::kFound);
    EXPECT_TRUE(below->status == PlanStatus::kProvenInfeasible || !FindsAllThatFits());
    if (below->status == PlanStatus::kProvenInfeasible) {
      EXPECT_EQ(below->bounds.least_budget, least);
    }
    EXPECT_TRUE(below->schedule.empty());
  }
}

TEST_P(ChainSolvers, StoresAllWheneverItFits) {
  std::mt19937_64 rng(22);
  for (int i = 0; i < 100; ++i) {
    const Chain chain = RandomChain(1 + i % 9, {}, &rng);
    NewLink(&rng);
    const Bytes all = Evaluator(chain).Run(StoreAllSchedule(chain))->peak;
    EXPECT_EQ(Solve(chain, all)->schedule, StoreAllSchedule(chain)) << Describe(chain);
  }
}

TEST_P(ChainSolvers, HandlesChainsThatCostNothing) {
  std::mt19937_64 rng(31);
  ChainSpec spec;
  spec.stages.resize(3);
  const Chain chain = *Chain::Create(spec);
  NewLink(&rng);
  const absl::StatusOr<Plan> plan = Solve(chain, Bytes(0));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->status, PlanStatus::kFound);
}

TEST_P(ChainSolvers, HandlesTheLargestSizes) {
  std::mt19937_64 rng(31);
  ChainSpec spec;
  spec.stages.resize(2);
  spec.stages[0].output = spec.stages[0].saved = Bytes(kMaxTotal / 4);
  const Chain chain = *Chain::Create(spec);
  NewLink(&rng);
  EXPECT_TRUE(Solve(chain, Bytes(kMaxTotal / 8)).ok());
  EXPECT_TRUE(Solve(chain, Bytes(kMaxTotal)).ok());
  EXPECT_TRUE(Solve(chain, Bytes(INT64_MAX)).ok());
}

TEST_P(ChainSolvers, MoreBudgetIsNeverSlower) {
  std::mt19937_64 rng(26);
  for (int i = 0; i < (MadeOfManySolves() ? 18 : 60); ++i) {
    RandomChainOptions options;
    options.with_flags = i % 4 == 0;
    options.with_stops = i % 5 > 2;
    if (i % 2 == 1) options.max_size = options.max_time = 1000;
    const Chain chain = RandomChain(1 + i % (MadeOfManySolves() ? 10 : 20), options, &rng);
    NewLink(&rng);
    if (i % 3 == 1) LimitHost(chain);
    ExpectMoreBudgetIsNeverSlower(solver(), Linked(chain), 12);
  }
}

TEST_P(ChainSolvers, HasAPlanAtTheDeadlineIfItSaysSo) {
  std::mt19937_64 rng(32);
  for (const int length : {1, 6, 14}) {
    const Chain chain = RandomChain(length, {}, &rng);
    NewLink(&rng);
    const Bytes least = Least(chain);
    const Bytes all = Evaluator(chain).Run(StoreAllSchedule(chain))->peak;
    if (least < all) ExpectAPlanAtTheDeadline(solver(), Linked(chain), all - Bytes(1));
    ExpectPointsAtTheDeadline(solver(), Linked(chain));
  }
}

TEST_P(ChainSolvers, AnswersEveryBudgetOfOneStage) {
  std::mt19937_64 rng(31);
  ChainSpec spec;
  Stage stage;
  stage.forward_time = stage.backward_time = Nanos(5);
  stage.output = stage.output_gradient = Bytes(10);
  stage.saved = Bytes(30);
  spec.input = Bytes(7);
  spec.stages.push_back(stage);
  const Chain chain = *Chain::Create(spec);
  NewLink(&rng);
  const Bytes all = Evaluator(chain).Run(StoreAllSchedule(chain))->peak;
  EXPECT_EQ(Least(chain), all);
  for (const Bytes budget : {Bytes(0), Bytes(1), all - Bytes(1)}) {
    const absl::StatusOr<Plan> plan = Solve(chain, budget);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->status, PlanStatus::kProvenInfeasible) << budget.value();
    EXPECT_EQ(plan->bounds.least_budget, all);
  }
  for (const Bytes budget : {all, all + Bytes(1), Bytes(INT64_MAX)}) {
    EXPECT_EQ(Solve(chain, budget)->schedule, StoreAllSchedule(chain));
  }
}

TEST_P(ChainSolvers, ProvesThatAStageLargerThanTheBudgetDoesNotFit) {
  std::mt19937_64 rng(28);
  ChainSpec spec = RandomChain(12, {}, &rng).spec();
  spec.stages[5].saved = Bytes(1000);
  const Chain chain = *Chain::Create(spec);
  NewLink(&rng);
  const absl::StatusOr<Plan> plan = Solve(chain, Bytes(999));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->status, PlanStatus::kProvenInfeasible);
  EXPECT_GE(plan->bounds.least_budget, Bytes(1000));
}

TEST_P(ChainSolvers, PlansStagesThatTakeNoTimeOrNoBytes) {
  std::mt19937_64 rng(29);
  for (const bool no_time : {true, false}) {
    ChainSpec spec = RandomChain(9, {}, &rng).spec();
    for (Stage& stage : spec.stages) {
      if (no_time) {
        stage.forward_time = stage.backward_time = Nanos(0);
      } else {
        const Nanos forward = stage.forward_time, backward = stage.backward_time;
        stage = Stage();
        stage.forward_time = forward;
        stage.backward_time = backward;
      }
    }
    const Chain chain = *Chain::Create(spec);
    NewLink(&rng);
    const Bytes least = Least(chain);
    const absl::StatusOr<Plan> plan = Solve(chain, least);
    ASSERT_TRUE(plan.ok()) << plan.status();
    ASSERT_EQ(plan->status, PlanStatus::kFound);
    EXPECT_LE(Run(chain, plan->schedule).peak, least);
    EXPECT_TRUE(solver().SolveFrontier(Linked(chain), {}).ok());
  }
}

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_CHAIN_CHAIN_SOLVER_CONFORMANCE_H_
