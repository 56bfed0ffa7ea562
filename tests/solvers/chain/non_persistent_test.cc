#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "solvers/chain/internal/non_persistent_table.h"
#include "solvers/chain/persistent_space.h"
#include "solvers/chain/solvers.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "tests/solvers/naive_replay.h"
#include "tests/solvers/persistent_search.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/schedule_search.h"

namespace stowage {
namespace {

using testing::Describe;
using testing::RandomChain;

// The makespan of a solver's plan, replayed by the second evaluator; nothing if it has none.
std::optional<int64_t> Makespan(const Solver& solver, const Chain& chain, int64_t budget,
                                const SolveOptions& options = {}) {
  const absl::StatusOr<Plan> plan = solver.Solve(chain, Bytes(budget), options);
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok() || plan->status != PlanStatus::kFound) return std::nullopt;
  const testing::NaiveResult naive = testing::NaiveReplay(chain, plan->schedule);
  EXPECT_TRUE(naive.valid) << Describe(chain);
  EXPECT_LE(naive.peak, budget) << Describe(chain);
  return naive.makespan;
}

int64_t StoreAllPeak(const Chain& chain) {
  return Evaluator(chain).Run(StoreAllSchedule(chain))->peak.value();
}

// Times positive, saved > output, small workspaces, gradients as large as their outputs: what
// networks are like.
Chain NetworkLikeChain(int length, std::mt19937_64* rng) {
  const auto draw = [rng](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(*rng);
  };
  ChainSpec spec;
  spec.input = Bytes(draw(1, 6));
  Bytes input_gradient;
  for (int l = 0; l < length; ++l) {
    Stage s;
    s.forward_time = Nanos(draw(1, 9));
    s.backward_time = Nanos(2 * s.forward_time.value());
    s.output = s.output_gradient = Bytes(draw(1, 6));
    s.saved = Bytes(s.output.value() * draw(1, 3) + draw(0, 2));
    s.forward_overhead = s.forward_saving_overhead = Bytes(draw(0, 1));
    s.backward_overhead = input_gradient + Bytes(draw(0, 1));
    input_gradient = s.output_gradient;
    spec.stages.push_back(s);
  }
  return *Chain::Create(std::move(spec));
}

// A chain of stages drawn from two: intervals repeat.
Chain RepetitiveChain(int length, std::mt19937_64* rng) {
  const Chain kinds = RandomChain(2, {}, rng);
  ChainSpec spec = kinds.spec();
  spec.stages.clear();
  for (int l = 0; l < length; ++l) {
    spec.stages.push_back(kinds.stage(std::uniform_int_distribution<int>(1, 2)(*rng)));
  }
  return *Chain::Create(std::move(spec));
}

// The counterexample to memory persistence of Beaumont et al. 2019, Figure 2.
Chain FigureTwo(int n) {
  const int length = n + 2;
  ChainSpec spec;
  spec.input = Bytes(2);
  for (int l = 1; l <= length; ++l) {
    Stage s;
    s.forward_time = Nanos(l == 1 ? n - 1 : l == 2 ? 2 : 0);
    s.output = s.saved = Bytes(l == 1 ? 1 : l == length ? 3 : 2);
    spec.stages.push_back(s);
  }
  return *Chain::Create(std::move(spec));
}

TEST(NonPersistent, MovesTheCheckpointOfFigureTwo) {
  for (int n = 4; n <= 7; ++n) {
    const Chain chain = FigureTwo(n);
    EXPECT_EQ(Makespan(OptimalPersistentSolver(), chain, 8), 3 * n - 1);
    EXPECT_EQ(Makespan(NonPersistentSolver(), chain, 8), 2 * n + 2);
    EXPECT_EQ(testing::SearchSchedules(chain, 8)->makespan, 2 * n + 2);
  }
}

TEST(NonPersistent, DropsAnInputToSaveAStage) {
  const int64_t outputs[] = {1, 2, 1, 1}, saved[] = {0, 2, 1, 4};
  const int64_t forward[] = {0, 1, 3, 5}, backward[] = {0, 2, 2, 3};
  const int64_t workspace[] = {0, 1, 1, 2}, backward_workspace[] = {0, 1, 0, 1};
  ChainSpec spec;
  spec.input = Bytes(outputs[0]);
  for (int l = 1; l <= 3; ++l) {
    Stage s;
    s.output = s.output_gradient = Bytes(outputs[l]);
    s.saved = Bytes(saved[l]);
    s.forward_time = Nanos(forward[l]);
    s.backward_time = Nanos(backward[l]);
    s.forward_overhead = s.forward_saving_overhead = Bytes(workspace[l]);
    s.backward_overhead = Bytes(backward_workspace[l] + (l > 1 ? outputs[l - 1] : 0));
    spec.stages.push_back(s);
  }
  const Chain chain = *Chain::Create(std::move(spec));
  EXPECT_EQ(Makespan(OptimalPersistentSolver(), chain, 10), 20);
  EXPECT_EQ(Makespan(NonPersistentSolver(), chain, 10), 17);
  EXPECT_EQ(testing::SearchSchedules(chain, 10)->makespan, 17);
}

TEST(ScheduleSearch, IsNeverSlowerThanThePersistentSearchAndReplays) {
  std::mt19937_64 rng(40);
  int faster = 0;
  for (int i = 0; i < 40; ++i) {
    testing::RandomChainOptions options;
    options.with_flags = i % 3 == 0;
    options.with_stops = i % 5 > 2;
    options.with_input_gradient = i % 2 == 0;
    const Chain chain = RandomChain(1 + i % 4, options, &rng);
    const std::map<int64_t, int64_t> frontier = testing::ScheduleFrontier(chain);
    for (const auto& [peak, makespan] :
         testing::PersistentFrontier(chain, testing::Recompute::kAnyTime)) {
      auto point = frontier.upper_bound(peak);
      ASSERT_NE(point, frontier.begin()) << Describe(chain);
      --point;
      EXPECT_LE(point->second, makespan) << Describe(chain);
      faster += point->second < makespan ? 1 : 0;
    }
    for (const auto& [peak, makespan] : frontier) {
      const Schedule schedule = testing::SearchSchedules(chain, peak)->schedule;
      const absl::StatusOr<Simulation> simulation = Evaluator(chain).Run(schedule);
      ASSERT_TRUE(simulation.ok()) << simulation.status();
      EXPECT_EQ(simulation->peak.value(), peak) << Describe(chain);
      EXPECT_EQ(simulation->makespan.value(), makespan) << Describe(chain);
    }
  }
  EXPECT_GT(faster, 20);
}

// Sums over pairs of a chain and a budget at which the persistent optimum is not the optimum.
struct Gap {
  int pairs = 0;
  int closed_pairs = 0;
  int64_t gap = 0;
  int64_t closed = 0;

