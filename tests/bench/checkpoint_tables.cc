// The tables of Feng & Huang 2018 as ours: memory ratios and solve times of every registered
// checkpoint solver on every network there, as checkpoint_tables.md and .csv, and pictures of some
// of the graphs with their checkpoints and division trees; checkpoint_growth.csv and .svg for graphs
// of other sizes.
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "solvers/graph/division_tree.h"
#include "solvers/viz/division_drawing.h"
#include "tests/bench/checkpoint_growth.h"
#include "tests/bench/checkpoint_report.h"
#include "tests/bench/checkpoint_rows.h"
#include "tests/bench/text_file.h"

namespace stowage {
namespace {

namespace fs = std::filesystem;

constexpr int kUsageError = 2;

absl::Status WriteIfDrawn(const fs::path& path, const absl::StatusOr<std::string>& picture) {
  return picture.ok() ? WriteTextFile(path, *picture) : picture.status();
}

absl::Status DrawTree(const CheckpointRow& row, const GraphDrawing& drawing, const fs::path& out) {
  StopPoll poll(nullptr);
  const absl::StatusOr<DivisionTree> tree = DivisionTree::Build(row.graph, &poll);
  if (!tree.ok()) return tree.status();
  return WriteIfDrawn(out / absl::StrCat(row.paper_graph.name, "_division_tree.svg"),
                      DrawDivisionSvg(row.graph, *tree, drawing));
}

// The graph with what each rule's best solver keeps, and the division tree with the former.
absl::Status Draw(const CheckpointRow& row, const fs::path& out) {
  absl::Status status;
  for (const char* solver : {"division_tree", "acyclic_quotient"}) {
    const SolverResult* result = ResultOf(row, solver);
    if (result == nullptr) continue;
    GraphDrawing drawing;
    drawing.title =
        absl::StrCat(row.paper_graph.name, ", batch ", row.paper_graph.network.batch, ": ", solver);
    drawing.labels = row.labels;
    drawing.checkpoints = result->answer->set.checkpoints;
    drawing.rule = result->solver->rule();
    status.Update(WriteIfDrawn(out / absl::StrCat(row.paper_graph.name, "_", solver, "_graph.svg"),
                               DrawSvg(row.graph, drawing)));
    if (drawing.rule == SegmentRule::kTwoEndPoints) status.Update(DrawTree(row, drawing, out));
  }
  return status;
}

bool IsDrawn(const std::string& network) {
  for (const char* name : {"alexnet", "vgg19", "resnet50", "nasnet_a"}) {
    if (network == name) return true;
  }
  return false;
}

absl::Status DrawGrowth(const fs::path& out) {
  const absl::StatusOr<std::vector<GrowthPoint>> points = MeasureGrowth(GrowthSizes());
  if (!points.ok()) return points.status();
  absl::Status status = WriteTextFile(out / "checkpoint_growth.csv", GrowthCsv(*points));
  status.Update(WriteTextFile(out / "checkpoint_growth.svg", GrowthSvg(*points)));
  return status;
}

absl::Status Run(const fs::path& out) {
  std::vector<CheckpointRow> rows;
  absl::Status status;
  for (const PaperGraph& paper_graph : PaperGraphs()) {
    absl::StatusOr<CheckpointRow> row = ComputeCheckpointRow(paper_graph);
    if (!row.ok()) return row.status();
    if (IsDrawn(paper_graph.name)) status.Update(Draw(*row, out));
    rows.push_back(*std::move(row));
  }
  const std::string markdown = CheckpointMarkdown(rows);
  status.Update(WriteTextFile(out / "checkpoint_tables.md", markdown));
  status.Update(WriteTextFile(out / "checkpoint_tables.csv", CheckpointCsv(rows)));
  std::printf("%s", markdown.c_str());
  status.Update(DrawGrowth(out));
  return status;
}

int Main(const std::vector<std::string>& arguments) {
  const bool help = arguments.size() == 1 && arguments[0] == "--help";
  if (help || arguments.size() != 1 || arguments[0].empty() || arguments[0][0] == '-') {
    std::fprintf(help ? stdout : stderr, "usage: checkpoint_tables DIRECTORY\n");
    return help ? 0 : kUsageError;
  }
  const absl::Status status = Run(arguments[0]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "checkpoint_tables: %s\n", std::string(status.message()).c_str());
  return 1;
}

}  // namespace
}  // namespace stowage

int main(int argc, char** argv) {
  return stowage::Main(std::vector<std::string>(argv + 1, argv + argc));
}
