#include "solvers/graph/budget/checkpoint_training.h"

#include <cstddef>
#include <vector>

#include "solvers/graph/budget/proposals.h"
#include "solvers/graph/checkpoint_solver.h"
#include "solvers/model/index.h"

namespace stowage {
namespace {}  // namespace

absl::StatusOr<std::vector<int>> DivisionTreeSegments(const Graph& graph, const FoldedGraph& folded,
                                                      const SolveOptions& options) {
  absl::StatusOr<CheckpointProblem> problem = MakeCheckpointProblem(graph);
  if (!problem.ok()) return problem.status();
  const absl::StatusOr<CheckpointAnswer> answer =
      DivisionTreeSolver().Solve(problem->graph, options);
  if (!answer.ok()) return answer.status();
  StopPoll poll(options.stop);
  Segmentation segmentation;
  const absl::StatusOr<CheckpointSet> judged = JudgeCheckpoints(
      problem->graph, answer->set.checkpoints, SegmentRule::kTwoEndPoints, &segmentation, &poll);
  if (absl::IsInvalidArgument(judged.status())) {
    return absl::InternalError(judged.status().message());
  }
  if (!judged.ok()) return judged.status();
  std::vector<int> segment_of_position(Index(graph.size()), Segmentation::kCheckpoint);
  for (int v = 0; v < problem->graph.size(); ++v) {
    for (const int p : problem->members[Index(v)]) {
      segment_of_position[Index(p)] = segmentation.segment_of[Index(v)];
    }
  }
  std::vector<int> segment_of;
  for (const std::vector<int>& members : folded.members) {
    segment_of.push_back(segment_of_position[Index(members.back())]);
  }
  return segment_of;
}

absl::StatusOr<ComputeOrder> CheckpointTraining(const Graph& graph, const FoldedGraph& folded,
                                                const OpGraph& ops, const SolveOptions& options) {
  const absl::StatusOr<std::vector<int>> segment_of = DivisionTreeSegments(graph, folded, options);
  if (!segment_of.ok()) return segment_of.status();
  return CheckpointOrder(ops, *segment_of);
}

}  // namespace stowage
