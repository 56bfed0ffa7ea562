#include "solvers/graph/division_tree.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/solvers/graph/naive_division.h"
#include "tests/solvers/graph/small_graphs.h"

namespace {

using stowage::Bytes;
using stowage::CheckpointGraph;
using stowage::DivisionKind;
using stowage::DivisionTree;
using stowage::StopPoll;
using stowage::testing::DivideNaively;
using stowage::testing::EdgeList;
using stowage::testing::Flatten;
using stowage::testing::ForEachDag;
using stowage::testing::GraphOf;
using stowage::testing::RandomDag;
using stowage::testing::SpecOf;

DivisionTree TreeOf(const CheckpointGraph& graph) {
  StopPoll poll(nullptr);
  return *DivisionTree::Build(graph, &poll);
}

std::string Show(const EdgeList& edges) {
  std::string text;
  for (const auto& [u, v] : edges) text += std::to_string(u) + "-" + std::to_string(v) + " ";
  return text;
}

CheckpointGraph Unweighted(int vertices, const EdgeList& edges) {
  return GraphOf(SpecOf(vertices, edges, std::vector<int64_t>(static_cast<size_t>(vertices), 1)));
}

TEST(DivisionTree, IsTheOneOfTheDefinitionsOnAllSmallGraphs) {
  int graphs = 0;
  for (int vertices = 1; vertices <= 7; ++vertices) {
    ForEachDag(vertices, [&](const EdgeList& edges) {
      const CheckpointGraph graph = Unweighted(vertices, edges);
      ++graphs;
      ASSERT_EQ(Flatten(TreeOf(graph)), DivideNaively(graph)) << Show(edges);
    });
  }
  EXPECT_GT(graphs, 100000);
}

TEST(DivisionTree, IsTheOneOfTheDefinitionsOnRandomGraphs) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 20000; ++round) {
    const int vertices = 8 + round % 12;
    const double chance = (round % 7) * 0.3 / vertices;
    const EdgeList edges = RandomDag(vertices, chance, &random);
    const CheckpointGraph graph = Unweighted(vertices, edges);
    ASSERT_EQ(Flatten(TreeOf(graph)), DivideNaively(graph)) << Show(edges);
  }
}

}  // namespace
