// Feng & Huang 2018, algorithm 1, for graphs that are one path.
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "solvers/graph/checkpoint_solvers.h"

namespace stowage {
namespace {

// On a path, the division tree is one Linear node.
class LinearGraphCheckpoints : public CheckpointSolver {
 public:
  const SolverInfo& info() const override {
    static const auto* const kInfo = new SolverInfo{
        "linear", "least memory of a graph that is one path (Feng & Huang 2018, algorithm 1)",
        "all sets of the path's tensors"};
    return *kInfo;
  }
  SegmentRule rule() const override { return SegmentRule::kTwoEndPoints; }

  absl::StatusOr<CheckpointAnswer> Solve(const CheckpointGraph& graph,
                                         const SolveOptions& options) const override {
    for (int v = 0; v < graph.size(); ++v) {
      if (graph.inputs(v).size() > 1) {
        return absl::FailedPreconditionError(
            absl::StrCat("linear is for graphs that are one path; vertex ", v, " has ",
                         graph.inputs(v).size(), " inputs"));
      }
    }
    return DivisionTreeSolver().Solve(graph, options);
  }
};

}  // namespace

const CheckpointSolver& LinearCheckpointSolver() {
  static const auto* const kSolver = new LinearGraphCheckpoints;
  return *kSolver;
}

}  // namespace stowage
