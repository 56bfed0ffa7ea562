// Training with the checkpoints of Feng & Huang 2018, Algorithm 6, as a compute order.
#ifndef STOWAGE_SOLVERS_GRAPH_INTERNAL_PROPOSALS_H_
#define STOWAGE_SOLVERS_GRAPH_INTERNAL_PROPOSALS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "solvers/graph/fold.h"
#include "solvers/graph/internal/compute_order.h"
#include "solvers/model/chain.h"
#include "solvers/model/graph.h"
#include "solvers/schedule/schedule.h"
#include "solvers/solver.h"

namespace stowage {

// What DivisionTreeSolver makes of `graph`: the segment of each op of `folded`, the graph without its
// aliases, or Segmentation::kCheckpoint. CANCELLED, DEADLINE_EXCEEDED.
absl::StatusOr<std::vector<int>> DivisionTreeSegments(const Graph& graph, const FoldedGraph& folded,
                                                      const SolveContext& context);

// Training with these segments as CheckpointOrder (proposals.h) has it. `ops` is the folded graph as
// arrays. Errors: DivisionTreeSegments.
absl::StatusOr<ComputeOrder> CheckpointTraining(const Graph& graph, const FoldedGraph& folded,
                                                const OpGraph& ops, const SolveContext& context);

// Runs of the program as the stages of a chain, so that chain solvers propose compute orders for any
// graph.
//
// Unlike solvers/graph/linearize.h a cut may have several tensors crossing it (Kusumoto et al. 2019:
// the vertices before it are a lower set). Such a chain is a model and no more: a tensor that
// crosses several cuts is either an output of every stage that it crosses the end of, which is too
// much where several of them are kept, or of the one that makes it, which is too little where that
// one is not. What a schedule of it needs as a compute order of the graph is for a replay to say.
// Last vertices of the stages, rising; the last one is the last vertex. Of at most `stages` runs of
// about equal bytes, each ends where the fewest bytes cross. O(V + E).
std::vector<int> ChooseCuts(const OpGraph& graph, int stages);

enum class Crossing { kOfEveryStage, kOfItsMaker };

// O(V + E + bytes crossing all cuts). Fails only where sums of sizes overflow.
absl::StatusOr<Chain> ChainOfCuts(const OpGraph& graph, const std::vector<int>& cuts,
                                  Crossing crossing);

// The vertices of each run, in order.
std::vector<std::vector<int>> StagesOfCuts(const std::vector<int>& cuts);

// A chain's schedule with the vertices of its stages instead; those that must not be recomputed run
// once. Vertices that no stage has are the chain's input: they run first, and backward last.
ComputeOrder ExpandStages(const Schedule& schedule, const std::vector<std::vector<int>>& stages,
                          const std::vector<bool>& recomputable);

// Compute orders to start a search from.
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

#endif  // STOWAGE_SOLVERS_GRAPH_INTERNAL_PROPOSALS_H_
