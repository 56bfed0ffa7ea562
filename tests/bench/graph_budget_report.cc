#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/bench/graph_budget_rows.h"

namespace stowage {
namespace {

// Per cent over the ideal; "-" where nothing fits.
std::string Overhead(std::optional<double> slowdown) {
  return slowdown ? absl::StrFormat("%.1f", (*slowdown - 1.0) * 100.0) : "-";
}

std::string PerCentOf(Bytes bytes, Bytes all) {
  return absl::StrFormat(
      "%.1f", static_cast<double>(bytes.value()) / static_cast<double>(all.value()) * 100.0);
}

std::string Seconds(Nanos time) {
  return absl::StrFormat("%.2f", static_cast<double>(time.value()) / 1e9);
}

std::string NameOf(const BudgetRow& row) { return absl::StrCat(row.name, " (", row.batch, ")"); }

void AppendOverheads(const std::vector<BudgetRow>& rows, std::string* text) {
  absl::StrAppend(text, "| network (batch) |");
  for (const double share : kBudgetShares) absl::StrAppendFormat(text, " %.0f%% |", share * 100.0);
  absl::StrAppend(text, "\n|---|");
  for (size_t i = 0; i < std::size(kBudgetShares); ++i) absl::StrAppend(text, "---:|");
  absl::StrAppend(text, "\n");
  for (const BudgetRow& row : rows) {
    absl::StrAppend(text, "| ", NameOf(row), " |");
    for (size_t i = 0; i < std::size(kBudgetShares); ++i) {
      absl::StrAppend(text, " ", Overhead(row.chain.slowdowns[i]), " / ",
                      Overhead(row.checkpoints.slowdowns[i]), " / ",
                      Overhead(row.search.slowdowns[i]), " / ", Overhead(row.bounds[i]), " |");
    }
    absl::StrAppend(text, "\n");
  }
}

void AppendLeast(const std::vector<BudgetRow>& rows, std::string* text) {
  absl::StrAppend(text,
                  "| network (batch) | vertices | ideal [ms] | plain training | chain | "
                  "checkpoints | order_search | one op needs | chain [s] | order_search [s] |\n"
                  "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
  for (const BudgetRow& row : rows) {
    absl::StrAppend(text, "| ", NameOf(row), " | ", row.vertices, " | ",
                    absl::StrFormat("%.1f", static_cast<double>(row.ideal.value()) / 1e6), " | ",
                    ToString(row.store_all), " | ", PerCentOf(row.chain.least_peak, row.store_all),
                    " | ", PerCentOf(row.checkpoints.least_peak, row.store_all), " | ",
                    PerCentOf(row.search.least_peak, row.store_all), " | ",
                    PerCentOf(row.peak_lower_bound, row.store_all), " | ", Seconds(row.chain.cpu),
                    " | ", Seconds(row.search.cpu), " |\n");
  }
}

std::string CsvCell(std::optional<double> slowdown) {
  return slowdown ? absl::StrFormat("%.6f", *slowdown) : "";
}

}  // namespace

std::string BudgetMarkdown(const std::vector<BudgetRow>& rows) {
  std::string text =
      "## Makespan over the ideal, per cent, within a share of plain training's peak\n\n"
      "The chain solver on the graph cut at its splitting vertices / training with the checkpoints "
      "of Feng and Huang 2018, Algorithm 6 / `order_search` / the proven lower bound. A dash: it "
      "finds nothing that fits.\n\n";
  AppendOverheads(rows, &text);
  absl::StrAppend(&text,
                  "\n## The least peak that each finds, per cent of plain training's, and CPU "
                  "seconds of the whole frontier\n\n");
  AppendLeast(rows, &text);
  return text;
}

std::string BudgetCsv(const std::vector<BudgetRow>& rows) {
  std::string csv =
      "network,batch,vertices,ideal_ns,store_all_bytes,peak_lower_bound_bytes,share,chain,"
      "checkpoints,"
      "order_search,lower_bound,chain_least_bytes,checkpoints_peak_bytes,order_search_least_bytes,"
      "chain_cpu_ns,order_search_cpu_ns\n";
  for (const BudgetRow& row : rows) {
    for (size_t i = 0; i < std::size(kBudgetShares); ++i) {
      absl::StrAppendFormat(
          &csv, "%s,%d,%d,%d,%d,%d,%.2f,%s,%s,%s,%.6f,%d,%d,%d,%d,%d\n", row.name, row.batch,
          row.vertices, row.ideal.value(), row.store_all.value(), row.peak_lower_bound.value(),
          kBudgetShares[i], CsvCell(row.chain.slowdowns[i]), CsvCell(row.checkpoints.slowdowns[i]),
          CsvCell(row.search.slowdowns[i]), row.bounds[i], row.chain.least_peak.value(),
          row.checkpoints.least_peak.value(), row.search.least_peak.value(), row.chain.cpu.value(),
          row.search.cpu.value());
    }
  }
  return csv;
}

}  // namespace stowage
