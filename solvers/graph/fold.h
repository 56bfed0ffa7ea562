// Folds views and in-place results into the tensor they live in, so that solvers see tensors that
// each have bytes of their own.
//
// algorithms.md says what a folded vertex runs, and what cannot be folded.
#ifndef STOWAGE_SOLVERS_GRAPH_FOLD_H_
#define STOWAGE_SOLVERS_GRAPH_FOLD_H_

#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/graph.h"
#include "solvers/schedule/schedule.h"

namespace stowage {

struct FoldedGraph {
  Graph graph;  // without aliases; ids are positions
  // Positions in the original's program order of the vertices that each one runs, rising.
  std::vector<std::vector<int>> members;
};

// O(V log V + E). Sizes and times are sums over the members; overheads are what the members have at
// most at once beyond those sums (never less than the truth).
absl::StatusOr<FoldedGraph> FoldAliases(const Graph& graph);

// Forwards and backwards of the folded graph as those of the original, all on the compute stream;
// discards are left out (solvers/schedule/graph_liveness.h puts them in). First runs that follow each other run in the
// original's program order, so that random and stateful ops keep theirs even where a member stands
// far before the write that its group waits for (a residual block adds in place, after the other
// branch has run). Such a tensor is then held longer than the folded graph knows: only the original
// graph's evaluator has the last word. O(result log result).
Schedule UnfoldCompute(const FoldedGraph& folded, const Schedule& schedule);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_FOLD_H_
