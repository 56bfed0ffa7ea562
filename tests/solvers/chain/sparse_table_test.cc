#include "solvers/chain/internal/sparse_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "solvers/chain/internal/non_persistent_table.h"
#include "solvers/chain/persistent_space.h"
#include "solvers/chain/solvers.h"
#include "solvers/model/budget.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "tests/solvers/random_chain.h"

namespace stowage::testing {
namespace {

// A chain with tables of it whose slots are bytes.
struct Tables {
  Tables(const Chain& chain, int dense)
      : space(chain, 1),
        intervals(space, dense),
        slots(Evaluator(chain).Run(StoreAllSchedule(chain))->peak.value()),
        all(NonPersistentTable::Compute(space, /*moving=*/false, slots, {}).value()),
        some(SparseTable::Compute(space, intervals, slots, {}).value()) {}

  PersistentSpace space;
  SparseIntervals intervals;
  int64_t slots;
  std::unique_ptr<NonPersistentTable> all;
  std::unique_ptr<SparseTable> some;
};

// Every value is attained by a schedule within its memory, and more memory is never slower.
void ExpectValuesAreAttained(const Chain& chain, const Tables& tables) {
  const int64_t ideal = chain.ideal_time().value();
  int64_t before = kInfinity;
  for (int64_t m = 0; m <= tables.slots; ++m) {
    const int64_t overhead = tables.some->Overhead(m);
    ASSERT_LE(overhead, before) << Describe(chain);
    if (overhead == before) continue;
    before = overhead;
    const absl::StatusOr<Simulation> run = Evaluator(chain).Run(tables.some->Backtrack(m));
    ASSERT_TRUE(run.ok()) << run.status() << Describe(chain);
    EXPECT_LE(run->peak.value(), m) << Describe(chain);
    EXPECT_EQ(run->makespan.value(), ideal + overhead) << Describe(chain);
  }
  EXPECT_EQ(before, 0) << Describe(chain);
}

TEST(SparseTableTest, OverAllIntervalsIsTheNonPersistentTable) {
  std::mt19937_64 rng(1);
  for (int i = 0; i < 200; ++i) {
    const Chain chain = RandomChain(1 + i % 12, VariedOptions(i), &rng);
    const Tables tables(chain, /*dense=*/16);
    for (int64_t m = 0; m <= tables.slots; ++m) {
      ASSERT_EQ(tables.some->Overhead(m), tables.all->Overhead(m)) << m << ' ' << Describe(chain);
    }
    ExpectValuesAreAttained(chain, tables);
  }
}

TEST(SparseTableTest, OverSomeIntervalsIsValidAndNeverFaster) {
  std::mt19937_64 rng(2);
  for (int i = 0; i < 24; ++i) {
    const Chain chain = RandomChain(10 + i % 40, VariedOptions(i), &rng);
    const Tables tables(chain, /*dense=*/1 + i % 4);
    for (int64_t m = 0; m <= tables.slots; ++m) {
      ASSERT_GE(tables.some->Overhead(m), tables.all->Overhead(m)) << m << ' ' << Describe(chain);
    }
    ExpectValuesAreAttained(chain, tables);
  }
}

TEST(SparseTableTest, StagesThatRepeatShareRows) {
  std::mt19937_64 rng(3);
  for (int i = 0; i < 9; ++i) {
    const int period = 1 + i % 3;
    const Chain chain = PeriodicChain(40, period, &rng);
    const Tables tables(chain, /*dense=*/2);
    // Of every length one for each stage of a period, and those with the last stage and the loss.
    EXPECT_LE(tables.intervals.size(), (period + 3) * int64_t{chain.length()});
    for (int64_t m = 0; m <= tables.slots; ++m) {
      ASSERT_GE(tables.some->Overhead(m), tables.all->Overhead(m)) << m << ' ' << Describe(chain);
    }
    ExpectValuesAreAttained(chain, tables);
  }
}

// What makes them cheap: their number grows with the stages, not with the square of these.
TEST(SparseTableTest, LongChainsHaveFewIntervals) {
  std::mt19937_64 rng(4);
  RandomChainOptions options;
  options.max_size = options.max_time = 1000000;
  const Chain chain = RandomChain(1000, options, &rng);
  const PersistentSpace space(chain, 1);
  const SparseIntervals intervals(space, 16);
  EXPECT_LE(intervals.size(), 60 * chain.length());
  for (int s = 1; s <= space.last(); ++s) {
    EXPECT_NE(intervals.Row(s, space.last()), SparseIntervals::kNone);
    for (const int32_t e : intervals.Ends(s))
      EXPECT_NE(intervals.Row(s, e), SparseIntervals::kNone);
  }
}

TEST(PersistentSpaceTest, CumulativeRoundingDoesNotAddUp) {
  std::mt19937_64 rng(5);
  for (int i = 0; i < 50; ++i) {
    RandomChainOptions options;
    options.max_size = 1000;
    const Chain chain = RandomChain(30, options, &rng);
    const int64_t unit = 1 + i * 7;
    const PersistentSpace exact(chain, 1), slots(chain, unit, Rounding::kCumulative);
    for (int s = 1; s <= exact.last(); ++s) {
      int64_t bytes = 0, rounded = 0;
      for (int t = s; t <= exact.last(); ++t) {
        bytes += exact.saved(t);
        rounded += slots.saved(t);
        EXPECT_LE(std::abs(rounded * unit - bytes), unit);
      }
    }
  }
}

// Its least budget is that of the class, or on long chains that of memory-persistent schedules; below it nothing is found,
// and what is said to be proven is said of the class that it is proven of.
TEST(SparseIntervalsTest, FindsThatLeastBudget) {
  std::mt19937_64 rng(7);
  for (const int length : {20, 60, 130}) {
    const Chain chain = RandomChain(length, {}, &rng);
    const Solver& same = length <= 128 ? NonPersistentSolver() : OptimalPersistentSolver();
    const Bytes least = SparseIntervalsSolver().LeastBudget(chain, {}).value();
    EXPECT_EQ(least, same.LeastBudget(chain, {}).value());
    EXPECT_EQ(SparseIntervalsSolver().Solve(chain, least, {})->status, PlanStatus::kFound);
    const absl::StatusOr<Plan> below = SparseIntervalsSolver().Solve(chain, least - Bytes(1), {});
    ASSERT_TRUE(below.ok()) << below.status();
    EXPECT_EQ(below->status, PlanStatus::kProvenInfeasible);
    const std::string& proven = length <= 128 ? SparseIntervalsSolver().info().schedule_class
                                              : OptimalPersistentSolver().info().schedule_class;
    EXPECT_EQ(below->bounds.schedule_class, proven);
    const absl::StatusOr<Frontier> frontier = SparseIntervalsSolver().SolveFrontier(chain, {});
    ASSERT_TRUE(frontier.ok()) << frontier.status();
    EXPECT_EQ(frontier->points().front().peak, least);
    EXPECT_EQ(frontier->info().schedule_class, proven);
    EXPECT_EQ(frontier->PlanAt(least - Bytes(1)).status, PlanStatus::kProvenInfeasible);
    EXPECT_EQ(frontier->points().back().makespan, chain.ideal_time());
  }
}

// Of solves within single budgets, of which each knows nothing of the others; and the frontier's points are what their
// schedules take.
TEST(SparseIntervalsTest, MoreMemoryIsNeverSlower) {
  std::mt19937_64 rng(8);
  for (const int length : {20, 60, 130}) {
    RandomChainOptions options = VariedOptions(length);
    options.max_size = 1000;
    options.max_time = 1000;
    const Instance instance(RandomChain(length, options, &rng));
    const int64_t least = SparseIntervalsSolver().LeastBudget(instance, {})->value();
    const int64_t all = instance.store_all()->peak.value();
    // Most of them where memory is least.
    std::vector<int64_t> budgets;
    for (int64_t above = 0; least + above < all; above += 1 + above / 2) {
      budgets.push_back(least + above);
    }
    budgets.push_back(all);
    Nanos before = Nanos(kInfinity);
    for (const int64_t budget : budgets) {
      const absl::StatusOr<Plan> plan = SparseIntervalsSolver().Solve(instance, Bytes(budget), {});
      ASSERT_TRUE(plan.ok()) << plan.status();
      ASSERT_EQ(plan->status, PlanStatus::kFound) << length << " stages, budget " << budget;
      EXPECT_LE(plan->prediction.makespan, before) << length << " stages, budget " << budget;
      before = plan->prediction.makespan;
    }
    EXPECT_EQ(before, instance.ideal_time());
    const absl::StatusOr<Frontier> frontier = SparseIntervalsSolver().SolveFrontier(instance, {});
    ASSERT_TRUE(frontier.ok()) << frontier.status();
    for (const Frontier::Point& point : frontier->points()) {
      const absl::StatusOr<Simulation> run =
          Evaluator(instance).Run(frontier->PlanAt(point.peak).schedule);
      ASSERT_TRUE(run.ok()) << run.status();
      EXPECT_EQ(run->peak, point.peak);
      EXPECT_EQ(run->makespan, point.makespan);
    }
  }
}

TEST(SparseIntervalsTest, NeedsNoMoreThanTheBoundWhereStagesAreAlike) {
  ChainSpec spec;
  Stage stage;
  stage.forward_time = Nanos(1000);
  stage.backward_time = Nanos(2000);
  stage.output = stage.output_gradient = Bytes(1000);
  stage.saved = Bytes(20000);
  spec.stages.assign(200, stage);
  const Instance instance(*Chain::Create(spec));
  for (const double share : {0.3, 0.5, 0.7, 0.9}) {
    const Bytes budget = ShareOf(ShareOfStoreAll{share}, instance.store_all()->peak);
    const absl::StatusOr<Plan> plan = SparseIntervalsSolver().Solve(instance, budget, {});
    ASSERT_TRUE(plan.ok()) << plan.status();
    ASSERT_EQ(plan->status, PlanStatus::kFound);
    // One or two stages of 200, each of a third of the time.
    EXPECT_LE(plan->prediction.makespan - plan->bounds.lower_bound, Nanos(2000)) << share;
  }
}

}  // namespace
}  // namespace stowage::testing
