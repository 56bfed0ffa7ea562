#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "solvers/chain/persistent_space.h"
#include "solvers/chain/solvers.h"
#include "solvers/schedule/evaluator.h"
#include "tests/solvers/persistent_search.h"
#include "tests/solvers/random_chain.h"

namespace stowage {
namespace {

// The solver's modes: exact in bytes, and a table with one slot per byte.
constexpr int64_t kExact = 0;
constexpr int64_t kTable = 100000;

// Solves at `budget` and checks that the evaluator confirms what comes back.
Plan SolveChecked(const Chain& chain, int64_t budget, int64_t slots) {
  SolveOptions options;
  options.slots = slots;
  const absl::StatusOr<Plan> plan = OptimalPersistentSolver().Solve(chain, Bytes(budget), options);
  EXPECT_TRUE(plan.ok()) << plan.status() << "\n" << testing::Describe(chain);
  if (plan->status != PlanStatus::kFound) return *plan;
  EXPECT_TRUE(plan->bounds.proven_optimal);
  const absl::StatusOr<Simulation> simulation = Evaluator(chain).Run(plan->schedule);
  EXPECT_TRUE(simulation.ok()) << simulation.status() << "\n" << testing::Describe(chain);
  EXPECT_LE(simulation->peak.value(), budget) << testing::Describe(chain);
  Plan checked = *plan;
  checked.prediction = *simulation;
  return checked;
}

// At every budget where the least time changes, and one byte below it, the solver equals the
// search.
void ExpectEqualToSearch(const Chain& chain, testing::Recompute recompute) {
  const std::map<int64_t, int64_t> frontier = testing::PersistentFrontier(chain, recompute);
  const int64_t least = frontier.begin()->first;
  ASSERT_EQ(OptimalPersistentSolver().LeastBudget(chain, {})->value(), least)
      << testing::Describe(chain);
  for (const int64_t slots : {kExact, kTable}) {
    const int64_t* before = nullptr;
    for (const auto& [budget, time] : frontier) {
      EXPECT_EQ(SolveChecked(chain, budget, slots).prediction.makespan.value(), time)
          << "budget " << budget << " slots " << slots << "\n"
          << testing::Describe(chain);
      if (before != nullptr) {
        EXPECT_EQ(SolveChecked(chain, budget - 1, slots).prediction.makespan.value(), *before)
            << "budget " << budget - 1 << "\n"
            << testing::Describe(chain);
      }
      before = &time;
    }
    if (least > 0) {
      const Plan infeasible = SolveChecked(chain, least - 1, slots);
      EXPECT_EQ(infeasible.status, PlanStatus::kProvenInfeasible) << testing::Describe(chain);
      EXPECT_EQ(infeasible.bounds.least_budget.value(), least) << testing::Describe(chain);
    }
  }
}

// Stage number `code` of all those with small costs in a range; the number is used up digit by
// digit.
Stage EnumeratedStage(int* code) {
  const auto digit = [code](int base) {
    const int value = *code % base;
    *code /= base;
    return value;
  };
  Stage s;
  s.forward_time = Nanos(1 + digit(2));
  s.backward_time = Nanos(1);
  s.output = Bytes(1 + digit(2));
  s.output_gradient = s.output;
  s.saved = s.output + Bytes(2 * digit(2));
  s.forward_saving_overhead = Bytes(digit(2));
  s.forward_overhead = Bytes(digit(2));
  s.backward_overhead = Bytes(2 * digit(2));
  return s;
}

TEST(OptimalPersistent, EqualsSearchOnAllChainsOfTwoStagesInARange) {
  constexpr int kStages = 64 * 64;
  for (int code = 0; code < kStages; ++code) {
    int rest = code;
    ChainSpec spec;
    spec.input = Bytes(1);
    spec.stages = {EnumeratedStage(&rest), EnumeratedStage(&rest)};
    ExpectEqualToSearch(*Chain::Create(spec), testing::Recompute::kAnyTime);
    if (HasFailure()) return;
  }
}

TEST(OptimalPersistent, EqualsSearchOnAllChainsOfThreeStagesInARange) {
  constexpr int kStages = 8 * 8 * 8;  // the first three digits of each stage
  for (int code = 0; code < kStages; ++code) {
    ChainSpec spec;
    spec.input = Bytes(1);
    for (int rest = code, l = 0; l < 3; ++l, rest /= 8) {
      int digits = rest % 8;
      spec.stages.push_back(EnumeratedStage(&digits));
    }
    ExpectEqualToSearch(*Chain::Create(spec), testing::Recompute::kAnyTime);
    if (HasFailure()) return;
  }
}

TEST(OptimalPersistent, EqualsSearchOnRandomChains) {
  std::mt19937_64 rng(3);
  for (int i = 0; i < 2500; ++i) {
    testing::RandomChainOptions options;
    options.with_loss = i % 2 == 0;
    options.with_flags = i % 3 == 0;
    options.with_stops = i % 5 > 2;
    options.with_input_gradient = i % 5 == 0;
    const int length = i < 2200 ? 1 + i % 3 : 4;
    ExpectEqualToSearch(testing::RandomChain(length, options, &rng), testing::Recompute::kOnDemand);
    if (HasFailure()) return;
  }
}

// With one overhead too many in the need of a run, this chain would be refused: the inner maximum
// ends before s'.
TEST(OptimalPersistent, TwoForwardOverheadsDoNotForbidAFeasibleSplit) {
  ChainSpec spec;
  spec.input = Bytes(4);
  spec.stages.resize(2);
  const int64_t values[2][8] = {{1, 2, 3, 5, 7, 2}, {4, 4, 3, 6, 1, 4}};
  for (size_t l = 0; l < 2; ++l) {
    Stage& s = spec.stages[l];
    s.output = Bytes(values[l][0]);
    s.saved = Bytes(values[l][1]);
    s.output_gradient = s.output;
    s.forward_saving_overhead = Bytes(values[l][2]);
    s.forward_overhead = Bytes(values[l][3]);
    s.backward_overhead = Bytes(values[l][4]);
    s.forward_time = Nanos(values[l][5]);
  }
  EXPECT_EQ(SolveChecked(*Chain::Create(spec), 14, kExact).prediction.makespan, Nanos(8));
}

// The least-memory schedule, a table and the exact recurrence agree where they must on chains too
// long for the search.
TEST(OptimalPersistent, ExactAndTableAgreeOnLongerChains) {
  std::mt19937_64 rng(4);
  for (int i = 0; i < 60; ++i) {
    testing::RandomChainOptions options;
    options.with_flags = i % 2 == 0;
    options.with_stops = i % 5 > 2;
    const Chain chain = testing::RandomChain(12, options, &rng);
    const int64_t least = OptimalPersistentSolver().LeastBudget(chain, {})->value();
    int64_t before = INT64_MAX;
    for (int64_t budget = least; budget < least + 40; budget += 3) {
      const int64_t exact = SolveChecked(chain, budget, kExact).prediction.makespan.value();
      EXPECT_EQ(exact, SolveChecked(chain, budget, kTable).prediction.makespan.value());
      EXPECT_LE(exact, before) << "more budget is slower\n" << testing::Describe(chain);
      before = exact;
    }
  }
}

// What is feasible is found even when the exact recurrence is cut short and every table rounds the
// budget away.
TEST(OptimalPersistent, ScheduleOfLeastMemoryAttainsIt) {
  std::mt19937_64 rng(5);
  for (int i = 0; i < 200; ++i) {
    const Chain chain = testing::RandomChain(1 + i % 15, {}, &rng);
    const PersistentSpace exact(chain, 1);
    const absl::StatusOr<MinimumMemory> least = ComputeMinimumMemory(exact, {});
    const Schedule schedule = PersistentBacktrack::Run(
        exact, 0, [&least](int s, int t, int64_t) { return least->table(s, t).split; });
    const absl::StatusOr<Simulation> simulation = Evaluator(chain).Run(schedule);
    ASSERT_TRUE(simulation.ok()) << simulation.status();
    EXPECT_EQ(simulation->peak.value(), LeastBudgetOf(exact, *least)) << testing::Describe(chain);
  }
}

TEST(OptimalPersistent, CoarseSlotsSayNotFoundRatherThanInfeasible) {
  std::mt19937_64 rng(7);
  testing::RandomChainOptions options;
  options.max_size = 1000;
  const Chain chain = testing::RandomChain(20, options, &rng);
  SolveOptions coarse;
  coarse.slots = 5;
  const Bytes least = *OptimalPersistentSolver().LeastBudget(chain, {});
  const absl::StatusOr<Plan> plan = OptimalPersistentSolver().Solve(chain, least, coarse);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->status, PlanStatus::kNotFound);
  EXPECT_EQ(OptimalPersistentSolver().Solve(chain, least, {})->status, PlanStatus::kFound);
}

// A budget between one and two slots per byte: none of it may be left out and yet called proven.
TEST(OptimalPersistent, FewerSlotsThanBytesLeaveNoMemoryOut) {
  std::mt19937_64 rng(11);
  testing::RandomChainOptions options;
  options.max_size = 20;
  for (int i = 0; i < 100; ++i) {
    const Chain chain = testing::RandomChain(3, options, &rng);
    for (const auto& [budget, time] : testing::PersistentFrontier(chain)) {
      SolveOptions few;
      few.slots = budget * 2 / 3;
      if (few.slots == 0) continue;
      const absl::StatusOr<Plan> plan = OptimalPersistentSolver().Solve(chain, Bytes(budget), few);
      ASSERT_TRUE(plan.ok()) << plan.status();
      ASSERT_EQ(plan->status, PlanStatus::kFound) << testing::Describe(chain);
      EXPECT_EQ(Evaluator(chain).Run(plan->schedule)->makespan.value(), time)
          << testing::Describe(chain);
    }
  }
}

// Too long for a table, short enough for the least memory: a plan all the same, soon.
TEST(OptimalPersistent, ChainsTooLongToSolveExactlyGetAPlan) {
  std::mt19937_64 rng(12);
  testing::RandomChainOptions random;
  random.max_size = 1 << 20;
  const Chain chain = testing::RandomChain(600, random, &rng);
  const Bytes least = *OptimalPersistentSolver().LeastBudget(chain, {});
  for (const int64_t budget : {least.value(), least.value() * 3 / 2}) {
    const absl::StatusOr<Plan> plan = OptimalPersistentSolver().Solve(chain, Bytes(budget), {});
    ASSERT_TRUE(plan.ok()) << plan.status();
    ASSERT_EQ(plan->status, PlanStatus::kFound);
    EXPECT_LE(Evaluator(chain).Run(plan->schedule)->peak.value(), budget);
    EXPECT_FALSE(plan->bounds.proven_optimal);
  }
}

TEST(OptimalPersistent, EqualInputGivesEqualSchedules) {
  std::mt19937_64 rng(8);
  const Chain chain = testing::RandomChain(20, {}, &rng);
  const Bytes budget(OptimalPersistentSolver().LeastBudget(chain, {})->value() * 3 / 2);
  const Schedule first = OptimalPersistentSolver().Solve(chain, budget, {})->schedule;
  EXPECT_EQ(first, OptimalPersistentSolver().Solve(chain, budget, {})->schedule);
}

// Stages that cost no time must not be recomputed for nothing.
TEST(OptimalPersistent, TiesPreferKeeping) {
  ChainSpec spec;
  spec.stages.resize(5);
  for (Stage& s : spec.stages) {
    s.output = s.saved = Bytes(1);
    s.forward_time = Nanos(1);
  }
  spec.stages[0].saved = Bytes(50);
  spec.stages[0].forward_time = spec.stages[2].forward_time = spec.stages[3].forward_time =
      Nanos(0);
  const Chain chain = *Chain::Create(spec);
  const absl::StatusOr<Plan> plan = OptimalPersistentSolver().Solve(chain, Bytes(51), {});
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(plan->status, PlanStatus::kFound);
  const absl::StatusOr<Simulation> simulation = Evaluator(chain).Run(plan->schedule);
  EXPECT_EQ(simulation->recompute_time, Nanos(0));
  EXPECT_EQ(simulation->recomputed_forwards, 1);
}

// Why the class says "on demand": here recomputing stages 1 and 2 before backward 3, while the
// gradient is still small, fits a budget in which doing so afterwards does not.
TEST(OptimalPersistent, RecomputingAheadOfDemandIsAnotherClass) {
  const int64_t values[4][8] = {{1, 5, 1, 5, 3, 0, 3, 5},
                                {0, 0, 1, 3, 5, 2, 0, 1},
                                {4, 4, 3, 3, 0, 4, 4, 0},
                                {4, 0, 4, 8, 1, 0, 2, 1}};
  std::vector<Stage> stages;
  for (const auto& v : values) {
    Stage& s = stages.emplace_back();
    s.forward_time = Nanos(v[0]);
    s.backward_time = Nanos(v[1]);
    s.output = Bytes(v[2]);
    s.saved = Bytes(v[3]);
    s.output_gradient = Bytes(v[4]);
    s.forward_saving_overhead = Bytes(v[5]);
    s.forward_overhead = Bytes(v[6]);
    s.backward_overhead = Bytes(v[7]);
  }
  ChainSpec spec;
  spec.input = Bytes(2);
  spec.loss = stages.back();
  stages.pop_back();
  spec.stages = stages;
  const Chain chain = *Chain::Create(spec);
  EXPECT_EQ(SolveChecked(chain, 16, kExact).prediction.makespan, Nanos(20));
  EXPECT_EQ(testing::PersistentFrontier(chain, testing::Recompute::kAnyTime).at(16), 19);
}

TEST(OptimalPersistent, IsNeverSlowerThanPeriodicCheckpointing) {
  std::mt19937_64 rng(23);
  int strictly = 0;
  for (int i = 0; i < 150; ++i) {
    const Chain chain = testing::RandomChain(10, {}, &rng);
    const Bytes least = *OptimalPersistentSolver().LeastBudget(chain, {});
    for (int64_t budget = least.value(); budget < 2 * least.value(); budget += 3) {
      const absl::StatusOr<Plan> periodic =
          CheckpointSequentialSolver().Solve(chain, Bytes(budget), {});
      const Plan optimal = SolveChecked(chain, budget, kExact);
      ASSERT_EQ(optimal.status, PlanStatus::kFound);
      if (periodic->status != PlanStatus::kFound) continue;
      const Nanos makespan = Evaluator(chain).Run(periodic->schedule)->makespan;
      EXPECT_LE(optimal.prediction.makespan, makespan) << testing::Describe(chain);
      strictly += optimal.prediction.makespan < makespan ? 1 : 0;
    }
  }
  EXPECT_GT(strictly, 100);
}

}  // namespace
}  // namespace stowage
