// What every registered checkpoint solver finds on the networks of Feng & Huang 2018.
#ifndef STOWAGE_TESTS_BENCH_CHECKPOINT_ROWS_H_
#define STOWAGE_TESTS_BENCH_CHECKPOINT_ROWS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/graph/checkpoint_graph.h"
#include "solvers/graph/checkpoint_solver.h"
#include "tests/solvers/paper_graphs.h"

namespace stowage {

struct SolverResult {
  const CheckpointSolver* solver = nullptr;
  absl::StatusOr<CheckpointAnswer> answer;
  Nanos cpu;  // of one solve; the median of five where it is short
};

struct CheckpointRow {
  PaperGraph paper_graph;
  std::vector<std::string> labels;  // by vertex
  CheckpointGraph graph;
  std::vector<SolverResult> results;  // in the order of the registry
};

// Solvers that are not for this graph have their error for an answer. Errors: those of
// MakePaperGraph.
absl::StatusOr<CheckpointRow> ComputeCheckpointRow(const PaperGraph& paper_graph);

// By the solver's name; null where it has no answer or does not exist.
const SolverResult* ResultOf(const CheckpointRow& row, const std::string& solver);

// What part of store-all's bytes the answer needs: the papers' "theoretical" ratio.
double RatioOf(const CheckpointRow& row, const SolverResult& result);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_CHECKPOINT_ROWS_H_
