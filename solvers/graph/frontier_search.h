// Searches the sets of checkpoints with several end points along a topological order, all partial
// choices at a time: one layer of states (frontier_state.h) per vertex, dominated ones dropped, and
// those that cannot lead to a better set than is known. Exact as long as no layer has to be cut to
// the width asked for; a beam search where they have to.
#ifndef STOWAGE_SOLVERS_GRAPH_FRONTIER_SEARCH_H_
#define STOWAGE_SOLVERS_GRAPH_FRONTIER_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/graph/checkpoint_graph.h"
#include "solvers/graph/frontier_order.h"
#include "solvers/graph/path_bound.h"
#include "solvers/solver.h"

namespace stowage {

struct FrontierSearchLimits {
  int64_t above =
      0;  // only sets with a larger largest segment are looked for (others may be found)
  int64_t limit = 0;        // none with a larger one
  int64_t known = 0;        // only sets of a smaller objective
  size_t width = 1;         // states per layer
  double segment_rate = 0;  // of open bytes, in checkpoint bytes: what a cut layer goes by
  int64_t work = 0;         // states to look at before the search ends without result
};

struct FrontierSearchResult {
  std::vector<int> checkpoints;  // rising; empty: none found
  int64_t objective = 0;         // theirs
  bool complete = false;         // nothing was cut: no better one is there
  int64_t work = 0;              // states looked at
};

// Thread-safe. The graph must outlive it.
class FrontierSearch {
 public:
  FrontierSearch(const CheckpointGraph& graph, const PathBound& bound, FrontierOrder order);

  // O(V + work) steps of up to 64 operations, as many as segments may be open, and where ops need
  // their inputs of up to so many more for each input; 8 bytes of memory per vertex and state of the
  // width. Fails as the token says.
  absl::StatusOr<FrontierSearchResult> Run(const FrontierSearchLimits& limits,
                                           StopPoll* poll) const;

 private:
  const CheckpointGraph& graph_;
  const PathBound& bound_;
  const FrontierOrder order_;
  std::vector<size_t> path_from_;   // at [i]: where the path goes on from step i
  std::vector<int64_t> kept_from_;  // at [i]: bytes off the path that must be kept, from step i
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_FRONTIER_SEARCH_H_
