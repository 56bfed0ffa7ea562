// A lower bound of the checkpoint objective from one directed path of the graph.
//
// Whatever set R is allowed, its part on the path costs no more, and each run of the path without
// checkpoints is connected, hence lies in one segment: the path alone, as a linear graph, has no
// larger objective under R. What must be kept off the path is paid as well. So the least objective
// of the path (Feng & Huang 2018, Algorithm 1) bounds every rule of checkpoint_set.h, and the least
// checkpoints of a rest of the path under a limit of the segments bound those of a partial solution.
//
// The path is the heaviest. Immutable, hence thread-safe.
#ifndef STOWAGE_SOLVERS_GRAPH_PATH_BOUND_H_
#define STOWAGE_SOLVERS_GRAPH_PATH_BOUND_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/graph/checkpoint_graph.h"
#include "solvers/solver.h"

namespace stowage {

class PathBound {
 public:
  // O(V + E). Fails as the token says.
  static absl::StatusOr<PathBound> Create(const CheckpointGraph& graph, StopPoll* poll);

  const std::vector<int>& path() const { return path_; }

  // At [i]: the least bytes of checkpoints among path()[i..] with no run over the limit, whatever is
  // kept before; 0 at [path().size()]. O(length).
  std::vector<int64_t> LeastCheckpoints(int64_t limit) const;

  // No allowed set has a smaller objective. Narrows intervals of limits until the bound is within a
  // thousandth of the path's optimum, or after 256 steps: O(256 length). Fails as the token says.
  absl::StatusOr<int64_t> LeastObjective(StopPoll* poll) const;

  // Bytes of the checkpoints off the path that every set has.
  int64_t kept_off_path() const { return kept_off_path_; }

 private:
  PathBound() = default;

  std::vector<int> path_;
  std::vector<int64_t> bytes_;   // along the path
  std::vector<bool> must_keep_;  // along the path, its ends included
  int64_t kept_off_path_ = 0;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_PATH_BOUND_H_
