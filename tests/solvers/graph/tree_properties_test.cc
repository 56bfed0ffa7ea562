// What holds of the division tree and its solver on graphs too large for brute force.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <utility>
#include <vector>

#include "solvers/graph/checkpoint_solver.h"
#include "solvers/graph/division_tree.h"
#include "tests/solvers/graph/naive_division.h"
#include "tests/solvers/graph/small_graphs.h"
#include "tests/solvers/random_series_parallel.h"

namespace {

using stowage::Bytes;
using stowage::CheckpointAnswer;
using stowage::CheckpointGraph;
using stowage::CheckpointGraphSpec;
using stowage::DivisionKind;
using stowage::DivisionNode;
using stowage::DivisionTree;
using stowage::DivisionTreeSolver;
using stowage::SolveOptions;
using stowage::StopPoll;
using stowage::StopToken;
using stowage::testing::DivideNaively;
using stowage::testing::EdgeList;
using stowage::testing::Flatten;
using stowage::testing::GraphOf;
using stowage::testing::RandomBytes;
using stowage::testing::RandomSeriesParallel;
using stowage::testing::SpecOf;

constexpr int kLevels = 100000;

DivisionTree TreeOf(const CheckpointGraph& graph) {
  StopPoll poll(nullptr);
  return *DivisionTree::Build(graph, &poll);
}

// Level inside level around a path of one vertex; `connect` joins the vertices of a level (u, v) with
// those of the next (u + 1, v - 1).
template <class Connect>
CheckpointGraph Nested(int levels, const Connect& connect) {
  const int vertices = 2 * levels + 3;
  EdgeList edges;
  int low = 0, high = vertices - 1;
  for (int level = 0; level < levels; ++level) {
    connect(low, high, &edges);
    ++low;
    --high;
  }
  edges.push_back({low, low + 1});
  edges.push_back({low + 1, high});
  std::vector<int64_t> bytes;
  for (int v = 0; v < vertices; ++v) bytes.push_back(1 + v * int64_t{7919} % 1000);
  return GraphOf(SpecOf(vertices, edges, bytes));
}

// u -> a ... b -> v with a direct edge beside.
CheckpointGraph NestedBranches(int levels) {
  return Nested(levels, [](int u, int v, EdgeList* edges) {
    edges->insert(edges->end(), {{u, v}, {u, u + 1}, {v - 1, v}});
  });
}

// u -> a, u -> b, a ... b, a -> v, b -> v.
CheckpointGraph NestedRigid(int levels) {
  return Nested(levels, [](int u, int v, EdgeList* edges) {
    edges->insert(edges->end(), {{u, u + 1}, {u, v - 1}, {u + 1, v}, {v - 1, v}});
  });
}

std::vector<CheckpointGraph> LargeGraphs() {
  std::vector<CheckpointGraph> graphs;
  graphs.push_back(NestedBranches(kLevels));
  graphs.push_back(NestedRigid(kLevels));
  graphs.push_back(RandomSeriesParallel(100000, 0.2, 1));
  return graphs;
}

TEST(DivisionTree, OfSeriesParallelGraphsIsTheOneOfTheDefinitions) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const CheckpointGraph graph = RandomSeriesParallel(5 + static_cast<int>(seed % 20), 0.3, seed);
    ASSERT_EQ(Flatten(TreeOf(graph)), DivideNaively(graph)) << seed;
  }
}

TEST(DivisionTree, MayBeAsDeepAsTheGraph) {
  EXPECT_EQ(TreeOf(NestedRigid(kLevels)).depth(), kLevels + 1);
  EXPECT_GE(TreeOf(NestedBranches(kLevels)).depth(), 2 * kLevels);
}

// Every edge is a leaf and every vertex but the ends connects children of one node.
TEST(DivisionTree, PartitionsEdgesAndVertices) {
  for (const CheckpointGraph& graph : LargeGraphs()) {
    const DivisionTree tree = TreeOf(graph);
    EdgeList edges, leaves;
    for (int v = 0; v < graph.size(); ++v) {
      for (const int u : graph.inputs(v)) edges.push_back({u, v});
    }
    std::vector<int> connecting;
    for (int n = 0; n < tree.size(); ++n) {
      const DivisionNode& node = tree.node(n);
      if (node.kind == DivisionKind::kEdge) leaves.push_back({node.start, node.end});
      connecting.insert(connecting.end(), tree.connecting(n).begin(), tree.connecting(n).end());
    }
    std::sort(edges.begin(), edges.end());
    std::sort(leaves.begin(), leaves.end());
    EXPECT_EQ(leaves, edges);
    std::sort(connecting.begin(), connecting.end());
    ASSERT_EQ(connecting.size(), static_cast<size_t>(graph.size() - 2));
    for (int v = 1; v < graph.size() - 1; ++v) {
      ASSERT_EQ(connecting[static_cast<size_t>(v - 1)], v);
    }
  }
}

