// Compute orders to start a search from. Internal to solvers/graph/budget.
#ifndef STOWAGE_SOLVERS_GRAPH_BUDGET_PROPOSALS_H_
#define STOWAGE_SOLVERS_GRAPH_BUDGET_PROPOSALS_H_

#include <vector>

#include "solvers/graph/budget/compute_order.h"
#include "solvers/graph/budget/op_graph.h"

namespace stowage {

// One output of the graph after the other, the last one first if `last_first`: what it needs runs
// forward, then everything runs backward that can. With one output it is plain training. Ops whose
// first runs keep their order do. O(V + E).
ComputeOrder OutputByOutputOrder(const OpGraph& graph, bool last_first);

// What training with checkpoints does: everything runs forward, checkpoints stay. Backward goes from
// segment to segment, and before it comes to one, or to a checkpoint whose backward reads it, the
// segment runs forward again. `segment_of[v]` is v's segment, or negative for a checkpoint; the
// graph of checkpoints and segments must have no cycle. Backward comes to the last segment first: if
// `last_stays`, that one runs forward once, and all that it makes is held. O((V + E) log V).
ComputeOrder CheckpointOrder(const OpGraph& graph, const std::vector<int>& segment_of,
                             bool last_stays = false);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_BUDGET_PROPOSALS_H_
