// As many vertices as a graph may have, in the shapes that are worst for a tree: answers or errors
// that say why, and no work after the deadline. And bad input far down a large graph: errors that name the vertex.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "solvers/graph/checkpoint_solver.h"
#include "solvers/graph/division_tree.h"
#include "solvers/graph/fold.h"

namespace stowage {
namespace {

using ::testing::HasSubstr;

constexpr int kMillion = static_cast<int>(Graph::kMaxVertices);
// At which the deadline passes: some 2^24 steps into the solve.
constexpr int64_t kLook = 16;

Vertex Op(int64_t id, std::vector<GraphInput> inputs) {
  Vertex v;
  v.id = v.program_order = id;
  v.output = Bytes(1 + id * 7919 % 1000);
  v.forward_time = v.backward_time = Nanos(1);
  v.inputs = std::move(inputs);
  return v;
}

GraphSpec Made(int vertices, const std::function<std::vector<GraphInput>(int)>& inputs) {
  GraphSpec spec;
  spec.vertices.reserve(static_cast<size_t>(vertices));
  for (int v = 0; v < vertices; ++v) {
    spec.vertices.push_back(Op(v, v == 0 ? std::vector<GraphInput>() : inputs(v)));
  }
  return spec;
}

GraphSpec Path(int vertices) {
  return Made(vertices, [](int v) { return std::vector<GraphInput>{{v - 1, false}}; });
}

GraphSpec WideBranch(int vertices) {
  return Made(vertices, [vertices](int v) {
    if (v + 1 < vertices) return std::vector<GraphInput>{{0, false}};
    std::vector<GraphInput> all;
    for (int u = 1; u < v; ++u) all.push_back({u, false});
    return all;
  });
}

// Two rails, a rung between each pair: one rigid node, but for the last vertex of a rail.
GraphSpec Ladder(int vertices) {
  return Made(vertices, [](int v) {
    std::vector<GraphInput> inputs;
    if (v > 1) inputs.push_back({v - 2, false});
    if (v % 2 == 1 || v == 2) inputs.push_back({v - 1, false});
    return inputs;
  });
}

// Every vertex of the first half has a direct edge to its mirror image: as deep as wide.
GraphSpec Nest(int vertices) {
  return Made(vertices, [vertices](int v) {
    std::vector<GraphInput> inputs = {{v - 1, false}};
    if (vertices - 1 - v < v - 1) inputs.push_back({vertices - 1 - v, false});
    return inputs;
  });
}

void ExpectAnswers(const CheckpointGraph& graph) {
  for (const CheckpointSolver* solver : AllCheckpointSolvers()) {
    SCOPED_TRACE(solver->info().name);
    StopToken stop;
    stop.PassDeadlineAtLook(kLook);
    SolveOptions options;
    options.stop = &stop;
    const absl::StatusOr<CheckpointAnswer> answer = solver->Solve(graph, options);
    EXPECT_LE(stop.looks(), kLook) << "went on after the deadline";
    if (!answer.ok()) {
      EXPECT_TRUE(absl::IsDeadlineExceeded(answer.status()) ||
                  absl::IsFailedPrecondition(answer.status()))
          << answer.status();
      continue;
    }
    const auto validated = ValidateCheckpoints(graph, answer->set.checkpoints, solver->rule());
    ASSERT_TRUE(validated.ok()) << validated.status();
    EXPECT_EQ(validated->objective(), answer->set.objective());
    EXPECT_LE(answer->lower_bound, answer->set.objective());
  }
}

// What the division tree of `spec` looks like.
void ExpectTree(GraphSpec spec, DivisionKind root, int depth) {
  absl::StatusOr<Graph> graph = Graph::Create(std::move(spec));
  ASSERT_TRUE(graph.ok()) << graph.status();
  absl::StatusOr<CheckpointProblem> problem = MakeCheckpointProblem(*graph);
  ASSERT_TRUE(problem.ok()) << problem.status();
  EXPECT_EQ(problem->graph.size(), graph->size());
  StopPoll poll(nullptr);
  const absl::StatusOr<DivisionTree> tree = DivisionTree::Build(problem->graph, &poll);
  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_EQ(tree->node(DivisionTree::kRoot).kind, root);
  EXPECT_EQ(tree->depth(), depth);
  EXPECT_EQ(tree->interior_size(DivisionTree::kRoot), graph->size() - 2);
  ExpectAnswers(problem->graph);
}

TEST(LargeGraphs, APathOfAMillion) { ExpectTree(Path(kMillion), DivisionKind::kLinear, 1); }

TEST(LargeGraphs, ABranchOfAMillion) { ExpectTree(WideBranch(kMillion), DivisionKind::kBranch, 2); }

TEST(LargeGraphs, ALadderOfAMillion) { ExpectTree(Ladder(kMillion), DivisionKind::kRigid, 2); }

// A branch of an edge and a line, whose middle is a branch again: two levels for every pair.
TEST(LargeGraphs, ANestOfAMillion) {
  ExpectTree(Nest(kMillion), DivisionKind::kBranch, kMillion - 2);
}

// Half of the vertices are a fan, the others a line, and so many more read all of the fan.
CheckpointGraph FanBesideALine(int fan, int readers) {
  CheckpointGraphSpec spec;
  const int first_reader = 2 * fan + 1, target = first_reader + readers;
  for (int v = 0; v <= target; ++v) spec.bytes.emplace_back(1 + v % 7);
  for (int v = 1; v <= fan; ++v) {
    spec.edges.push_back({0, v});
    spec.edges.push_back({v == 1 ? fan : fan + v - 1, fan + v});
    for (int r = first_reader; r <= target; ++r) spec.edges.push_back({v, r});
  }
  for (int r = first_reader - 1; r < target; ++r) spec.edges.push_back({r, target});
  return *CheckpointGraph::Create(std::move(spec));
}

TEST(LargeGraphs, ReadyVerticesThatReadThousands) { ExpectAnswers(FanBesideALine(40000, 20)); }

TEST(LargeGraphs, AMillionAliasesOfOneTensor) {
  GraphSpec spec = Path(kMillion);
  for (size_t v = 2; v < spec.vertices.size(); ++v) spec.vertices[v].alias = AliasKind::kView;
  const absl::StatusOr<Graph> graph = Graph::Create(std::move(spec));
  ASSERT_TRUE(graph.ok()) << graph.status();
  const absl::StatusOr<FoldedGraph> folded = FoldAliases(*graph);
  ASSERT_TRUE(folded.ok()) << folded.status();
  EXPECT_EQ(folded->graph.size(), 2);
}

TEST(LargeGraphs, OneMoreIsTooMany) {
  GraphSpec spec;
  spec.vertices.resize(Graph::kMaxVertices + 1);
  EXPECT_THAT(Graph::Create(std::move(spec)).status().ToString(), HasSubstr("1000001"));
  CheckpointGraphSpec bytes;
  bytes.bytes.resize(Graph::kMaxVertices + 1);
  EXPECT_THAT(CheckpointGraph::Create(std::move(bytes)).status().ToString(), HasSubstr("1000001"));
}

constexpr size_t kBad = 77777;

// The error of a path of 100,000 with one thing changed.
std::string ErrorOf(const std::function<void(GraphSpec*)>& spoil) {
  GraphSpec spec = Path(100000);
  spoil(&spec);
  const absl::Status status = Graph::Create(std::move(spec)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return status.ToString();
}

TEST(BadGraphs, ErrorsNameTheVertex) {
  const auto bad = [](GraphSpec* spec) -> Vertex& { return spec->vertices[kBad]; };
  const std::pair<const char*, std::string> errors[] = {
      {"a cycle", ErrorOf([&](GraphSpec* s) { bad(s).inputs[0].vertex = kBad + 1; })},
      {"itself", ErrorOf([&](GraphSpec* s) { bad(s).inputs[0].vertex = kBad; })},
      {"must be the id", ErrorOf([&](GraphSpec* s) { bad(s).inputs[0].vertex = 1 << 30; })},
      {"unique", ErrorOf([&](GraphSpec* s) { bad(s).id = 5; })},
      {"unique", ErrorOf([&](GraphSpec* s) { bad(s).program_order = kBad - 1; })},
      {">= 0", ErrorOf([&](GraphSpec* s) { bad(s).output = Bytes(-1); })},
      {"sum of all sizes", ErrorOf([&](GraphSpec* s) { bad(s).extra_saved = Bytes(INT64_MAX); })},
      {"sum of all times", ErrorOf([&](GraphSpec* s) { bad(s).forward_time = Nanos(INT64_MAX); })},
      {"an alias", ErrorOf([&](GraphSpec* s) {
         bad(s).inputs.clear();
         bad(s).alias = AliasKind::kInPlace;
       })},
  };
  for (const auto& [rule, error] : errors) {
    EXPECT_THAT(error, HasSubstr(rule));
    EXPECT_THAT(error, HasSubstr("vertices[77777]"));
  }
  EXPECT_THAT(ErrorOf([](GraphSpec* s) { s->vertices.clear(); }), HasSubstr("at least one vertex"));
}

// Graphs need neither one source nor one target, nor be connected.
TEST(BadGraphs, LonelyVerticesAreNoError) {
  GraphSpec spec = Path(10);
  spec.vertices[5].inputs.clear();
  spec.vertices[7].inputs = {{2, false}};
  const absl::StatusOr<Graph> graph = Graph::Create(std::move(spec));
  ASSERT_TRUE(graph.ok()) << graph.status();
  const absl::StatusOr<CheckpointProblem> problem = MakeCheckpointProblem(*graph);
  ASSERT_TRUE(problem.ok()) << problem.status();
  EXPECT_EQ(problem->graph.size(), 12);  // a source and a target more
  ExpectAnswers(problem->graph);
}

}  // namespace
}  // namespace stowage