  double Share() const { return static_cast<double>(closed) / static_cast<double>(gap); }
};

void AddGaps(const Chain& chain, int64_t step, Gap* sum) {
  const int64_t all = StoreAllPeak(chain);
  for (int64_t budget = all - 1; budget > 0; budget -= step) {
    const std::optional<int64_t> persistent = Makespan(OptimalPersistentSolver(), chain, budget);
    if (!persistent) return;
    const std::optional<testing::FoundSchedule> fastest = testing::SearchSchedules(chain, budget);
    ASSERT_TRUE(fastest.has_value());
    const std::optional<int64_t> beyond = Makespan(NonPersistentSolver(), chain, budget);
    ASSERT_TRUE(beyond.has_value());
    EXPECT_GE(*beyond, fastest->makespan) << Describe(chain) << "\nbudget " << budget;
    EXPECT_LE(*beyond, *persistent) << Describe(chain) << "\nbudget " << budget;
    if (*persistent == fastest->makespan) continue;
    sum->pairs += 1;
    sum->closed_pairs += *beyond == fastest->makespan ? 1 : 0;
    sum->gap += *persistent - fastest->makespan;
    sum->closed += *persistent - *beyond;
  }
}

void Report(const char* chains, const Gap& sum) {
  std::cout << chains << ": " << sum.closed_pairs << " of " << sum.pairs
            << " pairs with a gap solved to the optimum, " << 100 * sum.Share()
            << "% of the total gap closed\n";
}

TEST(NonPersistent, ClosesTheGapOfRandomChains) {
  std::mt19937_64 rng(41);
  Gap sum;
  for (int i = 0; i < 120; ++i) {
    testing::RandomChainOptions options;
    options.with_flags = i % 5 == 0;
    options.with_stops = i % 5 > 2;
    AddGaps(RandomChain(2 + i % 3, options, &rng), 3, &sum);
  }
  Report("random chains", sum);
  EXPECT_GT(sum.pairs, 100);
  EXPECT_GT(sum.closed, 0);
}

TEST(NonPersistent, ClosesTheGapOfNetworkLikeChains) {
  std::mt19937_64 rng(42);
  Gap sum;
  for (int i = 0; i < 60; ++i) AddGaps(NetworkLikeChain(3 + i % 3, &rng), 4, &sum);
  for (int i = 0; i < 30; ++i) AddGaps(RepetitiveChain(4, &rng), 4, &sum);
  Report("network-like and repetitive chains", sum);
  EXPECT_GT(sum.pairs, 40);
  EXPECT_GT(sum.closed, 0);
}

// Beyond the stages that checkpoints move on, and in slots that round.
TEST(NonPersistent, IsNeverSlowerOnLongChainsAndUsuallyFaster) {
  std::mt19937_64 rng(43);
  int faster = 0;
  for (int i = 0; i < 12; ++i) {
    const Chain chain = NetworkLikeChain(i % 2 == 0 ? 20 : 45, &rng);
    SolveOptions options;
    options.slots = i % 3 == 0 ? 100 : 0;
    const int64_t all = StoreAllPeak(chain);
    for (const double share : {0.3, 0.5, 0.7, 0.9}) {
      const int64_t budget = static_cast<int64_t>(share * static_cast<double>(all));
      const std::optional<int64_t> persistent =
          Makespan(OptimalPersistentSolver(), chain, budget, options);
      const std::optional<int64_t> beyond = Makespan(NonPersistentSolver(), chain, budget, options);
      ASSERT_EQ(persistent.has_value(), beyond.has_value());
      if (!beyond) continue;
      EXPECT_LE(*beyond, *persistent) << Describe(chain);
      faster += *beyond < *persistent ? 1 : 0;
    }
  }
  EXPECT_GT(faster, 20);
}

// Of rounded tables a budget makes the schedules that it needs alone, and loses nothing by it.
TEST(NonPersistent, OneBudgetGetsWhatAllHave) {
  std::mt19937_64 rng(49);
  int beyond = 0;
  for (const int length : {18, 30, 47, 90}) {
    const Chain chain = RandomChain(length, {1000003, 1000, true, false, false}, &rng);
    const Frontier frontier = *NonPersistentSolver().SolveFrontier(chain, {});
    ASSERT_FALSE(frontier.info().exact);
    const Frontier persistent = *OptimalPersistentSolver().SolveFrontier(chain, {});
    const int64_t least = frontier.info().least_budget.value();
    const int64_t all = StoreAllPeak(chain);
    int64_t before = kInfinity;
    for (int i = 1; i <= 12; ++i) {
      const int64_t budget = least + (all - least) * i / 13;
      const Frontier::Point* point = frontier.At(Bytes(budget));
      ASSERT_NE(point, nullptr);
      const std::optional<int64_t> one = Makespan(NonPersistentSolver(), chain, budget, {});
      ASSERT_TRUE(one.has_value());
      EXPECT_LE(*one, point->makespan.value()) << length << " stages, budget " << budget;
      EXPECT_LE(*one, before) << length << " stages, budget " << budget;
      before = *one;
      const Frontier::Point* other = persistent.At(Bytes(budget));
      beyond += other == nullptr || *one < other->makespan.value() ? 1 : 0;
    }
  }
  EXPECT_GT(beyond, 10);
}

TEST(NonPersistent, NeedsNoMoreThanPersistentSchedulesAndSometimesLess) {
  std::mt19937_64 rng(44);
  int less = 0;
  for (int i = 0; i < 100; ++i) {
    const Chain chain = RandomChain(2 + i % 12, {}, &rng);
    const Bytes persistent = *OptimalPersistentSolver().LeastBudget(chain, {});
    const Bytes beyond = *NonPersistentSolver().LeastBudget(chain, {});
    EXPECT_LE(beyond, persistent) << Describe(chain);
    less += beyond < persistent ? 1 : 0;
  }
  EXPECT_GT(less, 5);
}

TEST(NonPersistentTable, SchedulesTakeExactlyWhatItClaims) {
  std::mt19937_64 rng(48);
  int64_t schedules = 0;
  for (int i = 0; i < 400; ++i) {
    testing::RandomChainOptions options;
    options.with_flags = i % 5 == 0;
    options.with_stops = i % 5 > 2;
    options.with_input_gradient = i % 3 == 0;
    const int length = 1 + i % 10;
    const Chain chain =
        i % 4 == 0 ? RepetitiveChain(length, &rng) : RandomChain(length, options, &rng);
    const PersistentSpace space(chain, 1);
    const int64_t all = StoreAllPeak(chain);
    const auto fixed = NonPersistentTable::Compute(space, /*moving=*/false, all, {});
    const auto moving = NonPersistentTable::Compute(space, /*moving=*/true, all, {});
    ASSERT_TRUE(fixed.ok() && moving.ok());
    for (int64_t budget = 0; budget <= all; ++budget) {
      EXPECT_LE((*moving)->Overhead(budget), (*fixed)->Overhead(budget)) << Describe(chain);
      for (const NonPersistentTable* table : {fixed->get(), moving->get()}) {
        if (table->Overhead(budget) == kInfinity) continue;
        const testing::NaiveResult naive = testing::NaiveReplay(chain, table->Backtrack(budget));
        ASSERT_TRUE(naive.valid) << Describe(chain) << "\nbudget " << budget;
        ASSERT_LE(naive.peak, budget) << Describe(chain);
        ASSERT_EQ(naive.makespan, chain.ideal_time().value() + table->Overhead(budget))
            << Describe(chain) << "\nbudget " << budget;
        ++schedules;
      }
    }
    EXPECT_EQ((*moving)->Overhead(all), 0);
  }
  EXPECT_GT(schedules, 10000);
}

TEST(NonPersistent, ProofsHold) {
  std::mt19937_64 rng(45);
  for (int i = 0; i < 30; ++i) {
    const Chain chain = RandomChain(4, {}, &rng);
    const Frontier frontier = *NonPersistentSolver().SolveFrontier(chain, {});
    ASSERT_TRUE(frontier.info().exact);
    for (int64_t budget = frontier.info().least_budget.value(); budget < StoreAllPeak(chain);
         budget += 3) {
      const Plan plan = *NonPersistentSolver().Solve(chain, Bytes(budget), {});
      EXPECT_TRUE(plan.bounds.proven_optimal);
      EXPECT_EQ(Evaluator(chain).Run(plan.schedule)->makespan, frontier.At(Bytes(budget))->makespan)
          << Describe(chain);
      EXPECT_EQ(plan.schedule, NonPersistentSolver().Solve(chain, Bytes(budget), {})->schedule);
    }
  }
}

// Scaled sizes that no common unit divides: the table rounds, the budget is tight.
TEST(NonPersistent, FindsWhatFitsWhereRoundingLeavesNothing) {
  std::mt19937_64 rng(46);
  for (int i = 0; i < 20; ++i) {
    const Chain chain = RandomChain(12, {1000003, 1000, true, false, false}, &rng);
    SolveOptions options;
    options.slots = 40;
    const Bytes least = *NonPersistentSolver().LeastBudget(chain, options);
    const Plan plan = *NonPersistentSolver().Solve(chain, least, options);
    ASSERT_EQ(plan.status, PlanStatus::kFound) << Describe(chain);
    EXPECT_FALSE(plan.bounds.proven_optimal);
    EXPECT_EQ(testing::NaiveReplay(chain, plan.schedule).peak, least.value());
  }
}

TEST(NonPersistent, ChecksItsOptionsAndStops) {
  std::mt19937_64 rng(47);
  const Chain chain = NetworkLikeChain(100, &rng);
  const Bytes budget(StoreAllPeak(chain) / 2);
  SolveOptions options;
  options.slots = -1;
  EXPECT_EQ(NonPersistentSolver().Solve(chain, budget, options).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(NonPersistentSolver().SolveFrontier(chain, options).status().code(),
            absl::StatusCode::kInvalidArgument);
  StopToken cancelled;
  cancelled.RequestStop();
  options.slots = 0;
  options.stop = &cancelled;
  EXPECT_EQ(NonPersistentSolver().Solve(chain, budget, options).status().code(),
            absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace stowage
