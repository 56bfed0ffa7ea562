// The division tree's solver against brute force.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "solvers/graph/checkpoint_solver.h"
#include "solvers/graph/division_tree.h"
#include "solvers/graph/internal/division_search.h"
#include "tests/solvers/graph/brute_force_checkpoints.h"
#include "tests/solvers/graph/small_graphs.h"

namespace {

using stowage::Bytes;
using stowage::CheckpointAnswer;
using stowage::CheckpointGraph;
using stowage::CheckpointGraphSpec;
using stowage::CostsOf;
using stowage::DivisionSearch;
using stowage::DivisionTree;
using stowage::DivisionTreeSolver;
using stowage::NeededInputs;
using stowage::SegmentRule;
using stowage::StopPoll;
using stowage::SweepLimits;
using stowage::SweepResult;
using stowage::testing::EdgeList;
using stowage::testing::ForEachDag;
using stowage::testing::GraphOf;
using stowage::testing::LeastObjectiveOfTwoEndPoints;
using stowage::testing::RandomBytes;
using stowage::testing::RandomDag;
using stowage::testing::SpecOf;

std::string Show(const CheckpointGraph& graph) {
  std::string text;
  for (int v = 0; v < graph.size(); ++v) {
    text += std::to_string(v) + ":" + std::to_string(graph.bytes(v).value()) +
            (graph.must_keep(v) ? " kept" : "") + (graph.needs_inputs(v) ? " needs" : "") + " <-";
    for (const int u : graph.inputs(v)) text += " " + std::to_string(u);
    text += "; ";
  }
  return text;
}

CheckpointAnswer Solve(const CheckpointGraph& graph) {
  return *DivisionTreeSolver().Solve(graph, {});
}

// The answer is what the validation says of it, and the least there is.
void ExpectLeast(const CheckpointGraph& graph) {
  const CheckpointAnswer answer = Solve(graph);
  const auto validated =
      ValidateCheckpoints(graph, answer.set.checkpoints, SegmentRule::kTwoEndPoints);
  ASSERT_TRUE(validated.ok()) << validated.status() << " " << Show(graph);
  EXPECT_EQ(validated->objective(), answer.set.objective());
  EXPECT_TRUE(answer.optimal);
  EXPECT_EQ(answer.lower_bound, answer.set.objective());
  ASSERT_EQ(answer.set.objective().value(), LeastObjectiveOfTwoEndPoints(graph)) << Show(graph);
}

TEST(DivisionTreeSolver, IsOptimalOnAllGraphsOfUpToSixVertices) {
  std::mt19937_64 random(1);
  for (int vertices = 1; vertices <= 6; ++vertices) {
    ForEachDag(vertices, [&](const EdgeList& edges) {
      for (const int64_t high : {1, 3, 1000}) {
        const int64_t low = high == 1 ? 1 : 0;
        ExpectLeast(GraphOf(SpecOf(vertices, edges, RandomBytes(vertices, low, high, &random))));
      }
    });
  }
}

TEST(DivisionTreeSolver, IsOptimalOnAllGraphsOfSevenVertices) {
  std::mt19937_64 random(2);
  ForEachDag(7, [&](const EdgeList& edges) {
    ExpectLeast(GraphOf(SpecOf(7, edges, RandomBytes(7, 0, 20, &random))));
  });
}

TEST(DivisionTreeSolver, IsOptimalOnRandomGraphs) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 10000; ++round) {
    const int vertices = 8 + round % 5;
    const EdgeList edges = RandomDag(vertices, (round % 6) * 0.25 / vertices, &random);
    ExpectLeast(GraphOf(SpecOf(vertices, edges, RandomBytes(vertices, 0, 30, &random))));
  }
}

CheckpointGraphSpec Flagged(int round, double kept, double needing, std::mt19937_64* random) {
  const int vertices = 4 + round % 8;
  const EdgeList edges = RandomDag(vertices, (round % 6) * 0.25 / vertices, random);
  CheckpointGraphSpec spec = SpecOf(vertices, edges, RandomBytes(vertices, 0, 30, random));
  std::bernoulli_distribution keep(kept), need(needing);
  for (int v = 0; v < vertices; ++v) {
    spec.must_keep.push_back(keep(*random));
    spec.needs_inputs.push_back(need(*random));
  }
  return spec;
}

TEST(DivisionTreeSolver, KeepsWhatMustBeKept) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 5000; ++round) {
    ExpectLeast(GraphOf(Flagged(round, 0.25, 0, &random)));
  }
}

