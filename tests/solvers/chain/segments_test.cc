#include "solvers/chain/segments.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "solvers/chain/solvers.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "tests/solvers/naive_replay.h"
#include "tests/solvers/random_chain.h"

namespace stowage {
namespace {

SegmentEnds RandomEnds(const Chain& chain, std::mt19937_64* rng) {
  SegmentEnds ends;
  for (int l = 1; l <= chain.length(); ++l) {
    if ((*rng)() % 3 == 0) ends.push_back(l);
  }
  return ends;
}

// Costs without a schedule are what a replay of the schedule says.
TEST(SegmentedCosts, AreTheEvaluators) {
  std::mt19937_64 rng(1);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    const Chain chain = testing::RandomChain(1 + i % 15, testing::VariedOptions(i), &rng);
    const SegmentEnds ends = RandomEnds(chain, &rng);
    const TailPeaks tails(chain);
    SegmentedCosts costs(tails);
    bool allowed = true;
    for (const int end : ends) allowed = allowed && costs.Add(end);
    const testing::NaiveResult naive = testing::NaiveReplay(chain, SegmentedSchedule(chain, ends));
    ASSERT_EQ(allowed, naive.valid) << testing::Describe(chain);
    refused += allowed ? 0 : 1;
    if (!allowed) continue;
    const SegmentedCost cost = costs.Cost();
    EXPECT_EQ(cost.makespan.value(), naive.makespan) << testing::Describe(chain);
    EXPECT_EQ(cost.peak.value(), naive.peak) << testing::Describe(chain);
    EXPECT_EQ(cost.recomputed_forwards, naive.recomputed_forwards) << testing::Describe(chain);
  }
  EXPECT_GT(refused, 100);
}

TEST(SegmentedCosts, OfNoSegmentAreStoreAlls) {
  std::mt19937_64 rng(2);
  const Chain chain = testing::RandomChain(8, {}, &rng);
  EXPECT_EQ(SegmentedSchedule(chain, {}), StoreAllSchedule(chain));
  EXPECT_EQ(SequentialSchedule(chain, 1), StoreAllSchedule(chain));
}

TEST(SequentialSegments, LeaveTheRestToTheLastOne) {
  ChainSpec spec;
  spec.stages.resize(11);
  const Chain chain = *Chain::Create(spec);
  EXPECT_EQ(SequentialSegments(chain, 4), (SegmentEnds{2, 4, 6}));
  EXPECT_EQ(SequentialSegments(chain, 5), (SegmentEnds{2, 4, 6, 8}));
  EXPECT_EQ(SequentialSegments(chain, 11), (SegmentEnds{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
}

// The solver against every count, replayed one by one.
TEST(CheckpointSequential, IsTheBestOfAllSegmentCounts) {
  std::mt19937_64 rng(3);
  for (int i = 0; i < 60; ++i) {
    const Chain chain = testing::RandomChain(1 + i, testing::VariedOptions(i), &rng);
    const Frontier frontier = *CheckpointSequentialSolver().SolveFrontier(chain, {});
    FrontierBuilder each(chain);
    for (int k = 1; k <= chain.length(); ++k) {
      if (testing::NaiveReplay(chain, SequentialSchedule(chain, k)).valid) {
        ASSERT_TRUE(each.Add(SequentialSchedule(chain, k)).ok());
      }
    }
    const Frontier expected = each.Build(frontier.info());
    ASSERT_EQ(frontier.points().size(), expected.points().size()) << testing::Describe(chain);
    for (size_t p = 0; p < expected.points().size(); ++p) {
      EXPECT_EQ(frontier.points()[p].peak, expected.points()[p].peak);
      EXPECT_EQ(frontier.points()[p].makespan, expected.points()[p].makespan);
    }
  }
}

Chain EqualStages(int length) {
  ChainSpec spec;
  Stage s;
  s.forward_time = s.backward_time = Nanos(1);
  s.output = s.saved = Bytes(1);
  spec.stages.assign(static_cast<size_t>(length), s);
  return *Chain::Create(spec);
}

// Thousands of points, each of megabytes, are for no cache.
TEST(SegmentedSolvers, FrontiersOfLongChainsAreCompact) {
  std::mt19937_64 rng(4);
  std::uniform_int_distribution<int64_t> draw(1, 1000000);
  ChainSpec spec;
  spec.stages.resize(60000);
  for (Stage& stage : spec.stages) {
    stage.forward_time = Nanos(draw(rng));
    stage.output = Bytes(draw(rng) / 10);
    stage.saved = stage.output + Bytes(draw(rng));
  }
  const Chain chain = *Chain::Create(spec);
  for (const Solver* solver :
       {&CheckpointSequentialSolver(), &ChenSqrtSolver(), &ChenGreedySolver()}) {
    const absl::StatusOr<Frontier> frontier = solver->SolveFrontier(chain, {});
    ASSERT_TRUE(frontier.ok()) << frontier.status();
    EXPECT_LE(frontier->points().size(), 600u);
    EXPECT_LE(frontier->Encode().size(), size_t{17} << 20) << solver->info().name;
    EXPECT_EQ(frontier->points().front().peak, *solver->LeastBudget(chain, {}));
    EXPECT_EQ(frontier->points().back().makespan, chain.ideal_time());
  }
  EXPECT_FALSE(CheckpointSequentialSolver().SolveFrontier(chain, {})->info().exact);
}

// Segments of sqrt(L) equal stages: their inputs but a^0, and one segment (Chen et al. 2016).
TEST(ChenSqrt, NeedsTwiceTheRootOfTheLength) {
  for (const int root : {2, 5, 10, 30}) {
    const Chain chain = EqualStages(root * root);
    EXPECT_EQ(*ChenSqrtSolver().LeastBudget(chain, {}), Bytes(2 * root - 1));
    const absl::StatusOr<Plan> plan = ChenSqrtSolver().Solve(chain, Bytes(2 * root - 1), {});
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(Evaluator(chain).Run(plan->schedule)->recomputed_forwards, root * root);
  }
}

// On equal stages the bound of the greedy rule makes segments of equal length too.
TEST(ChenGreedy, IsNoWorseThanRootSegmentsOnEqualStages) {
  for (const int root : {2, 5, 10, 30}) {
    const Chain chain = EqualStages(root * root);
    EXPECT_LE(*ChenGreedySolver().LeastBudget(chain, {}), Bytes(2 * root));
  }
}

// Where few stages save most, segments by memory beat segments by length.
TEST(ChenGreedy, CutsByMemory) {
  ChainSpec spec = EqualStages(16).spec();
  for (size_t i = 0; i < 4; ++i) spec.stages[i].saved = Bytes(100);
  const Chain chain = *Chain::Create(spec);
  EXPECT_LT(*ChenGreedySolver().LeastBudget(chain, {}), *ChenSqrtSolver().LeastBudget(chain, {}));
}

TEST(SegmentedSolvers, RecomputeNothingThatMustBeKept) {
  ChainSpec spec = EqualStages(9).spec();
  spec.stages[4].must_keep = true;
  const Chain chain = *Chain::Create(spec);
  EXPECT_EQ(*ChenSqrtSolver().LeastBudget(chain, {}), Bytes(9));
  EXPECT_EQ(*ChenGreedySolver().LeastBudget(chain, {}), Bytes(9));
  // Two segments: the first of four stages.
  EXPECT_LT(*CheckpointSequentialSolver().LeastBudget(chain, {}), Bytes(9));
}

TEST(CheckpointSequential, MatchesItsClosedFormOnEqualStages) {
  ChainSpec spec;
  Stage s;
  s.forward_time = s.backward_time = Nanos(1);
  s.output = s.saved = Bytes(1);
  spec.stages.assign(16, s);
  const Chain chain = *Chain::Create(spec);
  // With k segments of 16/k stages: k - 1 kept inputs but one (a^0 has no bytes), one segment kept
  // whole, and no gradients.
  for (const int k : {2, 4, 8}) {
    const int64_t peak = k - 1 + 16 / k;
    const absl::StatusOr<Plan> plan = CheckpointSequentialSolver().Solve(chain, Bytes(peak), {});
    ASSERT_TRUE(plan.ok()) << plan.status();
    ASSERT_EQ(plan->status, PlanStatus::kFound) << k;
    const testing::NaiveResult naive = testing::NaiveReplay(chain, plan->schedule);
    EXPECT_TRUE(naive.valid);
    EXPECT_LE(naive.peak, peak);
    EXPECT_LE(naive.makespan, 32 + (k - 1) * (16 / k));
  }
}

}  // namespace
}  // namespace stowage
