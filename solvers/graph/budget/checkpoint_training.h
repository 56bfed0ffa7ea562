// Training with the checkpoints of Feng & Huang 2018, Algorithm 6, as a compute order. Internal to
// solvers/graph/budget.
#ifndef STOWAGE_SOLVERS_GRAPH_BUDGET_CHECKPOINT_TRAINING_H_
#define STOWAGE_SOLVERS_GRAPH_BUDGET_CHECKPOINT_TRAINING_H_

#include <vector>

#include "absl/status/statusor.h"
#include "solvers/graph/budget/compute_order.h"
#include "solvers/graph/budget/op_graph.h"
#include "solvers/graph/fold.h"
#include "solvers/model/graph.h"
#include "solvers/solver.h"

namespace stowage {

// What DivisionTreeSolver makes of `graph`: the segment of each op of `folded`, the graph without its
// aliases, or Segmentation::kCheckpoint. CANCELLED, DEADLINE_EXCEEDED.
absl::StatusOr<std::vector<int>> DivisionTreeSegments(const Graph& graph, const FoldedGraph& folded,
                                                      const SolveOptions& options);

// Training with these segments as CheckpointOrder (proposals.h) has it. `ops` is the folded graph as
// arrays. Errors: DivisionTreeSegments.
absl::StatusOr<ComputeOrder> CheckpointTraining(const Graph& graph, const FoldedGraph& folded,
                                                const OpGraph& ops, const SolveOptions& options);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_BUDGET_CHECKPOINT_TRAINING_H_
