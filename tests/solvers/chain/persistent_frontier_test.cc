#include "solvers/chain/internal/persistent_frontier.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "solvers/chain/persistent_table.h"
#include "solvers/chain/solvers.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "tests/solvers/persistent_search.h"
#include "tests/solvers/random_chain.h"

namespace stowage {
namespace {

// Sizes that no unit of some thousand slots divides.
Chain OddChain(int length, std::mt19937_64* rng) {
  testing::RandomChainOptions options;
  options.max_size = 1 << 20;
  options.max_time = 1 << 10;
  return testing::RandomChain(length, options, rng);
}

// What cheap schedules and tables have, the exact steps left out.
struct Tables {
  Frontier frontier;
  TableSummary summary;
};

Tables SolveByTables(const PersistentProblem& problem, Bytes budget, int64_t slots) {
  SolveOptions options;
  options.slots = slots;
  FrontierBuilder builder(problem.instance);
  const absl::StatusOr<TableSummary> summary = AddSchedules(problem, budget, options, &builder);
  EXPECT_TRUE(summary.ok()) << summary.status();
  return {builder.Build(FrontierInfo()), *summary};
}

std::vector<Bytes> Grid(const PersistentProblem& problem, int count) {
  std::vector<Bytes> budgets;
  const Bytes width = problem.store_all_peak - problem.least_budget;
  for (int i = 0; i <= count; ++i) {
    budgets.push_back(problem.least_budget + Bytes(width.value() / count * i));
  }
  return budgets;
}

TEST(PersistentFrontier, EqualsTheSearchAtEveryBudget) {
  std::mt19937_64 rng(41);
  for (int i = 0; i < 500; ++i) {
    testing::RandomChainOptions options;
    options.with_flags = i % 3 == 0;
    options.with_stops = i % 5 > 2;
    const Chain chain = testing::RandomChain(1 + i % 5, options, &rng);
    const Frontier frontier = *OptimalPersistentSolver().SolveFrontier(chain, {});
    EXPECT_TRUE(frontier.info().exact);
    std::map<int64_t, int64_t> points;
    for (const Frontier::Point& p : frontier.points()) points[p.peak.value()] = p.makespan.value();
    EXPECT_EQ(points, testing::PersistentFrontier(chain)) << testing::Describe(chain);
    if (HasFailure()) return;
  }
}

// Small sizes: a table with a slot per byte, or per two bytes, is exact.
TEST(PersistentFrontier, TablesThatRoundNothingAreExact) {
  std::mt19937_64 rng(42);
  for (int i = 0; i < 300; ++i) {
    const Chain chain = testing::RandomChain(1 + i % 5, {}, &rng);
    const absl::StatusOr<PersistentProblem> problem = MakePersistentProblem(chain, {});
    const Tables tables = SolveByTables(*problem, problem->least_budget, 0);
    EXPECT_TRUE(tables.summary.lossless);
    std::map<int64_t, int64_t> points;
    for (const Frontier::Point& p : tables.frontier.points())
      points[p.peak.value()] = p.makespan.value();
    EXPECT_EQ(points, testing::PersistentFrontier(chain)) << testing::Describe(chain);
    if (HasFailure()) return;
  }
}

// Which are the optimum; periodic schedules are among what tables are added to.
TEST(PersistentFrontier, RoundedTablesLieBetweenTheExactStepsAndPeriodicSchedules) {
  std::mt19937_64 rng(43);
  for (int i = 0; i < 10; ++i) {
    const Chain chain = OddChain(40, &rng);
    const absl::StatusOr<PersistentProblem> problem = MakePersistentProblem(chain, {});
    const Frontier exact = *OptimalPersistentSolver().SolveFrontier(chain, {});
    const Frontier periodic = *CheckpointSequentialSolver().SolveFrontier(chain, {});
    ASSERT_EQ(exact.info().slots, 0);
    const Tables tables = SolveByTables(*problem, problem->store_all_peak, 0);
    EXPECT_FALSE(tables.summary.lossless);
    for (const Bytes budget : Grid(*problem, 100)) {
      const Nanos found = tables.frontier.At(budget)->makespan;
      EXPECT_GE(found, exact.At(budget)->makespan);
      const Frontier::Point* simple = periodic.At(budget);
      if (simple != nullptr) {
        EXPECT_LE(found, simple->makespan);
      }
    }
  }
}

// Few slots, so that the ranges of budgets have to agree in spite of their rounding.
TEST(PersistentFrontier, MoreBudgetIsNeverSlowerForSingleBudgets) {
  std::mt19937_64 rng(44);
  for (int i = 0; i < 20; ++i) {
    const Chain chain = OddChain(30, &rng);
    const absl::StatusOr<PersistentProblem> problem = MakePersistentProblem(chain, {});
    const Frontier whole = SolveByTables(*problem, problem->store_all_peak, 70).frontier;
    int64_t before = INT64_MAX;
    for (const Bytes budget : Grid(*problem, 40)) {
      const Frontier frontier = SolveByTables(*problem, budget, 70).frontier;
      ASSERT_NE(frontier.At(budget), nullptr);
      EXPECT_LE(frontier.At(budget)->makespan.value(), before);
      EXPECT_GE(frontier.At(budget)->makespan, whole.At(budget)->makespan);
      before = frontier.At(budget)->makespan.value();
    }
  }
}

TEST(PersistentFrontier, PlansAtRisingBudgetsAreNeverSlower) {
  std::mt19937_64 rng(45);
  for (int i = 0; i < 20; ++i) {
    const Chain chain = OddChain(5 + i, &rng);
    const absl::StatusOr<PersistentProblem> problem = MakePersistentProblem(chain, {});
    int64_t before = INT64_MAX;
    for (const Bytes budget : Grid(*problem, 40)) {
      const absl::StatusOr<Plan> plan = OptimalPersistentSolver().Solve(chain, budget, {});
      ASSERT_EQ(plan->status, PlanStatus::kFound);
      const int64_t makespan = Evaluator(chain).Run(plan->schedule)->makespan.value();
      EXPECT_LE(makespan, before);
      before = makespan;
    }
  }
}

TEST(PersistentFrontier, IsCompactAndSaysWhenThinningEndedTheProof) {
  std::mt19937_64 rng(46);
  const Chain chain = OddChain(70, &rng);
  const absl::StatusOr<PersistentProblem> problem = MakePersistentProblem(chain, {});
  const auto steps = ExactSteps(*problem, {});
  ASSERT_TRUE(steps->has_value());
  ASSERT_GT((*steps)->Whole().size(), 600u);
  const Frontier frontier = *OptimalPersistentSolver().SolveFrontier(chain, {});
  EXPECT_LE(frontier.points().size(), 600u);
  EXPECT_GT(frontier.points().size(), 300u);
  EXPECT_FALSE(frontier.info().exact);
  for (const PersistentSteps::Step& step : (*steps)->Whole()) {
    const Bytes budget = Bytes(step.memory) + chain.activation(0);
    EXPECT_GE(frontier.At(budget)->makespan, chain.ideal_time() + Nanos(step.overhead));
  }
}

TEST(PersistentFrontier, SlotsAskForTables) {
  std::mt19937_64 rng(47);
  const Chain chain = OddChain(20, &rng);
  SolveOptions options;
  options.slots = 200;
  const absl::StatusOr<Frontier> frontier = OptimalPersistentSolver().SolveFrontier(chain, options);
  ASSERT_TRUE(frontier.ok()) << frontier.status();
  EXPECT_GE(frontier->info().slots, 200);
  EXPECT_LE(frontier->info().slots, 210);
  EXPECT_FALSE(frontier->info().exact);
  options.slots = -1;
  EXPECT_EQ(OptimalPersistentSolver().SolveFrontier(chain, options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(PersistentFrontier, EqualInputGivesEqualBytes) {
  std::mt19937_64 rng(48);
  const Chain chain = OddChain(40, &rng);
  for (const int64_t slots : {0, 100}) {
    SolveOptions options;
    options.slots = slots;
    const std::string first = OptimalPersistentSolver().SolveFrontier(chain, options)->Encode();
    options.threads = 2;
    EXPECT_EQ(first, OptimalPersistentSolver().SolveFrontier(chain, options)->Encode());
  }
}

// However coarse the table: the schedule fits.
TEST(RoundingAwareBacktracking, KeepsEveryBudgetFromTheLeastOn) {
  std::mt19937_64 rng(49);
  for (const int64_t slots : {8, 2000}) {
    for (int i = 0; i < 30; ++i) {
      const Chain chain = OddChain(2 + i, &rng);
      const absl::StatusOr<PersistentProblem> problem = MakePersistentProblem(chain, {});
      const auto steps = ExactSteps(*problem, {});
      ASSERT_TRUE(steps->has_value());
      const int64_t unit = problem->store_all_peak.value() / slots + 1;
      const PersistentSpace space(chain, unit, Rounding::kNearest);
      const auto table = PersistentTable::Compute(space, slots, {});
      for (const Bytes budget : Grid(*problem, 20)) {
        const int64_t memory = (budget - chain.activation(0)).value();
        const absl::StatusOr<Simulation> simulation = Evaluator(chain).Run(
            RoundingAwareSchedule(problem->exact, problem->least, *table, unit, memory));
        ASSERT_TRUE(simulation.ok()) << simulation.status();
        EXPECT_LE(simulation->peak, budget);
        const Simulation best = *Evaluator(chain).Run((*steps)->Backtrack(memory));
        EXPECT_GE(simulation->makespan, best.makespan);
      }
    }
  }
}

}  // namespace
}  // namespace stowage