// No vertex inside a node has an edge to one that is neither inside nor an end.
TEST(DivisionTree, SegmentsAreIndependent) {
  const CheckpointGraph graph = RandomSeriesParallel(3000, 0.3, 2);
  const DivisionTree tree = TreeOf(graph);
  std::vector<int> inside_of(static_cast<size_t>(graph.size()), -1);
  for (int n = 0; n < tree.size(); ++n) {
    const DivisionNode& node = tree.node(n);
    Bytes bytes;
    for (const int v : tree.interior(n)) {
      inside_of[static_cast<size_t>(v)] = n;
      bytes += graph.bytes(v);
    }
    ASSERT_EQ(node.bytes, bytes);
    const auto within = [&](int v, int end) {
      return v == end || inside_of[static_cast<size_t>(v)] == n;
    };
    for (const int v : tree.interior(n)) {
      for (const int u : graph.inputs(v)) ASSERT_TRUE(within(u, node.start));
      for (const int w : graph.readers(v)) ASSERT_TRUE(within(w, node.end));
    }
  }
}

TEST(DivisionTree, AlternatesKinds) {
  for (const CheckpointGraph& graph : LargeGraphs()) {
    const DivisionTree tree = TreeOf(graph);
    for (int n = 1; n < tree.size(); ++n) {
      const DivisionKind kind = tree.node(n).kind;
      const DivisionNode& parent = tree.node(tree.node(n).parent);
      ASSERT_NE(parent.kind, DivisionKind::kEdge);
      ASSERT_TRUE(kind == DivisionKind::kRigid || kind != parent.kind);
      ASSERT_GE(parent.child_count, parent.kind == DivisionKind::kRigid ? 5 : 2);
    }
  }
}

TEST(DivisionTreeSolver, SolvesDeepGraphs) {
  for (const CheckpointGraph& graph : LargeGraphs()) {
    const CheckpointAnswer answer = *DivisionTreeSolver().Solve(graph, {});
    EXPECT_TRUE(answer.optimal);
    EXPECT_LE(answer.set.objective(), graph.total());
  }
}

// The graph in another topological order of its vertices.
CheckpointGraph Renumbered(const CheckpointGraph& graph, std::mt19937_64* random) {
  std::vector<int> number(static_cast<size_t>(graph.size())), waits, ready = {graph.source()};
  for (int v = 0; v < graph.size(); ++v) waits.push_back(static_cast<int>(graph.inputs(v).size()));
  CheckpointGraphSpec spec;
  EdgeList edges;
  while (!ready.empty()) {
    std::swap(ready[(*random)() % ready.size()], ready.back());
    const int v = ready.back();
    ready.pop_back();
    number[static_cast<size_t>(v)] = static_cast<int>(spec.bytes.size());
    spec.bytes.push_back(graph.bytes(v));
    for (const int w : graph.readers(v)) {
      if (--waits[static_cast<size_t>(w)] == 0) ready.push_back(w);
    }
  }
  for (int v = 0; v < graph.size(); ++v) {
    for (const int u : graph.inputs(v)) {
      spec.edges.push_back({number[static_cast<size_t>(u)], number[static_cast<size_t>(v)]});
    }
  }
  return GraphOf(std::move(spec));
}

TEST(DivisionTreeSolver, OrderOfVerticesDoesNotMatter) {
  std::mt19937_64 random(1);
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const CheckpointGraph graph = RandomSeriesParallel(300, 0.3, seed);
    const CheckpointGraph other = Renumbered(graph, &random);
    const CheckpointAnswer answer = *DivisionTreeSolver().Solve(graph, {});
    const CheckpointAnswer same = *DivisionTreeSolver().Solve(other, {});
    EXPECT_EQ(answer.set.objective(), same.set.objective()) << seed;
    EXPECT_EQ(answer.set.checkpoints.size(), same.set.checkpoints.size()) << seed;
  }
}

