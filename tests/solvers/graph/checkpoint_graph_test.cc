#include "solvers/graph/checkpoint_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace {

using stowage::Bytes;
using stowage::CheckpointGraph;
using stowage::CheckpointGraphSpec;
using testing::ElementsAre;
using testing::HasSubstr;

// 0 -> 1 -> 3, 0 -> 2 -> 3.
CheckpointGraphSpec Diamond() {
  CheckpointGraphSpec spec;
  spec.bytes = {Bytes(1), Bytes(2), Bytes(3), Bytes(4)};
  spec.edges = {{0, 1}, {0, 2}, {1, 3}, {2, 3}};
  return spec;
}

void ExpectRefused(CheckpointGraphSpec spec, const std::string& field, const std::string& rule) {
  const absl::StatusOr<CheckpointGraph> graph = CheckpointGraph::Create(std::move(spec));
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(graph.status().message()), HasSubstr(field));
  EXPECT_THAT(std::string(graph.status().message()), HasSubstr(rule));
}

TEST(CheckpointGraph, KnowsItsEdgesAndSizes) {
  CheckpointGraphSpec spec = Diamond();
  spec.edges.push_back({0, 1});  // twice
  spec.must_keep = {false, true, false, false};
  spec.needs_inputs = {false, true, false, true};
  const CheckpointGraph graph = *CheckpointGraph::Create(std::move(spec));
  EXPECT_EQ(graph.size(), 4);
  EXPECT_EQ(graph.edge_count(), 4u);
  EXPECT_EQ(graph.total(), Bytes(10));
  EXPECT_EQ(graph.source(), 0);
  EXPECT_EQ(graph.target(), 3);
  EXPECT_THAT(graph.readers(0), ElementsAre(1, 2));
  EXPECT_THAT(graph.inputs(3), ElementsAre(1, 2));
  EXPECT_TRUE(graph.must_keep(1));
  EXPECT_FALSE(graph.must_keep(2));
  EXPECT_FALSE(graph.needs_inputs(1)) << "it has one input";
  EXPECT_TRUE(graph.needs_inputs(3));
}

TEST(CheckpointGraph, OneVertexIsSourceAndTarget) {
  CheckpointGraphSpec spec;
  spec.bytes = {Bytes(7)};
  const CheckpointGraph graph = *CheckpointGraph::Create(std::move(spec));
  EXPECT_EQ(graph.source(), graph.target());
}

TEST(CheckpointGraph, RefusesAnEmptyGraph) { ExpectRefused({}, "vertices", "at least one"); }

TEST(CheckpointGraph, RefusesTooManyVertices) {
  CheckpointGraphSpec spec;
  spec.bytes.assign(stowage::Graph::kMaxVertices + 1, Bytes(0));
  ExpectRefused(std::move(spec), "vertices", "at most");
}

TEST(CheckpointGraph, RefusesSizesThatAreNegativeOrOverflow) {
  CheckpointGraphSpec spec = Diamond();
  spec.bytes[2] = Bytes(-1);
  ExpectRefused(spec, "vertices[2].bytes", ">= 0");
  spec.bytes[2] = Bytes(stowage::kMaxTotal - 1);
  ExpectRefused(spec, "vertices[2].bytes", "sum");
}

TEST(CheckpointGraph, RefusesEdgesThatAreNone) {
  for (const auto& [edge, rule] :
       std::vector<std::pair<std::pair<int, int>, std::string>>{{{0, 4}, "vertices of the graph"},
                                                                {{-1, 2}, "vertices of the graph"},
                                                                {{2, 2}, "itself"},
                                                                {{3, 1}, "cycle"}}) {
    CheckpointGraphSpec spec = Diamond();
    spec.edges.push_back(edge);
    ExpectRefused(std::move(spec), "edges[4]", rule);
  }
}

TEST(CheckpointGraph, RefusesVerticesOnNoPath) {
  CheckpointGraphSpec spec = Diamond();
  spec.edges = {{0, 1}, {1, 3}, {2, 3}};
  ExpectRefused(spec, "vertices[2]", "source");
  spec.edges = {{0, 1}, {0, 2}, {1, 3}};
  ExpectRefused(spec, "vertices[2]", "target");
}

TEST(CheckpointGraph, RefusesFlagsForOtherVertices) {
  CheckpointGraphSpec spec = Diamond();
  spec.must_keep = {true};
  ExpectRefused(spec, "must_keep", "one entry per vertex");
  spec = Diamond();
  spec.needs_inputs.resize(5);
  ExpectRefused(spec, "needs_inputs", "one entry per vertex");
}

TEST(CheckpointProblem, OfAChainIsThePathOfItsOutputs) {
  stowage::ChainSpec spec;
  spec.input = Bytes(5);
  stowage::Stage stage;
  stage.output = Bytes(10);
  stage.saved = Bytes(30);
  spec.stages = {stage, stage};
  spec.stages[1].must_keep = true;
  spec.loss.output = spec.loss.saved = Bytes(1);
  const auto problem = stowage::MakeCheckpointProblem(*stowage::Chain::Create(spec));
  ASSERT_TRUE(problem.ok()) << problem.status();
  const CheckpointGraph& graph = problem->graph;
  ASSERT_EQ(graph.size(), 4);
  EXPECT_EQ(graph.edge_count(), 3u);
  EXPECT_EQ(graph.total(), Bytes(26));
  EXPECT_EQ(problem->saved_beside, Bytes(40));
  EXPECT_THAT(graph.inputs(3), ElementsAre(2));
  EXPECT_FALSE(graph.must_keep(1));
  EXPECT_TRUE(graph.must_keep(2));
  EXPECT_THAT(problem->members,
              ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2), ElementsAre(3)));
}

TEST(CheckpointProblem, CountsWhatIsSavedBesideOutputs) {
  stowage::GraphSpec spec;
  for (int64_t id = 0; id < 3; ++id) {
    stowage::Vertex v;
    v.id = v.program_order = id;
    v.output = Bytes(10);
    v.extra_saved = Bytes(id);
    if (id > 0) v.inputs.push_back({id - 1, true});
    spec.vertices.push_back(v);
  }
  const auto problem = stowage::MakeCheckpointProblem(*stowage::Graph::Create(spec));
  ASSERT_TRUE(problem.ok()) << problem.status();
  EXPECT_EQ(problem->graph.total(), Bytes(30));
  EXPECT_EQ(problem->saved_beside, Bytes(3));
}

}  // namespace
