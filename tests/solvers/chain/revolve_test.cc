#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>

#include "solvers/chain/solvers.h"
#include "solvers/model/field_error.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "tests/solvers/persistent_search.h"
#include "tests/solvers/random_chain.h"

namespace stowage {
namespace {

// The closed form of optimal checkpointing on equal steps: Griewank & Walther 2000, "Algorithm 799:
// revolve", Proposition 1.
//
// In the evaluator's accounting: a chain of n equal stages, the loss one of them, where a and saved
// are 1 and gradients and overheads 0, takes BinomialForwards(n, M - 2) forwards beyond the ideal
// within M when nothing is saved ahead. c checkpoints, a^0 among them, leave two units: for a
// forward and its input, or a checkpoint and what the stage after it saves.
//
// t(n, c) = r n - beta(c + 1, r - 1), beta(c, r) = C(c + r, c), r the least with n <= beta(c, r):
// the least number of forward steps, not counting the one right before each reversal, that reverses
// n >= 1 steps with c >= 1 checkpoints, the initial state being one. O(n) at c = 1, O(log n) from
// c = 2 or so on. n <= 2^31.
int64_t BinomialForwards(int64_t steps, int64_t checkpoints) {
  // One checkpoint per step but the last is all that can be used.
  const int64_t c = std::min(checkpoints, std::max<int64_t>(steps - 1, 1));
  int64_t r = 0, beta = 1;  // beta(c, r)
  while (beta < steps) {
    ++r;
    beta = beta * (c + r) / r;
  }
  return r * steps - beta * r / (c + 1);  // beta(c + 1, r - 1)
}

// What the solver's class can do at every peak: nothing saved ahead, or store-all.
std::map<int64_t, int64_t> ClassFrontier(const Chain& chain) {
  std::map<int64_t, int64_t> frontier = testing::PersistentFrontier(
      chain, testing::Recompute::kOnDemand, testing::Saving::kJustInTime);
  const Simulation all = *Evaluator(chain).Run(StoreAllSchedule(chain));
  auto after = frontier.upper_bound(all.peak.value());
  if (after == frontier.begin() || std::prev(after)->second > all.makespan.value()) {
    frontier.erase(frontier.lower_bound(all.peak.value()), frontier.end());
    frontier[all.peak.value()] = all.makespan.value();
  }
  return frontier;
}

TEST(Revolve, IsTheBestOfItsClassAtEveryBudget) {
  std::mt19937_64 rng(1);
  int64_t points = 0;
  for (int i = 0; i < 400; ++i) {
    const Chain chain = testing::RandomChain(1 + i % 5, testing::VariedOptions(i), &rng);
    const Frontier frontier = *RevolveSolver().SolveFrontier(chain, {});
    EXPECT_TRUE(frontier.info().exact);
    std::map<int64_t, int64_t> found;
    for (const Frontier::Point& p : frontier.points()) found[p.peak.value()] = p.makespan.value();
    ASSERT_EQ(found, ClassFrontier(chain)) << testing::Describe(chain);
    points += static_cast<int64_t>(found.size());
    for (const auto& [peak, makespan] : found) {
      const absl::StatusOr<Plan> plan = RevolveSolver().Solve(chain, Bytes(peak), {});
      ASSERT_TRUE(plan.ok()) << plan.status();
      ASSERT_EQ(plan->status, PlanStatus::kFound);
      EXPECT_TRUE(plan->bounds.proven_optimal);
      EXPECT_EQ(Evaluator(chain).Run(plan->schedule)->makespan.value(), makespan)
          << testing::Describe(chain);
    }
  }
  EXPECT_GT(points, 800);
}

// The loss is a stage like the others: n equal stages in all.
Chain EqualStages(int count) {
  ChainSpec spec;
  spec.input = Bytes(1);
  Stage s;
  s.forward_time = s.backward_time = Nanos(1);
  s.output = s.saved = Bytes(1);
  spec.stages.assign(static_cast<size_t>(count - 1), s);
  spec.loss = s;
  return *Chain::Create(spec);
}

TEST(Revolve, MeetsTheBinomialClosedFormOnEqualStages) {
  for (int n = 2; n <= 60; ++n) {
    const Chain chain = EqualStages(n);
    for (int c = 1; c <= n - 2; ++c) {
      const absl::StatusOr<Plan> plan = RevolveSolver().Solve(chain, Bytes(c + 2), {});
      ASSERT_TRUE(plan.ok()) << plan.status();
      ASSERT_EQ(plan->status, PlanStatus::kFound) << n << ' ' << c;
      EXPECT_EQ(Evaluator(chain).Run(plan->schedule)->recompute_time.value(),
                BinomialForwards(n, c))
          << n << ' ' << c;
    }
  }
}

// The recurrence that the closed form solves.
TEST(BinomialForwards, IsTheBestFirstCheckpoint) {
  constexpr int kSteps = 80, kCheckpoints = 12;
  for (int c = 1; c <= kCheckpoints; ++c) {
    EXPECT_EQ(BinomialForwards(1, c), 0);
    for (int n = 2; n <= kSteps; ++n) {
      int64_t best = INT64_MAX;
      for (int k = 1; k < n; ++k) {
        if (c == 1 && k != n - 1) continue;  // nowhere to keep the state in between
        const int64_t right = c == 1 ? 0 : BinomialForwards(n - k, c - 1);
        best = std::min(best, k + right + BinomialForwards(k, c));
      }
      EXPECT_EQ(BinomialForwards(n, c), best) << n << ' ' << c;
    }
  }
}

TEST(BinomialForwards, HandlesTheLongestChains) {
  const int64_t n = int64_t{1} << 31;
  EXPECT_EQ(BinomialForwards(n, n), n - 1);
  EXPECT_EQ(BinomialForwards(n, n - 1), n - 1);
  EXPECT_EQ(BinomialForwards(100000, 1), int64_t{100000} * 99999 / 2);
  EXPECT_LT(BinomialForwards(n, 31), n * 31);
}

// Rows that leave steps out still give valid schedules, and the least memory.
TEST(Revolve, AreValidWhenTheyAreThin) {
  std::mt19937_64 rng(2);
  for (int i = 0; i < 10; ++i) {
    testing::RandomChainOptions wide;
    wide.max_size = 1000;
    wide.max_time = 1000;
    const Chain chain = testing::RandomChain(24, wide, &rng);
    const Bytes least = *RevolveSolver().LeastBudget(chain, {});
    SolveOptions thin;
    thin.slots = 64;
    const absl::StatusOr<Frontier> few = RevolveSolver().SolveFrontier(chain, thin);
    const absl::StatusOr<Frontier> all = RevolveSolver().SolveFrontier(chain, {});
    ASSERT_TRUE(few.ok() && all.ok());
    EXPECT_TRUE(all->info().exact);
    EXPECT_FALSE(few->info().exact);
    EXPECT_EQ(few->points().front().peak, least);
    for (const Frontier::Point& point : all->points()) {
      EXPECT_GE(few->At(point.peak)->makespan, point.makespan);
    }
  }
}

TEST(Revolve, KeepToTheirLimits) {
  std::mt19937_64 rng(3);
  const Chain chain = testing::RandomChain(60, {}, &rng);
  SolveOptions options;
  options.slots = 100;
  EXPECT_TRUE(RevolveSolver().SolveFrontier(chain, options).ok());
  for (const int64_t limit : {1000, 60 * 61 / 2 * 100}) {  // of the index, and of the rows
    options.table_limit = Bytes(limit);
    EXPECT_TRUE(absl::IsResourceExhausted(RevolveSolver().SolveFrontier(chain, options).status()))
        << limit;
  }
}

TEST(Revolve, RefusesSlotsOutOfRange) {
  std::mt19937_64 rng(4);
  const Chain chain = testing::RandomChain(3, {}, &rng);
  for (const int64_t slots : {int64_t{-1}, int64_t{1000001}}) {
    SolveOptions options;
    options.slots = slots;
    EXPECT_EQ(GetFieldViolation(RevolveSolver().Solve(chain, Bytes(1), options).status())->field,
              "options.slots");
  }
}

}  // namespace
}  // namespace stowage
