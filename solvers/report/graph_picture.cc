#include "solvers/report/graph_picture.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "solvers/drawing/graph_drawing.h"
#include "solvers/graph/checkpoint_graph.h"
#include "solvers/graph/checkpoint_set.h"

namespace stowage {
namespace {

// Vertices of which no member runs forward twice, and those that every set must have.
std::vector<int> KeptOf(const CheckpointProblem& problem, const DrawnPlan& plan) {
  std::vector<int> kept;
  for (int v = 0; v < problem.graph.size(); ++v) {
    const std::vector<int>& members = problem.members[static_cast<size_t>(v)];
    const bool recomputed = std::any_of(members.begin(), members.end(), [&plan](int p) {
      return plan.stages[static_cast<size_t>(p) + 1].forwards > 1;
    });
    const bool end = v == problem.graph.source() || v == problem.graph.target();
    if (!recomputed || end || problem.graph.must_keep(v)) kept.push_back(v);
  }
  return kept;
}

}  // namespace

absl::StatusOr<std::string> GraphPicture(const Graph& graph, const DrawnPlan& plan,
                                         GraphPictureForm form) {
  const absl::StatusOr<CheckpointProblem> problem = MakeCheckpointProblem(graph);
  if (!problem.ok()) return problem.status();
  GraphDrawing drawing;
  drawing.title = absl::StrCat(graph.name(), ", ", plan.label);
  drawing.labels = LabelsOf(graph, *problem);
  drawing.rule = SegmentRule::kSeveralEndPoints;
  drawing.checkpoints = KeptOf(*problem, plan);
  if (!JudgeCheckpoints(problem->graph, drawing.checkpoints, drawing.rule).ok()) {
    drawing.checkpoints.clear();
  }
  return form == GraphPictureForm::kSvg ? DrawSvg(problem->graph, drawing)
                                        : DrawDot(problem->graph, drawing);
}

}  // namespace stowage
