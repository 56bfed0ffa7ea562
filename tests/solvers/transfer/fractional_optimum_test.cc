#include "solvers/transfer/internal/relaxed_optimum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include "solvers/transfer/strategies.h"
#include "tests/solvers/transfer/random_offload.h"

namespace stowage::testing {
namespace {

RandomOffloadOptions Varied(int i) {
  RandomOffloadOptions options;
  options.max_size = 3;
  options.max_halvings = i % 3;
  options.fast_links = i % 4 == 1;
  return options;
}

// The least makespan over all ways to let whole bytes leave.
std::optional<Nanos> SearchParts(const OffloadProblem& problem, std::vector<Bytes>* away, int i) {
  if (i == problem.size()) {
    const PartialOffload parts = *OffloadParts(problem, *away);
    return ExactRelaxedMakespan(parts.problem, parts.set);
  }
  std::optional<Nanos> best;
  Bytes& part = (*away)[static_cast<size_t>(i)];
  for (part = Bytes(0); part <= problem.activation(i); part += Bytes(1)) {
    const std::optional<Nanos> found = SearchParts(problem, away, i + 1);
    if (found && (!best || *found < *best)) best = found;
  }
  return best;
}

TEST(FractionalOptimum, IsTheBestOfAllParts) {
  std::mt19937_64 rng(1);
  int waits = 0, strictly_less = 0;
  for (int i = 0; i < 1500; ++i) {
    const OffloadProblem problem = RandomOffload(1 + i % 4, Varied(i), &rng);
    std::vector<Bytes> away(static_cast<size_t>(problem.size()));
    const std::optional<Nanos> optimum = FractionalOptimum(problem);
    ASSERT_EQ(optimum, SearchParts(problem, &away, 0)) << Describe(problem);
    if (!optimum) continue;
    EXPECT_GE(*optimum, problem.ideal_time());
    waits += *optimum > problem.ideal_time();
    const RelaxedOptimum whole = **ExactRelaxedOptimum(problem, {});
    if (whole.sets.empty()) continue;
    EXPECT_LE(*optimum, whole.makespan) << Describe(problem);
    strictly_less += *optimum < whole.makespan;
  }
  EXPECT_GT(waits, 300);
  EXPECT_GT(strictly_less, 30);
}

TEST(FractionalOptimum, IsAtLeastWhatTheLinkTakes) {
  std::mt19937_64 rng(2);
  int above = 0;
  for (int i = 0; i < 500; ++i) {
    const OffloadProblem problem = RandomOffload(2 + i % 12, Varied(i), &rng);
    const std::optional<Nanos> optimum = FractionalOptimum(problem);
    if (!optimum) continue;
    EXPECT_GE(*optimum + Nanos(1), problem.LowerBound()) << Describe(problem);
    above += *optimum > problem.LowerBound();
  }
  EXPECT_GT(above, 50);
}

TEST(FractionalOptimum, BoundsEveryStrategy) {
  std::mt19937_64 rng(3);
  for (int i = 0; i < 200; ++i) {
    const OffloadProblem problem = RandomOffload(2 + i % 8, Varied(i), &rng);
    for (const OffloadStrategy* strategy : AllOffloadStrategies()) {
      const OffloadPlan plan = *strategy->Solve(problem, {});
      if (plan.status != PlanStatus::kFound || problem.overflow_bytes() == Bytes(0)) continue;
      EXPECT_GE(plan.lower_bound, *FractionalOptimum(problem));
      EXPECT_GE(plan.timeline.makespan, plan.lower_bound) << strategy->info().name;
    }
  }
}

TEST(FractionalOptimum, WithNothingToOffloadIsTheIdealTime) {
  std::mt19937_64 rng(4);
  const OffloadProblem problem = RandomOffload(5, Varied(0), &rng);
  EXPECT_EQ(FractionalOptimum(WithMemory(problem, problem.peak())), problem.ideal_time());
}

TEST(FractionalOptimum, HasNoneWhereNothingFits) {
  std::mt19937_64 rng(5);
  const OffloadProblem problem = RandomOffload(5, Varied(0), &rng);
  ASSERT_GT(problem.least_memory(), Bytes(0));
  EXPECT_EQ(FractionalOptimum(WithMemory(problem, problem.least_memory() - Bytes(1))),
            std::nullopt);
}

}  // namespace
}  // namespace stowage::testing
