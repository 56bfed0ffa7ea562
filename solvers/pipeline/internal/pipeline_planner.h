// The searches behind PlanPipeline. Internal to solvers/pipeline.
#ifndef STOWAGE_SOLVERS_PIPELINE_INTERNAL_PIPELINE_PLANNER_H_
#define STOWAGE_SOLVERS_PIPELINE_INTERNAL_PIPELINE_PLANNER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "solvers/base/stop_token.h"
#include "solvers/pipeline/internal/stage_costs.h"
#include "solvers/pipeline/internal/stage_points.h"
#include "solvers/pipeline/pipeline.h"
#include "solvers/solver.h"

namespace stowage {

// Of one search: tasks replayed, and choices looked at on one device or of stages.
inline constexpr int64_t kReplayedTasks = 20000000;
inline constexpr int64_t kChoices = 50000;

inline constexpr char kPipelineClass[] = "memory-persistent schedules of each stage";
inline constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

// A choice of a point for each stage, and what comes of it.
struct ChosenPoints {
  std::vector<int> last_layers;
  std::vector<StagePoint> points;  // by stage
  int64_t makespan = kNone;        // kNone: nothing fits
  bool complete = true;            // no other choice of points is faster
};

// Points of a device's chunks that fit its budget together.
using DevicePoints = std::vector<StagePoint>;

class PipelinePlanner {
 public:
  PipelinePlanner(const PipelineRequest& request, const PipelineEvaluator& pipeline,
                  StageCosts* costs, const SolveContext& context);

  absl::StatusOr<PipelinePlan> GivenStages();
  absl::StatusOr<PipelinePlan> ChosenStages();

 private:
  // What is left on a device, no other choice being faster in each chunk.
  struct Pareto {
    std::vector<DevicePoints> points;
    bool complete = true;
  };
  struct Fastest {
    int64_t overhead;
    StagePoint point;
  };

  static size_t At(int i) { return static_cast<size_t>(i); }
  int64_t Budget(int device) const { return request_.budgets[At(device)].value(); }
  static int First(const std::vector<int>& last_layers, int stage) {
    return stage == 0 ? 1 : last_layers[At(stage) - 1] + 1;
  }

  // pipeline_planner.cc
  // Of what is kept for later. RESOURCE_EXHAUSTED beyond its share of the memory.
  absl::Status Take(size_t bytes);
  absl::StatusOr<int64_t> Replay(const std::vector<int>& last_layers,
                                 const std::vector<StagePoint>& points);
  // What the device of one stage must have for it, and the point.
  absl::StatusOr<int64_t> LeastOf(int stage, int first, int last, StagePoint* point = nullptr);
  // The least overhead of a device's only stage within its budget; kNone if nothing fits.
  absl::StatusOr<int64_t> OverheadOf(int stage, int first, int last, StagePoint* point = nullptr);
  absl::StatusOr<PipelinePlan> Finish(const ChosenPoints& chosen, StageGoal goal);
  // What the devices of these stages must have. kFound where the points for time had left out what fits.
  absl::StatusOr<PipelinePlan> Infeasible(const std::vector<int>& last_layers);

  // device_points.cc
  // The peak of a device whose chunks have these points.
  int64_t PeakOf(int device, const DevicePoints& points);
  // The points of each of a device's chunks, and the least of each of their numbers.
  absl::Status LoadChunks(StageGoal goal, int device, const std::vector<int>& last_layers,
                          std::vector<std::vector<StagePoint>>* chunks, DevicePoints* least);
  absl::StatusOr<int64_t> LeastOfDevice(int device, const std::vector<int>& last_layers,
                                        DevicePoints* points, bool* complete);
  absl::StatusOr<const Pareto*> PointsOfDevice(int device, const std::vector<int>& last_layers);
  absl::StatusOr<ChosenPoints> Choose(const std::vector<int>& last_layers);
  absl::Status Combine(const std::vector<const Pareto*>& devices, ChosenPoints* chosen);

  // stage_choice.cc
  int64_t BoundOf(int device, int first, int last, int64_t overhead) const;
  absl::Status FillBounds(int64_t limit);
  absl::StatusOr<int64_t> PlainBound();
  std::vector<int> ByBounds() const;
  absl::Status Improve(ChosenPoints* best);
  absl::Status Branch(int device, int64_t extra, std::vector<int>* last_layers,
                      std::vector<StagePoint>* points, ChosenPoints* best);
  absl::Status ForEachChoice(const std::function<absl::Status(const std::vector<int>&)>& visit,
                             bool* all) const;
  absl::StatusOr<PipelinePlan> ChosenOneStageEach();
  absl::StatusOr<PipelinePlan> ChosenInterleaved();
  absl::StatusOr<PipelinePlan> NoStagesFit();
  absl::StatusOr<std::vector<int>> EvenStages();

  const PipelineRequest& request_;
  const PipelineShape shape_;
  const PipelineEvaluator& pipeline_;
  StageCosts& costs_;
  const SolveContext context_;
  StopPoll poll_;
  int64_t replayed_ = 0;
  int64_t taken_ = 0;
  int64_t choices_ = 0;                      // of stages
  std::vector<PipelineStageCosts> scratch_;  // by stage
  // By device and where its chunks begin and end.
  std::map<std::vector<int>, Pareto> pareto_;
  // bounds_[d][i]: no choice of the stages d.. that begin with layer i has a device below it; kNone: nothing fits.
  std::vector<std::vector<int64_t>> bounds_;
  std::vector<std::unordered_map<int, Fastest>>
      fastest_;  // by stage, of layers first * 2048 + last
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PIPELINE_INTERNAL_PIPELINE_PLANNER_H_
