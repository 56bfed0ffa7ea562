#include "solvers/transfer/internal/relaxed_optimum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <vector>

#include "solvers/transfer/internal/trace_problem.h"
#include "solvers/transfer/offload_problem.h"
#include "solvers/transfer/strategies.h"
#include "tests/solvers/transfer/random_offload.h"
#include "tests/solvers/transfer/split_copies_search.h"

namespace stowage::testing {
namespace {

RandomOffloadOptions Varied(int i) {
  RandomOffloadOptions options;
  options.max_halvings = i % 3;
  options.limited_host = i % 3 == 0;
  return options;
}

RelaxedOptimum Exact(const OffloadProblem& problem) {
  const auto optimum = ExactRelaxedOptimum(problem, {});
  EXPECT_TRUE(optimum.ok() && optimum->has_value()) << Describe(problem);
  return optimum.ok() && *optimum ? **optimum : RelaxedOptimum();
}

// Least makespan with interrupted copies, and the sets that have it: those without empty
// activations, which cost nothing.
struct Found {
  std::optional<Nanos> makespan;
  std::vector<OffloadSet> sets;
};

Found SearchAllSets(const OffloadProblem& problem) {
  Found found;
  for (const OffloadSet& set : AllSets(problem)) {
    const bool empty = std::any_of(set.begin(), set.end(),
                                   [&](int i) { return problem.activation(i) == Bytes(0); });
    const std::optional<Nanos> makespan = empty ? std::nullopt : SearchSplitCopies(problem, set);
    if (!makespan) continue;
    if (!found.makespan || *makespan < *found.makespan) found = {makespan, {}};
    if (*makespan == *found.makespan) found.sets.push_back(set);
  }
  return found;
}

TEST(RelaxedOptimum, EqualsExhaustiveSearchAndHasAllItsSets) {
  std::mt19937_64 rng(11);
  int several = 0;
  for (int i = 0; i < 500; ++i) {
    const OffloadProblem problem = RandomOffload(1 + i % 5, Varied(i), &rng);
    Found found = SearchAllSets(problem);
    RelaxedOptimum optimum = Exact(problem);
    ASSERT_EQ(optimum.sets.empty(), !found.makespan.has_value()) << Describe(problem);
    if (!found.makespan) continue;
    EXPECT_EQ(optimum.makespan, *found.makespan) << Describe(problem);
    std::sort(found.sets.begin(), found.sets.end());
    std::sort(optimum.sets.begin(), optimum.sets.end());
    EXPECT_EQ(optimum.sets, found.sets) << Describe(problem);
    several += found.sets.size() > 1 ? 1 : 0;
  }
  EXPECT_GT(several, 100);
}

TEST(RelaxedOptimum, IsABoundAndItsBestSetIsNearTheBestOfAll) {
  std::mt19937_64 rng(12);
  double dynprog = 0, greedy = 0;
  int count = 0;
  for (int i = 0; i < 300; ++i) {
    RandomOffloadOptions options = Varied(i);
    options.limited_host = false;
    options.max_size = 20;
    options.max_need = 10;
    options.max_time = 20;
    const OffloadProblem problem = RandomOffload(3 + i % 6, options, &rng);
    const RelaxedOptimum optimum = Exact(problem);
    std::optional<Nanos> best_of_all, best, worst;
    for (const OffloadSet& set : AllSets(problem)) {
      const auto replay = ReplaySet(problem, set);
      if (replay && (!best_of_all || replay->makespan < *best_of_all))
        best_of_all = replay->makespan;
    }
    for (const OffloadSet& set : optimum.sets) {
      const Nanos makespan = ReplaySet(problem, set)->makespan;
      best = std::min(best.value_or(makespan), makespan);
      worst = std::max(worst.value_or(makespan), makespan);
    }
    ASSERT_TRUE(best.has_value()) << Describe(problem);
    const auto plan = DynProgOffload().Solve(problem, {});
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(plan->timeline.makespan, *best) << Describe(problem);
    EXPECT_LE(plan->timeline.makespan, *worst);
    EXPECT_GE(*best_of_all, optimum.makespan) << Describe(problem);
    EXPECT_EQ(plan->lower_bound, std::max(problem.LowerBound(), optimum.makespan));
    const auto all = static_cast<double>(best_of_all->value());
    if (all == 0) continue;
    dynprog += static_cast<double>(best->value()) / all;
    greedy +=
        static_cast<double>(GreedyOffload().Solve(problem, {})->timeline.makespan.value()) / all;
    ++count;
  }
  RecordProperty("dynprog_over_best", std::to_string(dynprog / count));
  RecordProperty("greedy_over_best", std::to_string(greedy / count));
  EXPECT_LE(dynprog, greedy);
}

TEST(RelaxedOptimum, FallsWithMemoryAndBandwidth) {
  std::mt19937_64 rng(13);
  for (int i = 0; i < 100; ++i) {
    const OffloadProblem problem = RandomOffload(12, Varied(0), &rng);
    std::optional<Nanos> before;
    for (Bytes m = problem.least_memory(); m <= problem.peak(); m += Bytes(1)) {
      const RelaxedOptimum optimum = Exact(WithMemory(problem, m));
      if (optimum.sets.empty()) {
        EXPECT_FALSE(before.has_value()) << "more memory fits less: " << Describe(problem);
        continue;
      }
      if (before) {
        EXPECT_LE(optimum.makespan, *before) << Describe(problem);
      }
      before = optimum.makespan;
    }
    EXPECT_EQ(before, std::optional<Nanos>(problem.ideal_time()));
    before.reset();
    for (int64_t bandwidth = 100000000; bandwidth < 20000000000; bandwidth *= 2) {
      TransferModel link = problem.link();
      link.to_host.bytes_per_second = bandwidth;
      link.to_device.bytes_per_second = bandwidth + bandwidth / 3;
      const RelaxedOptimum optimum = Exact(WithLink(problem, link));
      if (optimum.sets.empty()) break;
      if (before) {
        EXPECT_LE(optimum.makespan, *before) << Describe(problem);
      }
      before = optimum.makespan;
    }
  }
}

// Sizes that make whole slots, links alike and ops that move whole slots: nothing is rounded.
TEST(SlottedRelaxedOptimum, WithoutRoundingIsExact) {
  std::mt19937_64 rng(14);
  for (int i = 0; i < 200; ++i) {
    RandomOffloadOptions options;
    options.limited_host = i % 3 == 0;
    const OffloadProblem problem = RandomOffload(2 + i % 8, options, &rng);
    if (problem.memory() == Bytes(0)) continue;
    const RelaxedOptimum exact = Exact(problem);
    const auto slotted = SlottedRelaxedOptimum(problem, 6 * problem.memory().value(), {});
    ASSERT_TRUE(slotted.ok());
    ASSERT_EQ(slotted->sets.empty(), exact.sets.empty()) << Describe(problem);
    if (!exact.sets.empty()) {
      EXPECT_EQ(slotted->makespan, exact.makespan) << Describe(problem);
    }
    EXPECT_EQ(slotted->sets, exact.sets) << Describe(problem);
  }
}

TEST(SlottedRelaxedOptimum, SetsFitInBytesAndAreNeverFasterThanTheOptimum) {
  std::mt19937_64 rng(15);
  double ratio = 0;
  int count = 0;
  for (int i = 0; i < 200; ++i) {
    RandomOffloadOptions options = Varied(i);
    options.max_size = 1000000;
    options.max_need = 300000;
    options.max_time = 1000000;
    const OffloadProblem problem = RandomOffload(2 + i % 12, options, &rng);
    const RelaxedOptimum exact = Exact(problem);
    const auto slotted = SlottedRelaxedOptimum(problem, 500, {});
    ASSERT_TRUE(slotted.ok());
    for (const OffloadSet& set : slotted->sets) EXPECT_TRUE(problem.Admits(set));
    if (slotted->sets.empty()) continue;
    ASSERT_FALSE(exact.sets.empty()) << Describe(problem);
    Nanos best = ReplaySet(problem, slotted->sets[0])->makespan;
    for (const OffloadSet& set : slotted->sets) {
      best = std::min(best, ReplaySet(problem, set)->makespan);
    }
    EXPECT_GE(best, exact.makespan);
    ratio += static_cast<double>(best.value()) / static_cast<double>(exact.makespan.value());
    ++count;
  }
  EXPECT_GT(count, 150);
  RecordProperty("over_exact", std::to_string(ratio / count));
}

// A slot or less for each activation: what the first passes choose does not fit in bytes.
TEST(SlottedRelaxedOptimum, LongChainsTakeFewPassesAndBoundedWork) {
  std::mt19937_64 rng(17);
  RandomOffloadOptions options;
  options.max_size = 100000;
  options.max_need = 30000;
  options.max_time = 30000;
  for (const int n : {1000, 10000}) {
    const OffloadProblem base = RandomOffload(n, options, &rng);
    const OffloadProblem problem = WithMemory(base, Bytes(base.peak().value() / 5 * 2));
    const auto slotted = SlottedRelaxedOptimum(problem, n / 4, {});
    ASSERT_TRUE(slotted.ok());
    ASSERT_FALSE(slotted->sets.empty());
    EXPECT_TRUE(problem.Admits(slotted->sets[0]));
    EXPECT_GT(slotted->passes, 5);
    EXPECT_LE(slotted->passes, MostSingleRaises(n) + 2 + std::log2(n)) << n;
    EXPECT_LE(static_cast<double>(slotted->comparisons),
              std::exp2(28) * (1 + slotted->passes / 16.0))
        << n;
  }
}

// Rounding to a slot or less for each activation would choose by what it rounds away.
TEST(SlottedRelaxedOptimum, SlotsNotAskedForGrowWithTheChain) {
  std::mt19937_64 rng(18);
  RandomOffloadOptions options;
  options.max_size = 100000;
  options.max_need = 30000;
  options.max_time = 30000;
  const OffloadProblem base = RandomOffload(1000, options, &rng);
  const OffloadProblem problem = WithMemory(base, Bytes(base.peak().value() / 5 * 2));
  SolveOptions asked;
  asked.slots = 300;
  EXPECT_EQ(DynProgOffload().Solve(problem, asked)->slots, 300);
  EXPECT_EQ(DynProgOffload().Solve(problem, {})->slots, 2000);
}

// A prime bandwidth each way: time in fractions of nanoseconds beyond 64 bits.
TEST(RelaxedOptimum, OddBandwidthsAreExact) {
  std::mt19937_64 rng(16);
  for (int i = 0; i < 50; ++i) {
    RandomOffloadOptions options;
    options.max_size = 100000000;
    options.max_need = 30000000;
    options.max_time = 10000000;
    const OffloadProblem base = RandomOffload(8, options, &rng);
    TransferModel link = base.link();
    link.to_host.bytes_per_second = 12187654321;
    link.to_device.bytes_per_second = 11999999989;
    const OffloadProblem problem = WithLink(base, link);
    const RelaxedOptimum optimum = Exact(problem);
    ASSERT_FALSE(optimum.sets.empty());
    EXPECT_GE(optimum.makespan + Nanos(2), problem.LowerBound());
    for (const OffloadSet& set : AllSets(problem)) {
      const auto replay = ReplaySet(problem, set);
      if (replay) {
        ASSERT_GE(replay->makespan, optimum.makespan) << Describe(problem, set);
      }
    }
  }
}

}  // namespace
}  // namespace stowage::testing
