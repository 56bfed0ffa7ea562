// What the solvers whose segments have two end points share.
#ifndef STOWAGE_SOLVERS_GRAPH_TWO_END_POINTS_SOLVER_H_
#define STOWAGE_SOLVERS_GRAPH_TWO_END_POINTS_SOLVER_H_

#include "absl/status/statusor.h"
#include "solvers/graph/checkpoint_solver.h"

namespace stowage {

class TwoEndPointsSolver : public CheckpointSolver {
 public:
  SegmentRule rule() const final { return SegmentRule::kTwoEndPoints; }

  absl::StatusOr<CheckpointAnswer> Solve(const CheckpointGraph& graph,
                                         const SolveOptions& options) const final {
    const absl::Status valid = ValidateSolveOptions(options);
    if (!valid.ok()) return valid;
    StopPoll poll(options.stop);
    return Find(graph, options, &poll);
  }

 protected:
  // Of valid options, whose stop token `poll` checks.
  virtual absl::StatusOr<CheckpointAnswer> Find(const CheckpointGraph& graph,
                                                const SolveOptions& options,
                                                StopPoll* poll) const = 0;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_TWO_END_POINTS_SOLVER_H_
