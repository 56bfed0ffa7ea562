// What a planner of a pipeline asks of its chain: times of layers, and the points of stages. Internal to
// solvers/pipeline.
#ifndef STOWAGE_SOLVERS_PIPELINE_INTERNAL_STAGE_COSTS_H_
#define STOWAGE_SOLVERS_PIPELINE_INTERNAL_STAGE_COSTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/chain/persistent_space.h"
#include "solvers/chain/persistent_steps.h"
#include "solvers/model/chain.h"
#include "solvers/pipeline/internal/stage_points.h"
#include "solvers/pipeline/pipeline.h"
#include "solvers/solver.h"

namespace stowage {

// What a device must have room for if it has room for a plan of the stage.
StageRoom RoomOf(const PipelineEvaluator& pipeline, int stage, int64_t budget);

// Everything that a search asks of a chain.
class StageCosts {
 public:
  static absl::StatusOr<std::unique_ptr<StageCosts>> Create(const Chain& chain,
                                                            const PipelineEvaluator& pipeline,
                                                            std::vector<int64_t> budgets,
                                                            const SolveContext& context);

  int layers() const { return space_.last() - 1; }
  // Of the layers first..last; with the last one the loss is counted.
  int64_t Forward(int first, int last) const { return Sum(forward_, first, last); }
  int64_t Backward(int first, int last) const { return Sum(backward_, first, last); }
  // Whether nothing was left out for being too much so far.
  bool exact(StageGoal goal) const { return PointsFor(goal).exact(); }

  // The points of a stage on a device. Valid until the next call.
  absl::StatusOr<const std::vector<StagePoint>*> Points(StageGoal goal, int stage, int first,
                                                        int last);
  absl::StatusOr<PipelineStagePlan> Build(StageGoal goal, int stage, int first, int last,
                                          const StagePoint& point) const;

 private:
  StageCosts(const Chain& chain, const PipelineEvaluator& pipeline)
      : chain_(chain), pipeline_(pipeline), space_(chain, 1) {}

  int64_t Sum(const std::vector<int64_t>& sums, int first, int last) const {
    const int end = last == layers() ? last + 1 : last;
    return sums[static_cast<size_t>(end)] - sums[static_cast<size_t>(first) - 1];
  }
  // Nothing else is in flight beside the last stage of a pipeline without interleaving.
  bool IsAlone(int stage) const {
    return pipeline_.shape().chunks == 1 && stage == pipeline_.shape().stages() - 1;
  }
  const StagePoints& PointsFor(StageGoal goal) const {
    return goal == StageGoal::kTime ? *fastest_ : *least_;
  }

  const Chain& chain_;
  const PipelineEvaluator& pipeline_;
  const PersistentSpace space_;
  std::vector<int64_t> forward_, backward_;  // sums by layer
  std::optional<PersistentSteps> steps_;
  std::optional<StagePoints> fastest_, least_;
  std::vector<StagePoint> alone_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PIPELINE_INTERNAL_STAGE_COSTS_H_
