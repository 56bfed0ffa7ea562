// What the search along an order is made of: the bound of a path, the order, splitting vertices.
#include "solvers/graph/internal/acyclic_quotient_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "solvers/graph/checkpoint_graph.h"
#include "tests/solvers/graph/brute_force_acyclic_quotient.h"
#include "tests/solvers/graph/random_dag.h"
#include "tests/solvers/graph/small_graphs.h"

namespace stowage::testing {
namespace {

CheckpointGraph RandomChain(int length, std::mt19937_64* rng) {
  RandomDagOptions options;
  options.longest_edge = 1;
  options.with_flags = length % 2 == 1;
  return RandomDag(length, options, rng);
}

CheckpointPathBound BoundOf(const CheckpointGraph& graph) {
  StopPoll poll(nullptr);
  return *CheckpointPathBound::Create(graph, &poll);
}

int64_t LeastObjective(const CheckpointPathBound& bound) {
  StopPoll poll(nullptr);
  return bound.LeastObjective(&poll).value_or(-1);
}

TEST(CheckpointPathBound, LeastCheckpointsEqualBruteForceOnChains) {
  std::mt19937_64 rng(31);
  for (int i = 0; i < 200; ++i) {
    const CheckpointGraph graph = RandomChain(1 + i % 10, &rng);
    const CheckpointPathBound bound = BoundOf(graph);
    const int64_t limit = static_cast<int64_t>(rng() % 60);
    int64_t least = std::numeric_limits<int64_t>::max();
    for (uint32_t kept = 0; kept < uint32_t{1} << graph.size(); ++kept) {
      const auto cost = CostByDefinition(graph, kept, SegmentRule::kSeveralEndPoints);
      if (cost && cost->segment <= limit) least = std::min(least, cost->checkpoints);
    }
    EXPECT_EQ(bound.LeastCheckpoints(limit).front(), least)
        << Describe(graph) << " under " << limit;
  }
}

TEST(CheckpointPathBound, IsTheOptimumOfShortChains) {
  std::mt19937_64 rng(32);
  for (int i = 0; i < 200; ++i) {
    const CheckpointGraph graph = RandomChain(1 + i % 12, &rng);
    EXPECT_EQ(LeastObjective(BoundOf(graph)), BestObjective(graph, SegmentRule::kSeveralEndPoints))
        << Describe(graph);
  }
}

TEST(CheckpointPathBound, BoundsEverySetOfRandomDags) {
  std::mt19937_64 rng(33);
  for (int i = 0; i < 500; ++i) {
    RandomDagOptions options;
    options.density = 0.1 + 0.1 * (i % 5);
    options.with_flags = i % 2 == 1;
    const CheckpointGraph graph = RandomDag(1 + i % 11, options, &rng);
    const CheckpointPathBound bound = BoundOf(graph);
    EXPECT_LE(LeastObjective(bound), BestObjective(graph, SegmentRule::kSeveralEndPoints))
        << Describe(graph);
    const std::vector<int>& path = bound.path();
    EXPECT_EQ(path.front(), graph.source());
    EXPECT_EQ(path.back(), graph.target());
    for (size_t j = 1; j < path.size(); ++j) {
      const auto inputs = graph.inputs(path[j]);
      EXPECT_TRUE(std::binary_search(inputs.begin(), inputs.end(), path[j - 1]));
    }
  }
}

TEST(CutOrder, SlotsAreHeldFromAVertexToItsLastReader) {
  std::mt19937_64 rng(34);
  for (int i = 0; i < 200; ++i) {
    RandomDagOptions options;
    options.longest_edge = 2 + i % 20;
    const CheckpointGraph graph = RandomDag(1 + i, options, &rng);
    StopPoll poll(nullptr);
    const auto made = MakeCutOrder(graph, &poll);
    ASSERT_TRUE(made.ok() && made->has_value());
    const CutOrder* order = &**made;
    std::vector<int> holder(CutOrder::kMaxSlots, -1), left(static_cast<size_t>(graph.size()));
    int open = 0, widest = 0;
    for (const CutStep& step : order->steps) {
      uint64_t reads = 0, ends = 0;
      ASSERT_EQ(holder[static_cast<size_t>(step.slot)], -1);
      holder[static_cast<size_t>(step.slot)] = step.vertex;
      left[static_cast<size_t>(step.vertex)] = static_cast<int>(graph.readers(step.vertex).size());
      widest = std::max(widest, ++open);
      for (const int u : graph.inputs(step.vertex)) {
        const auto slot = std::find(holder.begin(), holder.end(), u) - holder.begin();
        ASSERT_LT(slot, CutOrder::kMaxSlots) << "read before it is computed, or after its end";
        reads |= uint64_t{1} << slot;
        if (--left[static_cast<size_t>(u)] == 0) ends |= uint64_t{1} << slot;
      }
      if (step.vertex == graph.target()) ends |= uint64_t{1} << step.slot;
      EXPECT_EQ(step.reads, reads);
      EXPECT_EQ(step.ends, ends);
      for (size_t slot = 0; slot < holder.size(); ++slot) {
        if ((ends >> slot & 1) == 0) continue;
        holder[slot] = -1;
        --open;
      }
    }
    EXPECT_EQ(order->steps.size(), static_cast<size_t>(graph.size()));
    EXPECT_EQ(open, 0);
    EXPECT_EQ(order->widest, widest);
  }
}

TEST(CutOrder, RefusesWhatIsTooWide) {
  const auto fan = [](int branches) {
    EdgeList edges;
    for (int v = 1; v <= branches; ++v) {
      edges.push_back({0, v});
      edges.push_back({v, branches + 1});
    }
    std::vector<int64_t> bytes(static_cast<size_t>(branches) + 2, 1);
    return GraphOf(SpecOf(branches + 2, edges, bytes));
  };
  StopPoll poll(nullptr);
  EXPECT_TRUE(MakeCutOrder(fan(63), &poll)->has_value());
  EXPECT_FALSE(MakeCutOrder(fan(65), &poll)->has_value());
}

// Whether the target is out of reach without the vertex.
bool Splits(const CheckpointGraph& graph, int without) {
  std::vector<bool> reached(static_cast<size_t>(graph.size()), false);
  for (int v = 0; v < graph.size(); ++v) {
    bool reach = v == graph.source();
    for (const int u : graph.inputs(v)) reach |= reached[static_cast<size_t>(u)];
    reached[static_cast<size_t>(v)] = reach && v != without;
  }
  return !reached.back();
}

TEST(SplittingVertices, AreThoseThatEveryPathPasses) {
  std::mt19937_64 rng(35);
  for (int i = 0; i < 500; ++i) {
    RandomDagOptions options;
    options.density = 0.02 * (i % 10);
    options.longest_edge = 3;
    const CheckpointGraph graph = RandomDag(1 + i % 30, options, &rng);
    const std::vector<int> splitting = SplittingVertices(graph);
    for (int v = 0; v < graph.size(); ++v) {
      EXPECT_EQ(std::binary_search(splitting.begin(), splitting.end(), v), Splits(graph, v))
          << v << " of " << Describe(graph);
    }
  }
}

}  // namespace
}  // namespace stowage::testing