TEST(DivisionTreeSolver, BoundsGraphsWhoseOpsNeedTheirInputs) {
  std::mt19937_64 random(5);
  int optimal = 0, least_found = 0;
  constexpr int kRounds = 5000;
  for (int round = 0; round < kRounds; ++round) {
    const CheckpointGraph graph = GraphOf(Flagged(round, 0.1, 0.5, &random));
    const CheckpointAnswer answer = Solve(graph);
    const auto validated =
        ValidateCheckpoints(graph, answer.set.checkpoints, SegmentRule::kTwoEndPoints);
    ASSERT_TRUE(validated.ok()) << validated.status() << " " << Show(graph);
    ASSERT_EQ(validated->objective(), answer.set.objective());
    const int64_t least = LeastObjectiveOfTwoEndPoints(graph);
    ASSERT_LE(answer.lower_bound.value(), least) << Show(graph);
    ASSERT_GE(answer.set.objective().value(), least) << Show(graph);
    if (answer.optimal) {
      ++optimal;
      ASSERT_EQ(answer.set.objective().value(), least) << Show(graph);
    }
    least_found += answer.set.objective().value() == least ? 1 : 0;
  }
  EXPECT_GT(optimal, kRounds / 2);
  EXPECT_GT(least_found, kRounds * 9 / 10);
  RecordProperty("optimal", optimal);
  RecordProperty("least_found", least_found);
}

// Sizes that let every other limit trade as many bytes of segments for checkpoints: all are tried.
CheckpointGraph EvenTrade(int parts, std::mt19937_64* random) {
  std::vector<int64_t> bytes = {0};
  const int64_t most = int64_t{8} * parts;
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t first = (most - 2 * part - 2) / 2 - static_cast<int64_t>((*random)() % 3);
    bytes.insert(bytes.end(), {first, 2, most - 2 * part - 2 - first, 0});
  }
  EdgeList edges;
  for (int v = 1; v < static_cast<int>(bytes.size()); ++v) edges.push_back({v - 1, v});
  return GraphOf(SpecOf(static_cast<int>(bytes.size()), edges, bytes));
}

SweepResult Sweep(const CheckpointGraph& graph, int64_t work) {
  StopPoll poll(nullptr);
  const auto tree = DivisionTree::Build(graph, &poll);
  const auto costs = CostsOf(graph, *tree, NeededInputs::kIgnored, &poll);
  DivisionSearch search(graph, *tree, *costs, &poll);
  return *SweepLimits(graph.total().value(), work, &search, {});
}

TEST(LimitSweep, WithLittleWorkBoundsWhatItDoesNotTry) {
  std::mt19937_64 random(6);
  int proven = 0, missed = 0;
  constexpr int kRounds = 40;
  for (int round = 0; round < kRounds; ++round) {
    const CheckpointGraph graph = EvenTrade(200 + round, &random);
    const SweepResult all = Sweep(graph, int64_t{1} << 60);
    EXPECT_EQ(all.lower_bound, all.objective);
    const SweepResult some = Sweep(graph, all.limits_tried * graph.size() / (2 + round % 4));
    EXPECT_LT(some.limits_tried, all.limits_tried);
    EXPECT_LE(some.lower_bound, all.objective);
    EXPECT_GE(some.objective, all.objective);
    EXPECT_GT(some.lower_bound, all.objective / 2);
    proven += some.lower_bound == some.objective ? 1 : 0;
    missed += some.lower_bound < some.objective ? 1 : 0;
  }
  EXPECT_GT(missed, 0) << "the work was enough: this tests nothing";
  RecordProperty("proven", proven);
}

// The order in which limits are tried does not matter where the work is enough.
TEST(LimitSweep, HalvesToTheOptimumToo) {
  std::mt19937_64 random(7);
  int halved = 0;
  for (int round = 0; round < 3000; ++round) {
    const int vertices = 5 + round % 8;
    const EdgeList edges = RandomDag(vertices, (round % 6) * 0.25 / vertices, &random);
    const CheckpointGraph graph =
        GraphOf(SpecOf(vertices, edges, RandomBytes(vertices, 0, 30, &random)));
    const SweepResult all = Sweep(graph, int64_t{1} << 60);
    const SweepResult some = Sweep(graph, 40);
    ASSERT_LE(some.lower_bound, all.objective) << Show(graph);
    ASSERT_GE(some.objective, all.objective) << Show(graph);
    halved += some.limits_tried != all.limits_tried ? 1 : 0;
  }
  EXPECT_GT(halved, 100);
}

}  // namespace
