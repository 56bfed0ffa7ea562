#include "solvers/viz/graph_drawing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "solvers/viz/markup.h"
#include "tests/solvers/viz/markup_check.h"

namespace stowage {
namespace {

using testing::CountMatches;
using ::testing::HasSubstr;
using testing::IsWellFormed;
using ::testing::Not;

// 0 -> 1 -> 3 -> 4, 0 -> 2 -> 3.
CheckpointGraph Diamond() {
  CheckpointGraphSpec spec;
  for (const int64_t bytes : {1024, 2048, 4096, 1024, 512}) spec.bytes.push_back(Bytes(bytes));
  spec.edges = {{0, 1}, {0, 2}, {1, 3}, {2, 3}, {3, 4}};
  absl::StatusOr<CheckpointGraph> graph = CheckpointGraph::Create(std::move(spec));
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

GraphDrawing Kept() {
  GraphDrawing drawing;
  drawing.title = "A <small> \"net\"";
  drawing.labels = {"in", "conv & relu", "skip", "add", "out"};
  drawing.checkpoints = {0, 3, 4};
  return drawing;
}

TEST(DrawSvg, ShowsEveryVertexAndEdge) {
  const absl::StatusOr<std::string> svg = DrawSvg(Diamond(), Kept());
  ASSERT_TRUE(svg.ok()) << svg.status();
  EXPECT_TRUE(IsWellFormed(*svg)) << *svg;
  EXPECT_EQ(CountMatches(*svg, "<path "), 5);
  EXPECT_EQ(CountMatches(*svg, "<g><title>"), 5);
  EXPECT_EQ(CountMatches(*svg, "fill=\"#2b3a55\""), 3);    // checkpoints
  EXPECT_EQ(CountMatches(*svg, "stroke=\"#c62828\""), 1);  // vertex 2 is the largest segment
  EXPECT_THAT(*svg, HasSubstr("conv &amp; relu"));
  EXPECT_THAT(*svg, HasSubstr("A &lt;small&gt; &quot;net&quot;"));
  EXPECT_THAT(*svg, HasSubstr("3 checkpoints of 2.50 KiB + the largest of 2 segments, 4.00 KiB"));
}

TEST(DrawSvg, WithoutCheckpointsTheGraphAlone) {
  GraphDrawing drawing;
  const absl::StatusOr<std::string> svg = DrawSvg(Diamond(), drawing);
  ASSERT_TRUE(svg.ok());
  EXPECT_THAT(*svg, Not(HasSubstr("#2b3a55")));
  EXPECT_THAT(*svg, HasSubstr("5 vertices, 5 edges"));
}

TEST(DrawSvg, TheRuleOfTheDrawingJudgesItsCheckpoints) {
  GraphDrawing drawing = Kept();
  drawing.checkpoints = {0, 1, 4};  // the segment {2, 3} reads 0 and 1
  EXPECT_THAT(DrawSvg(Diamond(), drawing).status().ToString(),
              HasSubstr("must read one checkpoint"));
  EXPECT_FALSE(DrawDot(Diamond(), drawing).ok());
  drawing.rule = SegmentRule::kSeveralEndPoints;
  EXPECT_TRUE(DrawSvg(Diamond(), drawing).ok());
  EXPECT_TRUE(DrawDot(Diamond(), drawing).ok());
}

TEST(DrawDot, NamesVerticesByNumberAndEscapesLabels) {
  GraphDrawing drawing = Kept();
  drawing.labels[0] = "a \"b\" \\ c";
  const absl::StatusOr<std::string> dot = DrawDot(Diamond(), drawing);
  ASSERT_TRUE(dot.ok());
  EXPECT_THAT(*dot, HasSubstr("0 [label=\"a \\\"b\\\" \\\\ c\\n1.00 KiB\""));
  EXPECT_THAT(*dot, HasSubstr("  2 -> 3;\n"));
  EXPECT_EQ(CountMatches(*dot, " -> "), 5);
}

TEST(LabelsOf, AreTheNamesOfTheOps) {
  GraphSpec spec;
  for (const int64_t id : {7, 8, 9}) {
    Vertex v;
    v.id = v.program_order = id;
    v.op_kind = "op";
    if (id == 9) v.inputs = {{7, false}, {8, false}};
    if (id == 8) v.name = "second";
    spec.vertices.push_back(v);
  }
  const absl::StatusOr<Graph> graph = Graph::Create(spec);
  ASSERT_TRUE(graph.ok());
  const absl::StatusOr<CheckpointProblem> problem = MakeCheckpointProblem(*graph);
  ASSERT_TRUE(problem.ok());
  EXPECT_THAT(LabelsOf(*graph, *problem),
              ::testing::ElementsAre("inputs", "op 7", "second", "op 9"));
}

TEST(Markup, StaysWithinItsAlphabet) {
  EXPECT_EQ(XmlEscaped("<a & 'b'>\n\xc3\xa4"), "&lt;a &amp; &apos;b&apos;&gt;???");
  EXPECT_EQ(DotEscaped("a\nb"), "a?b");
  EXPECT_EQ(Shortened("abcdefghij", 10), "abcdefghij");
  EXPECT_EQ(Shortened("abcdefghijk", 10), "abcd..hijk");
  EXPECT_NE(std::string(PaleColour(0)), PaleColour(1));
}

}  // namespace
}  // namespace stowage
