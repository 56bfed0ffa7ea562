// How far the planner's plans are from what is proven: plan, lower bounds and gap of the reference networks, as chain
// and as graph, with and without a link to host memory.
#ifndef STOWAGE_TESTS_BENCH_GAP_ROWS_H_
#define STOWAGE_TESTS_BENCH_GAP_ROWS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/units.h"
#include "solvers/schedule/instance.h"

namespace stowage {

// Of one budget, a share of plain training's peak. Times over the ideal.
struct GapCell {
  double share;
  std::optional<double>
      plan;           // of the default solver with its default effort; nothing where it finds none
  double fast_bound;  // MakespanLowerBound
  double bound;       // StrongestMakespanLowerBound
  Nanos plan_cpu, bound_cpu;  // of the calling thread; of the strongest bound alone
};

struct GapRow {
  std::string network;
  int64_t batch;
  bool as_graph;
  bool with_link;
  int size;  // stages or vertices
  std::vector<GapCell> cells;
};

// The networks of graph_budget_rows.h.
std::vector<std::string> GapNetworks();

// Cells at kBudgetShares. The link is half duplex, 24 GB/s, what copies of pinned memory reach over PCIe 4.
absl::StatusOr<GapRow> ComputeGapRow(const std::string& network, bool as_graph, bool with_link);

// A table for each form and link: plan, bounds and gap, per cent; then CPU times.
std::string GapMarkdown(const std::vector<GapRow>& rows);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_GAP_ROWS_H_
