#include "solvers/pipeline/internal/stage_costs.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

// Of the exact steps, some nanoseconds each. What takes longer has so many to a row.
constexpr int64_t kStepWork = 30000000;
constexpr size_t kStepsOfLongRows = 32;

}  // namespace

// What a device must have room for if it has room for a plan of the stage.
StageRoom RoomOf(const PipelineEvaluator& pipeline, int stage, int64_t budget) {
  StageRoom room;
  room.budget = budget;
  const int own = stage / pipeline.shape().devices;
  for (const PipelineEvaluator::Load& load : pipeline.OfDevice(pipeline.shape().DeviceOf(stage))) {
    const int64_t stashes = load.stashes[static_cast<size_t>(own)];
    int64_t& most = load.chunk != own ? room.at_any_time
                    : load.forward    ? room.beside_forward
                                      : room.beside_backward;
    most = std::max(most, stashes);
  }
  return room;
}

absl::StatusOr<std::unique_ptr<StageCosts>> StageCosts::Create(const Chain& chain,
                                                               const PipelineEvaluator& pipeline,
                                                               std::vector<int64_t> budgets,
                                                               const SolveContext& context) {
  std::unique_ptr<StageCosts> costs(new StageCosts(chain, pipeline));
  costs->forward_.push_back(0);
  costs->backward_.push_back(0);
  int64_t all_sizes = (chain.activation(0) + chain.gradient(0)).value();
  for (int l = 1; l <= chain.length() + 1; ++l) {
    const Stage& stage = chain.stage(l);
    costs->forward_.push_back(costs->forward_.back() + stage.forward_time.value());
    costs->backward_.push_back(costs->backward_.back() + stage.backward_time.value());
    for (const Bytes size :
         {stage.output, stage.saved, stage.output_gradient, stage.forward_saving_overhead,
          stage.forward_overhead, stage.backward_overhead}) {
      all_sizes += std::min(size.value(), kMaxTotal - all_sizes);
    }
  }
  const int64_t microbatches = pipeline.shape().microbatches;
  const int64_t times = kMaxTimeTotal / (chain.length() + 2) / 2 / microbatches;
  if (chain.ideal_time().value() >= times) {
    return FieldError("microbatches", microbatches,
                      absl::StrCat("makes times reach or exceed ", kMaxTimeTotal));
  }
  if (all_sizes >= kMaxTotal / (microbatches * pipeline.shape().chunks + 1)) {
    return FieldError("microbatches", microbatches,
                      absl::StrCat("makes sizes reach or exceed ", kMaxTotal));
  }
  // A quarter each: steps, points for time, and what the planner keeps; points for memory are few.
  const int64_t bytes = context.memory().value() / 4;
  absl::StatusOr<std::optional<PersistentSteps>> steps =
      PersistentSteps::Compute(costs->space_, all_sizes, {kStepWork, bytes}, context.Quiet());
  if (steps.ok() && !steps->has_value()) {
    steps = PersistentSteps::Compute(costs->space_, all_sizes, {kInfinity, bytes, kStepsOfLongRows},
                                     context);
  }
  if (!steps.ok()) return steps.status();
  if (!steps->has_value()) {
    return absl::ResourceExhaustedError(absl::StrCat("exact steps of ", chain.length(),
                                                     " layers take more than ", bytes, " bytes"));
  }
  costs->steps_ = **std::move(steps);
  std::vector<StageRoom> rooms;
  for (int stage = 0; stage < pipeline.shape().stages(); ++stage) {
    const int device = pipeline.shape().DeviceOf(stage);
    if (costs->IsAlone(stage) && stage > 0) continue;
    rooms.push_back(RoomOf(pipeline, stage, budgets[static_cast<size_t>(device)]));
  }
  costs->fastest_.emplace(costs->space_, *costs->steps_, StageGoal::kTime, std::move(rooms), bytes,
                          context.stop());
  StageRoom any;
  any.budget = kMaxTotal;
  costs->least_.emplace(costs->space_, *costs->steps_, StageGoal::kMemory,
                        std::vector<StageRoom>{any}, bytes / 2, context.stop());
  return costs;
}

absl::StatusOr<const std::vector<StagePoint>*> StageCosts::Points(StageGoal goal, int stage,
                                                                  int first, int last) {
  if (IsAlone(stage)) {
    alone_ = fastest_->OfLastAlone(first);
    return &alone_;
  }
  const bool with_loss = last == layers() && stage == pipeline_.shape().stages() - 1;
  return (goal == StageGoal::kTime ? fastest_ : least_)->Of(first, last, with_loss);
}

absl::StatusOr<PipelineStagePlan> StageCosts::Build(StageGoal goal, int stage, int first, int last,
                                                    const StagePoint& point) const {
  const bool is_last = stage == pipeline_.shape().stages() - 1;
  const StagePoints& points = PointsFor(goal);
  StagePoints::Built built = IsAlone(stage) ? points.BuildLastAlone(first, point)
                                            : points.Build(first, last, is_last, point);
  const absl::StatusOr<Chain> stage_chain = PipelineStageChain(chain_, first, last);
  if (!stage_chain.ok()) return stage_chain.status();
  const absl::StatusOr<PipelineStageCosts> costs =
      ReplayPipelineStage(*stage_chain, is_last, built.schedule, built.forward_instructions);
  if (!costs.ok()) {
    return absl::InternalError(absl::StrCat("stage ", stage, ": ", costs.status().message()));
  }
  return PipelineStagePlan{first, last, std::move(built.schedule), built.forward_instructions,
                           *costs};
}

}  // namespace stowage
