// What a caller sees of optimal_persistent beside its plans: stops, progress and refusals.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "solvers/chain/solvers.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/stop_looks.h"

namespace stowage {
namespace {

Chain LongChain(int length) {
  std::mt19937_64 rng(9);
  testing::RandomChainOptions random;
  random.max_size = 1 << 20;
  return testing::RandomChain(length, random, &rng);
}

Bytes TwiceTheLeast(const Chain& chain) {
  return Bytes(OptimalPersistentSolver().LeastBudget(chain, {})->value() * 2);
}

TEST(OptimalPersistentLimits, StopsWhenToldTo) {
  const Chain chain = LongChain(300);
  const Bytes budget = TwiceTheLeast(chain);
  StopToken cancelled;
  cancelled.RequestStop();
  SolveOptions options;
  options.stop = &cancelled;
  EXPECT_EQ(OptimalPersistentSolver().Solve(chain, budget, options).status().code(),
            absl::StatusCode::kCancelled);
  testing::ExpectToEndAtTheLook([&](const StopToken& stop) {
    options.stop = &stop;
    return OptimalPersistentSolver().Solve(chain, budget, options).status();
  });
}

// Wherever it is: all over the solve, from the exact least memory to the schedules of the table.
TEST(OptimalPersistentLimits, StopsAnywhereOnLongChains) {
  const Chain chain = LongChain(600);
  const Bytes budget = TwiceTheLeast(chain);
  SolveOptions options;
  options.slots = 100;
  const auto solve = [&](const StopToken& stop) {
    options.stop = &stop;
    return OptimalPersistentSolver().Solve(chain, budget, options).status();
  };
  const StopToken all;
  ASSERT_TRUE(solve(all).ok());
  for (const int64_t tenth : {1, 4, 7, 10}) {
    StopToken stop;
    stop.PassDeadlineAtLook(all.looks() * tenth / 10);
    EXPECT_EQ(solve(stop).code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_EQ(stop.looks(), all.looks() * tenth / 10);
  }
}

// A table of twice the slots is twice the work.
TEST(OptimalPersistentLimits, LooksAtTheTokenAsOftenAsThereIsWork) {
  const Chain chain = LongChain(300);
  const Bytes budget = TwiceTheLeast(chain);
  int64_t before = 0;
  for (const int64_t slots : {250, 500, 1000}) {
    const StopToken stop;
    SolveOptions options;
    options.slots = slots;
    options.stop = &stop;
    ASSERT_TRUE(OptimalPersistentSolver().Solve(chain, budget, options).ok());
    EXPECT_GT(stop.looks(), before);
    before = stop.looks();
  }
}

TEST(OptimalPersistentLimits, ProgressNeverFallsAndEndsAtOne) {
  std::mt19937_64 rng(13);
  testing::RandomChainOptions random;
  random.max_size = 1 << 20;
  const Chain tables = testing::RandomChain(150, random, &rng);
  const Chain exact = testing::RandomChain(10, random, &rng);
  std::vector<double> shares;
  SolveOptions options;
  options.progress = [&shares](double share) { shares.push_back(share); };
  const auto check = [&shares](size_t least) {
    ASSERT_GE(shares.size(), least);
    EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
    EXPECT_GE(shares.front(), 0.0);
    EXPECT_EQ(shares.back(), 1.0);
    shares.clear();
  };
  for (const Chain* chain : {&tables, &exact}) {
    const size_t least = chain == &tables ? 20 : 1;
    const Bytes budget(OptimalPersistentSolver().LeastBudget(*chain, {})->value() * 3 / 2);
    ASSERT_TRUE(OptimalPersistentSolver().Solve(*chain, budget, options).ok());
    check(least);
    ASSERT_TRUE(OptimalPersistentSolver().SolveFrontier(*chain, options).ok());
    check(least);
  }
  // Everything fits.
  ASSERT_TRUE(OptimalPersistentSolver().Solve(exact, Bytes(int64_t{1} << 40), options).ok());
  check(1);
}

Chain EqualStages(int length) {
  ChainSpec spec;
  Stage stage;
  stage.forward_time = stage.backward_time = Nanos(1);
  stage.output = stage.output_gradient = stage.saved = Bytes(1);
  spec.stages.assign(static_cast<size_t>(length), stage);
  return *Chain::Create(spec);
}

// Of little memory, schedules of equal stages have L^2 / 2 instructions.
TEST(OptimalPersistentLimits, RefusesSchedulesTooLongToKeep) {
  const Chain long_chain = EqualStages(3500);
  const absl::StatusOr<Plan> within_one = OptimalPersistentSolver().Solve(long_chain, Bytes(1), {});
  ASSERT_TRUE(within_one.ok()) << within_one.status();
  EXPECT_EQ(within_one->status, PlanStatus::kProvenInfeasible);
  const Bytes least = within_one->bounds.least_budget;
  EXPECT_EQ(OptimalPersistentSolver().LeastBudget(long_chain, {}).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(OptimalPersistentSolver().Solve(long_chain, least, {}).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(OptimalPersistentSolver().SolveFrontier(long_chain, {}).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(OptimalPersistentSolver().Solve(long_chain, least - Bytes(1), {})->status,
            PlanStatus::kProvenInfeasible);
  EXPECT_EQ(OptimalPersistentSolver().LeastBudget(EqualStages(15000), {}).status().code(),
            absl::StatusCode::kResourceExhausted);
}

// Nothing has a size, and a table is asked for all the same.
TEST(OptimalPersistentLimits, ChainsWithoutSizesGetAFrontier) {
  ChainSpec spec;
  spec.stages.resize(4);
  for (Stage& stage : spec.stages) stage.forward_time = Nanos(3);
  SolveOptions options;
  options.slots = 10;
  const Chain chain = *Chain::Create(spec);
  const absl::StatusOr<Frontier> frontier = OptimalPersistentSolver().SolveFrontier(chain, options);
  ASSERT_TRUE(frontier.ok()) << frontier.status();
  ASSERT_EQ(frontier->points().size(), 1u);
  EXPECT_EQ(frontier->points()[0].makespan,
            Evaluator(chain).Run(StoreAllSchedule(chain))->makespan);
}

TEST(OptimalPersistentLimits, SaysWhereTheLimitLeftTablesOut) {
  std::mt19937_64 rng(14);
  testing::RandomChainOptions random;
  random.max_size = 1 << 20;
  const Chain chain = testing::RandomChain(150, random, &rng);
  const Bytes budget(OptimalPersistentSolver().LeastBudget(chain, {})->value() * 3 / 2);
  SolveOptions options;
  const std::string free = OptimalPersistentSolver().Solve(chain, budget, options)->explanation;
  EXPECT_EQ(free.find("no table"), std::string::npos) << free;
  options.table_limit = Bytes(600000);
  const absl::StatusOr<Plan> plan = OptimalPersistentSolver().Solve(chain, budget, options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_NE(plan->explanation.find("no table within"), std::string::npos) << plan->explanation;
}

TEST(OptimalPersistentLimits, RefusesTablesOverTheLimitAndBadSlots) {
  std::mt19937_64 rng(10);
  testing::RandomChainOptions random;
  random.max_size = 1 << 20;
  const Chain chain = testing::RandomChain(100, random, &rng);
  const Bytes budget(OptimalPersistentSolver().LeastBudget(chain, {})->value() * 2);
  SolveOptions options;
  options.slots = 1000;
  options.table_limit = Bytes(1 << 20);
  EXPECT_EQ(OptimalPersistentSolver().Solve(chain, budget, options).status().code(),
            absl::StatusCode::kResourceExhausted);
  for (const int64_t slots : {int64_t{-1}, int64_t{1000001}}) {
    options.slots = slots;
    EXPECT_EQ(OptimalPersistentSolver().Solve(chain, budget, options).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

// Thousands of stages that have nothing in common: known from their number, or from their repeats.
TEST(RecurrencesOverIntervals, RefuseChainsThatWouldTakeMinutes) {
  std::mt19937_64 rng(50);
  testing::RandomChainOptions sizes;
  sizes.max_size = sizes.max_time = 1000;
  for (const int length : {2000, 100000}) {
    const Chain chain = testing::RandomChain(length, sizes, &rng);
    for (const Solver* solver : {&RevolveSolver(), &NonPersistentSolver()}) {
      EXPECT_TRUE(absl::IsResourceExhausted(solver->Solve(chain, Bytes(1000000), {}).status()));
      EXPECT_TRUE(absl::IsResourceExhausted(solver->SolveFrontier(chain, {}).status()));
      EXPECT_TRUE(absl::IsResourceExhausted(solver->LeastBudget(chain, {}).status()));
    }
  }
}

}  // namespace
}  // namespace stowage
