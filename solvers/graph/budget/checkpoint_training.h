// Training with the checkpoints of Feng & Huang 2018, Algorithm 6, as a compute order. Internal to
// solvers/graph/budget.
#ifndef STOWAGE_SOLVERS_GRAPH_BUDGET_CHECKPOINT_TRAINING_H_
#define STOWAGE_SOLVERS_GRAPH_BUDGET_CHECKPOINT_TRAINING_H_

#include "absl/status/statusor.h"
#include "solvers/graph/budget/compute_order.h"
#include "solvers/graph/budget/op_graph.h"
#include "solvers/graph/fold.h"
#include "solvers/model/graph.h"
#include "solvers/solver.h"

namespace stowage {

// What DivisionTreeSolver keeps of `graph`, trained with as CheckpointOrder (proposals.h) does.
// `folded` is the graph without its aliases, `ops` that as arrays. CANCELLED, DEADLINE_EXCEEDED.
absl::StatusOr<ComputeOrder> CheckpointTraining(const Graph& graph, const FoldedGraph& folded,
                                                const OpGraph& ops, const SolveOptions& options);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_BUDGET_CHECKPOINT_TRAINING_H_
