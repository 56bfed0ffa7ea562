// How far the blocks of plans reach when they are placed in one region, over the plans' peak.
#ifndef STOWAGE_TESTS_BENCH_PLACEMENT_ROWS_H_
#define STOWAGE_TESTS_BENCH_PLACEMENT_ROWS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/problem.h"
#include "solvers/model/units.h"

namespace stowage {

// Of plain training's peak.
inline constexpr double kPlacementShares[] = {0.15, 0.3, 0.5, 0.7, 0.9, 1.0};

struct PlacedNetwork {
  std::string name;
  bool chain = true;   // else the graph of all its ops
  bool joint = false;  // plans may use a link to host memory of 12.2 GB/s each way, in full duplex
};

// What is measured where nothing is named: chains and graphs, with and without a link.
std::vector<PlacedNetwork> AllPlacedNetworks();

// Of one plan.
struct PlacementCell {
  size_t blocks;
  double ratio;  // extent over the evaluator's peak
  Nanos cpu;     // of the placement
};

struct PlacementRow {
  PlacedNetwork network;
  std::vector<std::optional<PlacementCell>>
      cells;  // at kPlacementShares; nothing where none is found
};

// Batch 16, a decoder's 8; modelled costs. A plan with transfers is what is found within five seconds.
// INVALID_ARGUMENT: unknown name.
absl::StatusOr<PlacementRow> ComputePlacementRow(const PlacedNetwork& network);

// Ratios, then the worst of all.
std::string PlacementMarkdown(const std::vector<PlacementRow>& rows);
// A line per plan.
std::string PlacementCsv(const std::vector<PlacementRow>& rows);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_PLACEMENT_ROWS_H_
