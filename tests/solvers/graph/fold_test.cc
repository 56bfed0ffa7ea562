#include "solvers/graph/fold.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>

#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/graph_liveness.h"
#include "solvers/schedule/instance.h"
#include "tests/solvers/graph_ops.h"
#include "tests/solvers/random_communication.h"
#include "tests/solvers/random_graph.h"

namespace stowage {
namespace {

using testing::MakeGraph;
using Members = std::vector<std::vector<int>>;

Vertex Op(int64_t id, std::vector<GraphInput> inputs, int64_t bytes = 8) {
  return testing::MakeOp(id, std::move(inputs), bytes);
}

Vertex Alias(int64_t id, AliasKind kind, std::vector<GraphInput> inputs) {
  Vertex v = Op(id, std::move(inputs));
  v.alias = kind;
  return v;
}

FoldedGraph Fold(const Graph& graph) {
  absl::StatusOr<FoldedGraph> folded = FoldAliases(graph);
  EXPECT_TRUE(folded.ok()) << folded.status();
  for (int p = 0; p < folded->graph.size(); ++p) {
    EXPECT_EQ(folded->graph.vertex(p).alias, AliasKind::kNone);
  }
  return *std::move(folded);
}

std::vector<int> Inputs(const FoldedGraph& folded, int p) {
  std::vector<int> inputs;
  for (const GraphInput& i : folded.graph.vertex(p).inputs) {
    inputs.push_back(static_cast<int>(i.vertex));
  }
  return inputs;
}

// Plain training of the folded graph, on the original.
void ExpectUnfolds(const Graph& graph) {
  const FoldedGraph folded = Fold(graph);
  const Schedule all = StoreAllSchedule(folded.graph);
  const Schedule unfolded = WithDiscards(graph, UnfoldCompute(folded, all));
  const absl::StatusOr<Simulation> simulation = Evaluator(graph).Run(unfolded);
  ASSERT_TRUE(simulation.ok()) << simulation.status();
  EXPECT_EQ(simulation->makespan, graph.ideal_time());
  EXPECT_LE(simulation->peak, Evaluator(folded.graph).Run(all)->peak);
}

TEST(Fold, WithoutAliasesNothingChanges) {
  const Graph graph = MakeGraph({Op(0, {}), Op(1, {{0, true}}), Op(2, {{1, false}, {0, true}})});
  const FoldedGraph folded = Fold(graph);
  EXPECT_EQ(folded.members, (Members{{0}, {1}, {2}}));
  EXPECT_EQ(folded.graph.ideal_time(), graph.ideal_time());
  EXPECT_EQ(Inputs(folded, 2), (std::vector<int>{0, 1}));
  ExpectUnfolds(graph);
}

TEST(Fold, AViewLivesInWhatItShows) {
  const Graph graph = MakeGraph({Op(0, {}), Op(1, {{0, true}}),
                                 Alias(2, AliasKind::kView, {{1, false}}), Op(3, {{2, true}})});
  const FoldedGraph folded = Fold(graph);
  EXPECT_EQ(folded.members, (Members{{0}, {1, 2}, {3}}));
  EXPECT_EQ(Inputs(folded, 2), (std::vector<int>{1}));
  EXPECT_TRUE(folded.graph.vertex(2).inputs[0].backward_needs);
  EXPECT_EQ(folded.graph.vertex(1).output, Bytes(8));
  EXPECT_EQ(folded.graph.vertex(1).forward_time, Nanos(11 + 12));
  EXPECT_EQ(folded.graph.vertex(1).backward_time, Nanos(21 + 22));
  EXPECT_FALSE(folded.graph.vertex(1).must_keep);
  ExpectUnfolds(graph);
}

TEST(Fold, ChainsOfViewsAreOneTensor) {
  std::vector<Vertex> vertices = {Op(0, {}), Op(1, {{0, true}})};
  for (int64_t id = 2; id < 6; ++id) {
    vertices.push_back(Alias(id, AliasKind::kView, {{id - 1, false}}));
  }
  vertices.push_back(Op(6, {{5, true}, {3, true}}));
  const Graph graph = MakeGraph(vertices);
  const FoldedGraph folded = Fold(graph);
  EXPECT_EQ(folded.members, (Members{{0}, {1, 2, 3, 4, 5}, {6}}));
  EXPECT_EQ(Inputs(folded, 2), (std::vector<int>{1}));
  ExpectUnfolds(graph);
}

TEST(Fold, AnInPlaceActivationRunsWithWhatItWritesOver) {
  Vertex relu = Alias(2, AliasKind::kInPlace, {{1, false}});
  relu.backward_needs_output = true;
  const Graph graph = MakeGraph({Op(0, {}), Op(1, {{0, true}}), relu, Op(3, {{2, true}})});
  const FoldedGraph folded = Fold(graph);
  EXPECT_EQ(folded.members, (Members{{0}, {1, 2}, {3}}));
  EXPECT_TRUE(folded.graph.vertex(1).backward_needs_output);
  EXPECT_FALSE(folded.graph.vertex(1).must_keep);
  ExpectUnfolds(graph);
}

// out = conv2(relu(conv1(x))); out += x; relu_(out): the shortcut comes between the members.
TEST(Fold, AResidualAdditionInPlaceReadsTheOtherBranch) {
  Vertex add = Alias(3, AliasKind::kInPlace, {{1, false}, {2, false}});
  const Graph graph =
      MakeGraph({Op(0, {}), Op(1, {{0, true}}), Op(2, {{0, true}}), add, Op(4, {{3, true}})});
  const FoldedGraph folded = Fold(graph);
  EXPECT_EQ(folded.members, (Members{{0}, {2}, {1, 3}, {4}}));
  EXPECT_EQ(Inputs(folded, 2), (std::vector<int>{0, 1}));
  EXPECT_EQ(Inputs(folded, 3), (std::vector<int>{2}));
  EXPECT_FALSE(folded.graph.vertex(2).must_keep);
  ExpectUnfolds(graph);
}

// Vertex 2 reads what vertex 3 writes over: the value cannot come back once it is gone.
TEST(Fold, AVersionThatIsReadBeforeTheWriteStaysAVertexOfItsOwn) {
  const Graph graph =
      MakeGraph({Op(0, {}), Op(1, {{0, true}}), Op(2, {{1, false}}),
                 Alias(3, AliasKind::kInPlace, {{1, false}}), Op(4, {{2, false}, {3, true}})});
  const FoldedGraph folded = Fold(graph);
  EXPECT_EQ(folded.members, (Members{{0}, {1}, {2}, {3}, {4}}));
  EXPECT_EQ(folded.graph.vertex(3).output, Bytes(0));
  EXPECT_EQ(folded.graph.vertex(3).output_gradient, Bytes(0));
  for (const int p : {1, 2, 3}) EXPECT_TRUE(folded.graph.vertex(p).must_keep) << p;
  // Who reads the later version holds the bytes, which the first one has.
  EXPECT_EQ(Inputs(folded, 4), (std::vector<int>{1, 3, 2}));
  ExpectUnfolds(graph);
}

// Vertex 3 shows vertex 1 and reads vertex 2, which reads vertex 1.
TEST(Fold, AViewThatReadsMoreWaitsForIt) {
  const Graph graph =
      MakeGraph({Op(0, {}), Op(1, {{0, true}}), Op(2, {{1, false}}),
                 Alias(3, AliasKind::kView, {{1, false}, {2, false}}), Op(4, {{3, true}})});
  EXPECT_EQ(Fold(graph).members, (Members{{0}, {1}, {2}, {3}, {4}}));
  ExpectUnfolds(graph);
}

TEST(Fold, ManyVersionsAreReadWhereTheProgramReadsThem) {
  std::vector<Vertex> vertices = {Op(0, {}), Op(1, {{0, true}})};
  int64_t id = 2;
  for (int k = 0; k < 5; ++k) {
    const int64_t version = k == 0 ? 1 : id - 1;
    vertices.push_back(Op(id, {{version, false}}));
    vertices.push_back(Alias(id + 1, AliasKind::kInPlace, {{version, false}}));
    id += 2;
  }
  vertices.push_back(Op(id, {{id - 1, true}, {2, false}}));
  const Graph graph = MakeGraph(vertices);
  const FoldedGraph folded = Fold(graph);
  EXPECT_EQ(folded.graph.size(), graph.size());
  int owners = 0;
  for (int p = 1; p + 1 < folded.graph.size(); ++p) {
    EXPECT_TRUE(folded.graph.vertex(p).must_keep) << p;
    owners += folded.graph.bytes(p) > Bytes(0) ? 1 : 0;
  }
  EXPECT_EQ(owners, 6);  // the storage once, and its five readers
  ExpectUnfolds(graph);
}

TEST(Fold, FirstRunsOfRandomOpsKeepTheirOrder) {
  Vertex before = Op(1, {{0, true}}), between = Op(2, {{0, true}});
  before.random = between.random = true;
  const Graph graph =
      MakeGraph({Op(0, {}), before, between,
                 Alias(3, AliasKind::kInPlace, {{1, false}, {2, false}}), Op(4, {{3, true}})});
  ExpectUnfolds(graph);
}

// A folded vertex may be collective where a member is not.
TEST(Fold, WhatCommunicatesUnfoldsOnCompute) {
  std::mt19937_64 rng(12);
  int communicating = 0;
  for (int i = 0; i < 300; ++i) {
    testing::RandomGraphOptions options;
    options.vertices = 3 + i % 8;
    options.with_aliases = true;
    options.collectives = 0.3;
    const Graph graph = testing::RandomGraph(options, &rng);
    const FoldedGraph folded = Fold(graph);
    const Schedule schedule = testing::WithRandomCommunication(
        folded.graph, testing::RandomSchedule(folded.graph, &rng), &rng);
    ASSERT_TRUE(Evaluator(folded.graph).Run(schedule).ok());
    communicating += CheckNoCommunication(schedule).ok() ? 0 : 1;
    const Schedule unfolded = UnfoldCompute(folded, schedule);
    EXPECT_TRUE(CheckNoCommunication(unfolded).ok());
    EXPECT_TRUE(Evaluator(graph).Run(WithDiscards(graph, unfolded)).ok());
  }
  EXPECT_GT(communicating, 200);
}

TEST(Fold, CostsAreSumsOfTheMembers) {
  Vertex conv = Op(1, {{0, true}}), relu = Alias(2, AliasKind::kInPlace, {{1, false}});
  conv.extra_saved = Bytes(3);
  conv.forward_saving_overhead = Bytes(10);
  conv.backward_overhead = Bytes(7);
  relu.extra_saved = Bytes(4);
  relu.forward_saving_overhead = Bytes(2);
  relu.backward_overhead = Bytes(9);
  relu.random = true;
  const FoldedGraph folded = Fold(MakeGraph({Op(0, {}), conv, relu}));
  const Vertex& both = folded.graph.vertex(1);
  EXPECT_EQ(both.extra_saved, Bytes(7));
  // 3 + 10 while the first runs, of which 7 are counted.
  EXPECT_EQ(both.forward_saving_overhead, Bytes(6));
  EXPECT_EQ(both.backward_overhead, Bytes(9));
  EXPECT_TRUE(both.random);
}

TEST(Fold, AnyScheduleOfTheFoldedGraphUnfolds) {
  std::mt19937_64 rng(11);
  int aliases = 0;
  for (int i = 0; i < 1500; ++i) {
    testing::RandomGraphOptions options;
    options.vertices = 3 + i % 12;
    options.with_aliases = true;
    options.with_flags = i % 3 == 0;
    const Graph graph = testing::RandomGraph(options, &rng);
    const FoldedGraph folded = Fold(graph);
    aliases += graph.size() - folded.graph.size();
    const Schedule schedule = testing::RandomSchedule(folded.graph, &rng);
    const Schedule unfolded = WithDiscards(graph, UnfoldCompute(folded, schedule));
    const absl::StatusOr<Simulation> original = Evaluator(graph).Run(unfolded);
    ASSERT_TRUE(original.ok()) << original.status() << "\n" << testing::Describe(graph);
    EXPECT_LE(original->makespan, Evaluator(folded.graph).Run(schedule)->makespan);
  }
  EXPECT_GT(aliases, 1000);
}

}  // namespace
}  // namespace stowage
