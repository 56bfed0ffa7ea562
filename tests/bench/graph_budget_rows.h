// What solvers of graphs within a budget find on the reference networks at shares of plain training's
// memory, beside the proven bound.
#ifndef STOWAGE_TESTS_BENCH_GRAPH_BUDGET_ROWS_H_
#define STOWAGE_TESTS_BENCH_GRAPH_BUDGET_ROWS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/graph.h"
#include "solvers/model/units.h"
#include "solvers/schedule/schedule.h"
#include "solvers/zoo/network.h"

namespace stowage {

// Of plain training's peak.
inline constexpr double kBudgetShares[] = {0.2, 0.3, 0.5, 0.7, 0.9};

// A network as the graph of all its ops: exact bytes, modelled times.
struct BudgetNetwork {
  std::string name;
  int64_t batch;
  Graph graph;
};

// The networks that are measured, by name.
const std::vector<std::string>& BudgetNetworks();

struct NamedNetwork {
  std::string name;
  int64_t batch;
  Network network;
};

// What MakeBudgetNetwork makes the graph of. Beside networks of images: decoder_N, DecoderOptions with N layers.
absl::StatusOr<NamedNetwork> MakeNamedNetwork(const std::string& name);

// At the batch sizes of Feng & Huang 2018; "decoder_24" is MakeDecoder's default, any other name
// one of AllNetworks() at batch 16. INVALID_ARGUMENT: unknown name.
absl::StatusOr<BudgetNetwork> MakeBudgetNetwork(const std::string& name);

// Training with the checkpoints of Feng & Huang 2018, Algorithm 6: what CheckpointTraining
// (solvers/graph/internal/proposals.h) does, each tensor dropped after its last use. The evaluator
// may refuse it where values are written over in place.
absl::StatusOr<Schedule> CheckpointTrainingSchedule(const Graph& graph);

struct Way {
  Bytes least_peak;  // that it finds
  Nanos cpu;         // of the whole frontier
  // Makespan over the ideal at kBudgetShares, nothing where it fits nothing.
  std::vector<std::optional<double>> slowdowns;
};

struct BudgetRow {
  std::string name;
  int64_t batch;
  int vertices;
  Nanos ideal;
  Bytes store_all;
  Bytes peak_lower_bound;      // of one op alone: proven
  Way chain;                   // the chain solver that suits the length, on the linearised graph
  Way checkpoints;             // training with the checkpoints of Feng & Huang 2018, Algorithm 6
  Way search;                  // OrderSearchSolver
  std::vector<double> bounds;  // proven, over the ideal, at kBudgetShares
};

absl::StatusOr<BudgetRow> ComputeBudgetRow(const BudgetNetwork& network);

// Two tables: slowdowns, then least peaks and CPU times.
std::string BudgetMarkdown(const std::vector<BudgetRow>& rows);
// A line per network and share.
std::string BudgetCsv(const std::vector<BudgetRow>& rows);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_GRAPH_BUDGET_ROWS_H_
