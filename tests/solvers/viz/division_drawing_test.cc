#include "solvers/viz/division_drawing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <utility>

#include "tests/solvers/graph/small_graphs.h"
#include "tests/solvers/viz/markup_check.h"

namespace stowage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

DivisionTree TreeOf(const CheckpointGraph& graph) {
  StopPoll poll(nullptr);
  absl::StatusOr<DivisionTree> tree = DivisionTree::Build(graph, &poll);
  EXPECT_TRUE(tree.ok()) << tree.status();
  return *std::move(tree);
}

CheckpointGraph Path(int vertices) {
  testing::EdgeList edges;
  for (int v = 1; v < vertices; ++v) edges.push_back({v - 1, v});
  return testing::GraphOf(
      testing::SpecOf(vertices, edges, std::vector<int64_t>(static_cast<size_t>(vertices), 1024)));
}

// 0 -> 1 -> (2 | 3) -> 4 -> 5.
CheckpointGraph Diamond() {
  return testing::GraphOf(testing::SpecOf(6, {{0, 1}, {1, 2}, {1, 3}, {2, 4}, {3, 4}, {4, 5}},
                                          {1024, 2048, 4096, 8192, 1024, 512}));
}

std::vector<OutlineRow> RowsOf(const DivisionTree& tree, const DivisionLimits& limits = {}) {
  absl::StatusOr<std::vector<OutlineRow>> rows = OutlineOf(tree, limits);
  EXPECT_TRUE(rows.ok()) << rows.status();
  return *std::move(rows);
}

std::vector<std::string> KindsOf(const DivisionTree& tree, const std::vector<OutlineRow>& rows) {
  std::vector<std::string> kinds;
  for (const OutlineRow& row : rows) {
    kinds.push_back(std::string(static_cast<size_t>(row.depth), '.') + KindOf(tree, row));
  }
  return kinds;
}

TEST(DivisionOutline, SmallTreesHaveARowForEveryNode) {
  const CheckpointGraph graph = Diamond();
  const DivisionTree tree = TreeOf(graph);
  const std::vector<OutlineRow> rows = RowsOf(tree);
  EXPECT_THAT(KindsOf(tree, rows),
              ElementsAre("linear", ".edge", ".branch", "..linear", "...edge", "...edge",
                          "..linear", "...edge", "...edge", ".edge"));
  EXPECT_THAT(rows[1].meet, ElementsAre(1));
  EXPECT_THAT(rows[2].meet, ElementsAre(4));
  EXPECT_TRUE(rows[3].meet.empty());  // it ends where the branch does
  EXPECT_THAT(rows[4].meet, ElementsAre(2));
  EXPECT_EQ(rows[2].inside, Bytes(4096 + 8192));
}

// The rows under a row account for all that is inside it, once.
void ExpectAccountedFor(const CheckpointGraph& graph, const std::vector<OutlineRow>& rows) {
  std::vector<Bytes> found(rows.size());
  std::vector<bool> has_rows(rows.size(), false);
  for (const OutlineRow& row : rows) {
    if (row.parent == OutlineRow::kNone) continue;
    const size_t parent = static_cast<size_t>(row.parent);
    has_rows[parent] = true;
    found[parent] += row.inside;
    for (const int v : row.meet) found[parent] += graph.bytes(v);
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!has_rows[i]) continue;
    EXPECT_EQ(found[i], rows[i].inside) << i;
    EXPECT_EQ(rows[i].hidden, 0) << i;
  }
}

int NodesOf(const std::vector<OutlineRow>& rows) {
  int nodes = 0;
  for (const OutlineRow& row : rows) nodes += row.count + row.edges + row.hidden;
  return nodes;
}

TEST(DivisionOutline, NothingIsLostWhateverTheLimits) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    const int vertices = 2 + round % 60;
    const testing::EdgeList edges = testing::RandomDag(vertices, 1.5 / vertices, &random);
    const CheckpointGraph graph = testing::GraphOf(
        testing::SpecOf(vertices, edges, testing::RandomBytes(vertices, 0, 9, &random)));
    const DivisionTree tree = TreeOf(graph);
    DivisionLimits limits;
    limits.rows = 1 + round % 41;
    limits.depth = 1 + round % 5;
    limits.children = 1 + round % 7;
    for (const DivisionLimits& each : {DivisionLimits(), limits}) {
      const std::vector<OutlineRow> rows = RowsOf(tree, each);
      EXPECT_LE(rows.size(), static_cast<size_t>(each.rows));
      EXPECT_EQ(NodesOf(rows), tree.size());
      ExpectAccountedFor(graph, rows);
      for (const OutlineRow& row : rows) EXPECT_LE(row.depth, each.depth);
    }
  }
}

TEST(DivisionOutline, LongRunsOfEdgesShareARow) {
  const CheckpointGraph graph = Path(100);
  const DivisionTree tree = TreeOf(graph);
  const std::vector<OutlineRow> rows = RowsOf(tree);
  EXPECT_THAT(KindsOf(tree, rows), ElementsAre("linear", ".99 edges"));
  EXPECT_EQ(rows[1].meet.size(), 98u);
  EXPECT_EQ(MeetingBytes(graph, rows[1]), "98: 98.00 KiB");
}

