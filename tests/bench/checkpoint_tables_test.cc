#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "tests/bench/checkpoint_growth.h"
#include "tests/bench/checkpoint_report.h"
#include "tests/bench/checkpoint_rows.h"
#include "tests/bench/paper_tables.h"

namespace stowage {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const PaperGraph& PaperGraphOf(const std::string& name) {
  for (const PaperGraph& graph : PaperGraphs()) {
    if (graph.name == name) return graph;
  }
  ADD_FAILURE() << name;
  return PaperGraphs().front();
}

CheckpointRow RowOf(const std::string& name) {
  absl::StatusOr<CheckpointRow> row = ComputeCheckpointRow(PaperGraphOf(name));
  EXPECT_TRUE(row.ok()) << row.status();
  return *std::move(row);
}

std::vector<CheckpointRow> Rows() {
  std::vector<CheckpointRow> rows;
  rows.push_back(RowOf("alexnet"));
  rows.push_back(RowOf("densenet121_full_cat"));
  return rows;
}

// Of the line that begins so.
std::ptrdiff_t CountIn(const std::string& text, const std::string& line, char c) {
  const size_t begin = text.find("\n" + line) + 1;
  EXPECT_NE(begin, 0u) << line;
  const std::string found = text.substr(begin, text.find('\n', begin) - begin);
  return std::count(found.begin(), found.end(), c);
}

TEST(PaperTables, ListTheNetworksThatWeMake) {
  for (const PaperFigures& paper : AllPaperFigures()) {
    EXPECT_EQ(PaperGraphOf(paper.network).name, paper.network);
    EXPECT_LT(paper.f_theirs, paper.f_regular) << paper.network;
    if (!paper.r) continue;
    EXPECT_NEAR(paper.r->measured_ratio, 1.0 * paper.r->theirs / paper.r->regular, 0.0051)
        << paper.network;  // as printed, cut or rounded
  }
  EXPECT_EQ(AllPaperFigures().size(), 18u);
  EXPECT_EQ(PaperFiguresOf("resnet50")->fs_vertices, 125);
  EXPECT_EQ(PaperFiguresOf("resnet50_jit"), nullptr);
}

TEST(CheckpointRows, HaveAnAnswerOfEverySolverThatIsForTheGraph) {
  const CheckpointRow row = RowOf("alexnet");
  EXPECT_EQ(row.results.size(), AllCheckpointSolvers().size());
  for (const SolverResult& result : row.results) EXPECT_TRUE(result.answer.ok());
  const SolverResult* tree = ResultOf(row, "division_tree");
  ASSERT_NE(tree, nullptr);
  EXPECT_NEAR(RatioOf(row, *tree), 0.5715, 0.0001);
  EXPECT_GT(tree->cpu, Nanos(0));
  EXPECT_EQ(ResultOf(row, "no such solver"), nullptr);
  EXPECT_EQ(ResultOf(RowOf("resnet18"), "linear"), nullptr);  // not one path
}

TEST(CheckpointReport, MarkdownKeepsOursAndTheirsApart) {
  const std::string text = CheckpointMarkdown(Rows());
  EXPECT_THAT(text, HasSubstr("| R: theoretical | R: measured |\n"));
  EXPECT_THAT(text, HasSubstr("| alexnet (1024) | 13 | 12 | 2.83 GiB | "));
  EXPECT_THAT(text, HasSubstr(" | 0.58 | 0.74 |\n"));
  EXPECT_THAT(text, HasSubstr(" | 12 | 0.097 |\n"));
  EXPECT_THAT(text, HasSubstr("| alexnet | 3550 | 3108 | 2620 | 4955 | 4408 | 4408 | 3287 |\n"));
  EXPECT_THAT(text, HasSubstr("| nasnet_a | - | - | - | 5832 | - | - | 1129 |\n"));
  // A variant of a graph is none of the papers'.
  EXPECT_THAT(text, HasSubstr(" | - | - |\n\n## CPU time"));
  EXPECT_EQ(CountIn(text, "| network (batch) | vertices | edges", '|'),
            CountIn(text, "| densenet121_full_cat (32) |", '|'));
}

TEST(CheckpointReport, CsvHasALinePerNetworkAndSolver) {
  const std::string csv = CheckpointCsv(Rows());
  EXPECT_THAT(csv, StartsWith("network,batch,image,vertices,edges,total_bytes,solver,"));
  EXPECT_THAT(csv, HasSubstr("alexnet,1024,224,13,12,3040247808,division_tree,two_end_points,"
                             "1737654272,0.571550,4,1737654272,yes,"));
  EXPECT_THAT(csv, HasSubstr(",0.58,0.74,12,0.097\n"));
  EXPECT_EQ(CountIn(csv, "alexnet,", ','), 17);
  EXPECT_EQ(CountIn(csv, "densenet121_full_cat,", ','), 17);
}

TEST(CheckpointReport, WithoutRowsThePapersAlone) {
  EXPECT_THAT(CheckpointMarkdown({}), HasSubstr("| vgg19 | 4788 |"));
  EXPECT_EQ(CheckpointCsv({}).find('\n') + 1, CheckpointCsv({}).size());
}

TEST(CheckpointGrowth, HasAPointPerSize) {
  const std::vector<GrowthPoint> points = *MeasureGrowth({100, 400});
  ASSERT_EQ(points.size(), 2u);
  EXPECT_GE(points[1].vertices, 400);
  EXPECT_GT(points[0].cpu, Nanos(0));
  EXPECT_THAT(GrowthCsv(points), StartsWith("vertices,edges,cpu_ns\n10"));
  const std::string svg = GrowthSvg(points);
  EXPECT_THAT(svg, HasSubstr("CPU time [ms]"));
  EXPECT_THAT(svg, HasSubstr("<path"));
}

}  // namespace
}  // namespace stowage
