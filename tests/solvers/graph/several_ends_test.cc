#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <random>

#include "solvers/graph/checkpoint_solvers.h"
#include "tests/solvers/graph/brute_force_several_ends.h"
#include "tests/solvers/graph/random_dag.h"
#include "tests/solvers/graph/small_graphs.h"

namespace stowage::testing {
namespace {

// The optimum of a graph small enough that the solver says so.
int64_t Exact(const CheckpointGraph& graph) {
  const auto answer = SeveralEndsSolver().Solve(graph, {});
  EXPECT_TRUE(answer.ok()) << answer.status();
  if (!answer.ok()) return -1;
  EXPECT_TRUE(answer->optimal) << Describe(graph);
  EXPECT_EQ(answer->lower_bound, answer->set.objective());
  return answer->set.objective().value();
}

TEST(SeveralEnds, EqualsBruteForceOnAllSmallDags) {
  std::mt19937_64 rng(1);
  int graphs = 0;
  for (int size = 2; size <= 6; ++size) {
    ForEachDag(size, [&](const EdgeList& edges) {
      const CheckpointGraph graph = GraphOf(SpecOf(size, edges, RandomBytes(size, 0, 9, &rng)));
      ++graphs;
      ASSERT_EQ(Exact(graph), BestObjective(graph, SegmentRule::kSeveralEndPoints))
          << Describe(graph);
    });
  }
  EXPECT_GT(graphs, 3000);
}

TEST(SeveralEnds, EqualsBruteForceOnRandomDags) {
  std::mt19937_64 rng(2);
  for (int i = 0; i < 6000; ++i) {
    RandomDagOptions options;
    options.density = 0.1 + 0.1 * (i % 5);
    options.longest_edge = i % 3 == 0 ? 3 : 100;
    options.with_flags = i % 2 == 1;
    const CheckpointGraph graph = RandomDag(2 + i % 10, options, &rng);
    ASSERT_EQ(Exact(graph), BestObjective(graph, SegmentRule::kSeveralEndPoints))
        << Describe(graph);
  }
}

}  // namespace
}  // namespace stowage::testing