TEST(DivisionOutline, SaysWhatItLeavesOut) {
  const CheckpointGraph graph = Diamond();
  const DivisionTree tree = TreeOf(graph);
  DivisionLimits limits;
  limits.children = 2;
  const std::vector<OutlineRow> rows = RowsOf(tree, limits);
  EXPECT_THAT(KindsOf(tree, rows), ElementsAre("linear", ".edge", ".and 2 more"));
  EXPECT_EQ(RemarkOn(tree, rows[2]), "6 nodes hidden");
  limits = DivisionLimits();
  limits.rows = 4;
  EXPECT_THAT(KindsOf(tree, RowsOf(tree, limits)),
              ElementsAre("linear", ".edge", ".branch", ".edge"));
  EXPECT_EQ(RemarkOn(tree, RowsOf(tree, limits)[2]), "6 nodes hidden");
}

TEST(DrawDivisionSvg, ShowsEveryRowWithTheColoursOfItsSegments) {
  const CheckpointGraph graph = Diamond();
  GraphDrawing drawing;
  drawing.title = "a < b";
  drawing.labels = {"in", "conv & relu", "left", "right", "add", "out"};
  drawing.checkpoints = {0, 1, 4, 5};
  const absl::StatusOr<std::string> svg = DrawDivisionSvg(graph, TreeOf(graph), drawing);
  ASSERT_TRUE(svg.ok()) << svg.status();
  EXPECT_TRUE(testing::IsWellFormed(*svg)) << *svg;
  EXPECT_EQ(testing::CountMatches(*svg, "<g class=\"row\">"), 10);
  EXPECT_EQ(testing::CountMatches(*svg, "fill=\"#2b3a55\""), 2);    // 1 and 4
  EXPECT_EQ(testing::CountMatches(*svg, "stroke=\"#c62828\""), 2);  // right: inside, and itself
  EXPECT_THAT(*svg, HasSubstr("conv &amp; relu &#8594; add"));
  EXPECT_THAT(*svg, HasSubstr("a &lt; b"));
  EXPECT_THAT(*svg, HasSubstr("4 checkpoints"));
}

TEST(DrawDivisionSvg, ColumnsBeginWithWhatTheyContinue) {
  // 40 diamonds one after another: more rows than a column has.
  testing::EdgeList edges;
  for (int v = 0; v < 120; v += 3) {
    for (const auto& [from, to] : testing::EdgeList{{0, 1}, {0, 2}, {1, 3}, {2, 3}}) {
      edges.push_back({v + from, v + to});
    }
  }
  const CheckpointGraph graph =
      testing::GraphOf(testing::SpecOf(121, edges, std::vector<int64_t>(121, 7)));
  const absl::StatusOr<std::string> svg = DrawDivisionSvg(graph, TreeOf(graph), GraphDrawing());
  ASSERT_TRUE(svg.ok()) << svg.status();
  EXPECT_TRUE(testing::IsWellFormed(*svg));
  EXPECT_THAT(*svg, HasSubstr("continued"));
  EXPECT_THAT(*svg, HasSubstr(">2 edges</tspan>"));
  EXPECT_THAT(*svg, Not(HasSubstr("#2b3a55")));  // no checkpoints were given
}

TEST(DrawDivisionDot, HasANodeForEveryRow) {
  const CheckpointGraph graph = Diamond();
  GraphDrawing drawing;
  drawing.labels = {"in", "a \"b\"", "c", "d", "e", "f"};
  const absl::StatusOr<std::string> dot = DrawDivisionDot(graph, TreeOf(graph), drawing);
  ASSERT_TRUE(dot.ok());
  EXPECT_EQ(testing::CountMatches(*dot, "fillcolor="), 10);
  EXPECT_EQ(testing::CountMatches(*dot, "  [0-9]+ -> [0-9]+"), 9);
  EXPECT_THAT(*dot, HasSubstr("branch\\na \\\"b\\\" -> e\\n12.00 KiB inside"));
  EXPECT_THAT(*dot, HasSubstr("  0 -> 1 [label=\"2.00 KiB\"];\n"));
}

TEST(DrawDivision, RefusesBadLimitsAndBadCheckpoints) {
  const CheckpointGraph graph = Diamond();
  const DivisionTree tree = TreeOf(graph);
  DivisionLimits limits;
  limits.depth = 0;
  EXPECT_THAT(DrawDivisionSvg(graph, tree, GraphDrawing(), limits).status().ToString(),
              HasSubstr("depth"));
  EXPECT_FALSE(DrawDivisionDot(graph, tree, GraphDrawing(), limits).ok());
  GraphDrawing drawing;
  drawing.checkpoints = {0, 2, 5};  // {1, 3, 4} reads 0 and 2
  EXPECT_FALSE(DrawDivisionSvg(graph, tree, drawing).ok());
  EXPECT_FALSE(DrawDivisionDot(graph, tree, drawing).ok());
}

TEST(DrawDivision, ATreeAsDeepAsItsGraphIsDrawn) {
  // Vertex 2i + 1 hangs beside a nest that begins at 2i: every level is a branch in a line.
  testing::EdgeList edges;
  constexpr int kLast = 20000;
  for (int v = 0; v + 1 < kLast; ++v) edges.push_back({v, v + 1});
  for (int v = 0; v < kLast / 2; ++v) edges.push_back({v, kLast - 1 - v});
  const CheckpointGraph graph =
      testing::GraphOf(testing::SpecOf(kLast, edges, std::vector<int64_t>(kLast, 1)));
  const DivisionTree tree = TreeOf(graph);
  EXPECT_GT(tree.depth(), 5000);
  const absl::StatusOr<std::string> svg = DrawDivisionSvg(graph, tree, GraphDrawing());
  ASSERT_TRUE(svg.ok());
  EXPECT_THAT(*svg, HasSubstr("nodes hidden"));
}

}  // namespace
}  // namespace stowage
