#include "tests/bench/checkpoint_report.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tests/bench/paper_tables.h"

namespace stowage {
namespace {

using Cells = std::vector<std::string>;

// Names on the left, figures on the right.
void AppendTable(const Cells& head, const std::vector<Cells>& rows, std::string* text) {
  absl::StrAppend(text, "| ", absl::StrJoin(head, " | "), " |\n|---|");
  for (size_t i = 1; i < head.size(); ++i) absl::StrAppend(text, "---:|");
  absl::StrAppend(text, "\n");
  for (const Cells& row : rows) absl::StrAppend(text, "| ", absl::StrJoin(row, " | "), " |\n");
}

std::string NameOf(const CheckpointRow& row) {
  return absl::StrCat(row.paper_graph.name, " (", row.paper_graph.network.batch, ")");
}

// "0.25", with a star where the answer is proven to be the least under the solver's rule.
std::string RatioCell(const CheckpointRow& row, const SolverResult& result) {
  if (!result.answer.ok()) return "-";
  return absl::StrFormat("%.3f%s", RatioOf(row, result), result.answer->optimal ? "*" : "");
}

std::string Fixed(double value, int digits) { return absl::StrFormat("%.*f", digits, value); }

std::string Number(std::optional<int> value) { return value ? absl::StrCat(*value) : "-"; }

void AppendRatios(const std::vector<CheckpointRow>& rows, std::string* text) {
  Cells head = {"network (batch)", "vertices", "edges", "all bytes"};
  for (const SolverResult& result : rows.front().results) {
    head.push_back(result.solver->info().name);
  }
  for (const char* column : {"checkpoints", "R: theoretical", "R: measured"}) {
    head.push_back(column);
  }
  std::vector<Cells> table;
  for (const CheckpointRow& row : rows) {
    Cells cells = {NameOf(row), absl::StrCat(row.graph.size()),
                   absl::StrCat(row.graph.edge_count()), ToString(row.graph.total())};
    for (const SolverResult& result : row.results) cells.push_back(RatioCell(row, result));
    const SolverResult* tree = ResultOf(row, "division_tree");
    cells.push_back(tree == nullptr ? "-" : absl::StrCat(tree->answer->set.checkpoints.size()));
    const PaperFigures* paper = PaperFiguresOf(row.paper_graph.name);
    const bool known = paper != nullptr && paper->r.has_value();
    cells.push_back(known ? Fixed(paper->r->theoretical_ratio, 2) : "-");
    cells.push_back(known ? Fixed(paper->r->measured_ratio, 2) : "-");
    table.push_back(std::move(cells));
  }
  AppendTable(head, table, text);
}

void AppendTimes(const std::vector<CheckpointRow>& rows, std::string* text) {
  Cells head = {"network (batch)", "vertices"};
  for (const SolverResult& result : rows.front().results) {
    head.push_back(absl::StrCat(result.solver->info().name, " [ms]"));
  }
  head.push_back("FS: vertices");
  head.push_back("FS: time [s]");
  std::vector<Cells> table;
  for (const CheckpointRow& row : rows) {
    Cells cells = {NameOf(row), absl::StrCat(row.graph.size())};
    for (const SolverResult& result : row.results) {
      const double ms = static_cast<double>(result.cpu.value()) / 1e6;
      cells.push_back(result.answer.ok() ? Fixed(ms, 2) : "-");
    }
    const PaperFigures* paper = PaperFiguresOf(row.paper_graph.name);
    cells.push_back(paper == nullptr ? "-" : absl::StrCat(paper->fs_vertices));
    cells.push_back(paper == nullptr ? "-" : Fixed(paper->fs_seconds, 3));
    table.push_back(std::move(cells));
  }
  AppendTable(head, table, text);
}

void AppendMeasurements(std::string* text) {
  std::vector<Cells> table;
  for (const PaperFigures& paper : AllPaperFigures()) {
    const bool known = paper.r.has_value();
    table.push_back({paper.network, known ? absl::StrCat(paper.r->regular) : "-",
                     known ? absl::StrCat(paper.r->chen) : "-",
                     known ? absl::StrCat(paper.r->theirs) : "-", absl::StrCat(paper.f_regular),
                     Number(paper.f_random), Number(paper.f_chen), absl::StrCat(paper.f_theirs)});
  }
  AppendTable({"network", "R: regular", "R: Chen", "R: theirs", "F: regular", "F: random",
               "F: Chen", "F: theirs"},
              table, text);
}

// The papers' columns of a CSV line; empty where they print nothing.
std::string PaperColumns(const std::string& network) {
  const PaperFigures* paper = PaperFiguresOf(network);
  if (paper == nullptr) return ",,,";
  const std::string r =
      paper->r ? absl::StrFormat("%.2f,%.2f", paper->r->theoretical_ratio, paper->r->measured_ratio)
               : ",";
  return absl::StrFormat("%s,%d,%.3f", r, paper->fs_vertices, paper->fs_seconds);
}

}  // namespace

std::string CheckpointMarkdown(const std::vector<CheckpointRow>& rows) {
  std::string text =
      "## Memory: bytes of the checkpoints and of the largest segment, over the bytes of all "
      "vertices\n\n"
      "Figures with a star are proven to be the least under the solver's rule. `_full_cat`: "
      "DenseNets whose layers each concatenate all that is before them in their block, as a trace "
      "shows them; those of the papers concatenate layer by layer. Checkpoints: of "
      "`division_tree`.\n\n";
  if (!rows.empty()) AppendRatios(rows, &text);
  absl::StrAppend(&text, "\n## CPU time of one solve, from the graph to the checkpoints\n\n");
  if (!rows.empty()) AppendTimes(rows, &text);
  absl::StrAppend(&text, "\n## Measured in the papers, MB on their devices\n\n");
  AppendMeasurements(&text);
  return text;
}

std::string CheckpointCsv(const std::vector<CheckpointRow>& rows) {
  std::string csv =
      "network,batch,image,vertices,edges,total_bytes,solver,rule,objective_bytes,ratio,"
      "checkpoints,lower_bound_bytes,optimal,cpu_ns,r_theoretical_ratio,r_measured_ratio,"
      "fs_vertices,fs_seconds\n";
  for (const CheckpointRow& row : rows) {
    for (const SolverResult& result : row.results) {
      if (!result.answer.ok()) continue;
      const CheckpointAnswer& answer = *result.answer;
      absl::StrAppendFormat(
          &csv, "%s,%d,%d,%d,%d,%d,%s,%s,%d,%.6f,%d,%d,%s,%d,%s\n", row.paper_graph.name,
          row.paper_graph.network.batch, row.paper_graph.network.image, row.graph.size(),
          row.graph.edge_count(), row.graph.total().value(), result.solver->info().name,
          ToString(result.solver->rule()), answer.set.objective().value(), RatioOf(row, result),
          answer.set.checkpoints.size(), answer.lower_bound.value(), answer.optimal ? "yes" : "no",
          result.cpu.value(), PaperColumns(row.paper_graph.name));
    }
  }
  return csv;
}

}  // namespace stowage