TEST(DivisionTreeSolver, SizesScaleTheAnswer) {
  constexpr int64_t kScale = 1000;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const CheckpointGraph graph = RandomSeriesParallel(300, 0.3, seed);
    CheckpointGraphSpec spec;
    for (int v = 0; v < graph.size(); ++v) {
      spec.bytes.push_back(Bytes(kScale * graph.bytes(v).value()));
      for (const int u : graph.inputs(v)) spec.edges.push_back({u, v});
    }
    const CheckpointAnswer answer = *DivisionTreeSolver().Solve(graph, {});
    const CheckpointAnswer scaled = *DivisionTreeSolver().Solve(GraphOf(std::move(spec)), {});
    EXPECT_EQ(scaled.set.objective().value(), kScale * answer.set.objective().value());
  }
}

TEST(DivisionTreeSolver, EqualGraphsHaveEqualAnswers) {
  // Sizes of 1 and 2 leave many equally good sets.
  CheckpointGraphSpec spec;
  const CheckpointGraph shape = RandomSeriesParallel(2000, 0.2, 7);
  for (int v = 0; v < shape.size(); ++v) {
    spec.bytes.push_back(Bytes(1 + v % 2));
    for (const int u : shape.inputs(v)) spec.edges.push_back({u, v});
  }
  const CheckpointGraph graph = GraphOf(spec);
  std::reverse(spec.edges.begin(), spec.edges.end());
  EXPECT_EQ(DivisionTreeSolver().Solve(graph, {})->set.checkpoints,
            DivisionTreeSolver().Solve(GraphOf(spec), {})->set.checkpoints);
}

TEST(DivisionTreeSolver, StopsWhenTold) {
  const CheckpointGraph graph = RandomSeriesParallel(1000, 0.2, 1);
  StopToken stop;
  stop.RequestStop();
  SolveOptions options;
  options.stop = &stop;
  EXPECT_EQ(DivisionTreeSolver().Solve(graph, options).status().code(),
            absl::StatusCode::kCancelled);
  const StopToken late(StopToken::Clock::now() - std::chrono::seconds(1));
  options.stop = &late;
  EXPECT_EQ(DivisionTreeSolver().Solve(graph, options).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST(DivisionTreeSolver, StopsInTheMiddleOfALongSearch) {
  constexpr int kVertices = 100000;
  std::mt19937_64 random(1);
  EdgeList path;
  for (int v = 1; v < kVertices; ++v) path.push_back({v - 1, v});
  const CheckpointGraph graph =
      GraphOf(SpecOf(kVertices, path, RandomBytes(kVertices, 1, 1000000, &random)));
  StopToken stop;
  SolveOptions options;
  options.stop = &stop;
  options.progress = [&stop](double share) {
    EXPECT_LT(share, 1.0) << "it did not stop";
    stop.RequestStop();
  };
  EXPECT_EQ(DivisionTreeSolver().Solve(graph, options).status().code(),
            absl::StatusCode::kCancelled);
}

TEST(DivisionTreeSolver, ProgressRisesToOne) {
  CheckpointGraphSpec spec;
  const CheckpointGraph shape = RandomSeriesParallel(1000, 0.2, 1);
  for (int v = 0; v < shape.size(); ++v) {
    spec.bytes.push_back(shape.bytes(v));
    for (const int u : shape.inputs(v)) spec.edges.push_back({u, v});
  }
  spec.needs_inputs.assign(spec.bytes.size(), true);
  std::vector<double> reports;
  SolveOptions options;
  options.progress = [&](double share) { reports.push_back(share); };
  ASSERT_TRUE(DivisionTreeSolver().Solve(GraphOf(std::move(spec)), options).ok());
  EXPECT_GT(reports.size(), 3u);
  EXPECT_TRUE(std::is_sorted(reports.begin(), reports.end()));
  EXPECT_EQ(reports.back(), 1.0);
}

TEST(DivisionTreeSolver, RefusesWrongOptions) {
  SolveOptions options;
  options.threads = 0;
  EXPECT_EQ(DivisionTreeSolver().Solve(NestedRigid(1), options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(CheckpointSolvers, AreListedOnceByName) {
  std::vector<std::string> names;
  for (const auto* solver : stowage::AllCheckpointSolvers()) names.push_back(solver->info().name);
  EXPECT_THAT(names, testing::IsSupersetOf({"division_tree", "linear"}));
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

}  // namespace
