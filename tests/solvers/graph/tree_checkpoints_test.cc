// The division tree's solver against brute force.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "solvers/graph/checkpoint_solvers.h"
#include "tests/solvers/graph/brute_force_checkpoints.h"
#include "tests/solvers/graph/small_graphs.h"

namespace {

using stowage::Bytes;
using stowage::CheckpointAnswer;
using stowage::CheckpointGraph;
using stowage::CheckpointGraphSpec;
using stowage::DivisionTreeSolver;
using stowage::SegmentRule;
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

// The answer is what the judge says of it, and the least there is.
void ExpectLeast(const CheckpointGraph& graph) {
  const CheckpointAnswer answer = Solve(graph);
  const auto judged = JudgeCheckpoints(graph, answer.set.checkpoints, SegmentRule::kTwoEndPoints);
  ASSERT_TRUE(judged.ok()) << judged.status() << " " << Show(graph);
  EXPECT_EQ(judged->objective(), answer.set.objective());
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
    const auto judged = JudgeCheckpoints(graph, answer.set.checkpoints, SegmentRule::kTwoEndPoints);
    ASSERT_TRUE(judged.ok()) << judged.status() << " " << Show(graph);
    ASSERT_EQ(judged->objective(), answer.set.objective());
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

}  // namespace
