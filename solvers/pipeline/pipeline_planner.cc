#include "solvers/pipeline/internal/pipeline_planner.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/base/without_exceptions.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

constexpr int kMostLayers = 1024;
// Of a map, beside what is in it.
constexpr size_t kBytesOfNode = 32;

}  // namespace

PipelinePlanner::PipelinePlanner(const PipelineRequest& request, const PipelineEvaluator& pipeline,
                                 StageCosts* costs, const SolveContext& context)
    : request_(request),
      shape_(pipeline.shape()),
      pipeline_(pipeline),
      costs_(*costs),
      context_(context),
      poll_(context.stop()),
      scratch_(At(shape_.stages())),
      fastest_(At(shape_.stages())) {}

absl::StatusOr<int64_t> PipelinePlanner::Replay(const std::vector<int>& last_layers,
                                                const std::vector<StagePoint>& points) {
  const int64_t tasks = 2 * int64_t{shape_.stages()} * shape_.microbatches;
  replayed_ += tasks;
  context_.Report(
      std::min(1.0, static_cast<double>(replayed_) / static_cast<double>(kReplayedTasks)));
  absl::Status status = poll_.Spend(4 * tasks);
  if (!status.ok()) return status;
  std::vector<Nanos> forward(points.size()), backward(points.size());
  for (int stage = 0; stage < shape_.stages(); ++stage) {
    const int first = First(last_layers, stage), last = last_layers[At(stage)];
    forward[At(stage)] = Nanos(costs_.Forward(first, last));
    backward[At(stage)] = Nanos(costs_.Backward(first, last) + points[At(stage)].overhead);
  }
  return pipeline_.Makespan(forward, backward).value();
}

absl::Status PipelinePlanner::Take(size_t bytes) {
  taken_ += static_cast<int64_t>(bytes);
  const int64_t most = context_.memory().value() / 4;
  if (taken_ <= most) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the choices of a pipeline take more than ", most, " bytes"));
}

absl::StatusOr<int64_t> PipelinePlanner::LeastOf(int stage, int first, int last,
                                                 StagePoint* point) {
  const absl::StatusOr<const std::vector<StagePoint>*> points =
      costs_.Points(StageGoal::kMemory, stage, first, last);
  if (!points.ok()) return points.status();
  const StageRoom room = RoomOf(pipeline_, stage, 0);
  int64_t least = kNone;
  for (const StagePoint& p : **points) {
    const int64_t need =
        std::max({room.beside_forward * p.stash + p.forward_peak,
                  room.beside_backward * p.stash + p.backward_peak, room.at_any_time * p.stash});
    if (need >= least) continue;
    least = need;
    if (point != nullptr) *point = p;
  }
  return least;
}

absl::StatusOr<int64_t> PipelinePlanner::OverheadOf(int stage, int first, int last,
                                                    StagePoint* point) {
  const int key = first * 2048 + last;
  std::unordered_map<int, Fastest>& known = fastest_[At(stage)];
  auto at = known.find(key);
  if (at == known.end()) {
    const absl::StatusOr<const std::vector<StagePoint>*> points =
        costs_.Points(StageGoal::kTime, stage, first, last);
    if (!points.ok()) return points.status();
    const StageRoom room = RoomOf(pipeline_, stage, Budget(shape_.DeviceOf(stage)));
    Fastest fastest = {kNone, {}};
    for (const StagePoint& p : **points) {
      if (!room.Has(p)) continue;
      fastest = {p.overhead, p};  // overheads rise
      break;
    }
    absl::Status status = Take(sizeof(Fastest) + kBytesOfNode);
    if (!status.ok()) return status;
    at = known.emplace(key, fastest).first;
  }
  if (point != nullptr) *point = at->second.point;
  return at->second.overhead;
}

absl::StatusOr<PipelinePlan> PipelinePlanner::Finish(const ChosenPoints& chosen, StageGoal goal) {
  PipelinePlan plan;
  plan.status = PlanStatus::kFound;
  plan.schedule_class = kPipelineClass;
  std::vector<PipelineStageCosts> costs;
  std::vector<Nanos> forward, backward;
  for (int stage = 0; stage < shape_.stages(); ++stage) {
    absl::StatusOr<PipelineStagePlan> built =
        costs_.Build(goal, stage, First(chosen.last_layers, stage), chosen.last_layers[At(stage)],
                     chosen.points[At(stage)]);
    if (!built.ok()) return built.status();
    costs.push_back(built->costs);
    forward.push_back(built->costs.forward_time);
    backward.push_back(built->costs.backward_time);
    plan.stages.push_back(*std::move(built));
  }
  plan.makespan = pipeline_.Makespan(forward, backward);
  for (int d = 0; d < shape_.devices; ++d) {
    plan.peaks.push_back(pipeline_.Peak(d, costs));
    if (plan.peaks.back() > request_.budgets[At(d)]) {
      return absl::InternalError(absl::StrCat("device ", d, " takes more than its budget"));
    }
  }
  return plan;
}

absl::StatusOr<PipelinePlan> PipelinePlanner::Infeasible(const std::vector<int>& last_layers) {
  PipelinePlan plan;
  plan.schedule_class = kPipelineClass;
  ChosenPoints least;
  least.last_layers = last_layers;
  least.points.resize(At(shape_.stages()));
  int64_t equal = 0;
  bool complete = true;
  for (int d = 0; d < shape_.devices; ++d) {
    DevicePoints points;
    const absl::StatusOr<int64_t> need = LeastOfDevice(d, last_layers, &points, &complete);
    if (!need.ok()) return need.status();
    equal = std::max(equal, *need);
    if (*need > Budget(d) && plan.short_device < 0) {
      plan.short_device = d;
      plan.least_budget = Bytes(*need);
    }
    for (int c = 0; c < shape_.chunks; ++c) {
      least.points[At(d + c * shape_.devices)] = points[At(c)];
    }
  }
  plan.least_equal_budget = Bytes(equal);
  if (plan.short_device < 0) return Finish(least, StageGoal::kMemory);
  if (complete && costs_.exact(StageGoal::kMemory)) plan.status = PlanStatus::kProvenInfeasible;
  return plan;
}

absl::StatusOr<PipelinePlan> PipelinePlanner::GivenStages() {
  const absl::StatusOr<ChosenPoints> chosen = Choose(request_.last_layers);
  if (!chosen.ok()) return chosen.status();
  absl::StatusOr<PipelinePlan> plan = chosen->makespan == kNone ? Infeasible(request_.last_layers)
                                                                : Finish(*chosen, StageGoal::kTime);
  if (!plan.ok() || plan->status != PlanStatus::kFound) return plan;
  plan->lower_bound = plan->makespan;
  if (chosen->makespan == kNone || !chosen->complete || !costs_.exact(StageGoal::kTime)) {
    const absl::StatusOr<int64_t> plain =
        Replay(request_.last_layers, std::vector<StagePoint>(At(shape_.stages())));
    if (!plain.ok()) return plain.status();
    plan->lower_bound = Nanos(*plain);
  }
  plan->proven_optimal = plan->makespan == plan->lower_bound;
  return plan;
}

namespace {

absl::Status CheckRequest(const Chain& chain, const PipelineRequest& request) {
  absl::Status status = CheckPipelineShape(request.shape);
  if (!status.ok()) return status;
  if (chain.length() > kMostLayers) {
    return FieldError("chain.stages", chain.length(),
                      absl::StrCat("must have at most ", kMostLayers, " elements"));
  }
  if (chain.length() < request.shape.stages()) {
    return FieldError("chain.stages", chain.length(),
                      absl::StrCat("must have at least as many elements as the pipeline has "
                                   "stages (",
                                   request.shape.stages(), ")"));
  }
  if (request.budgets.size() != static_cast<size_t>(request.shape.devices)) {
    return FieldError("budgets_bytes", static_cast<int64_t>(request.budgets.size()),
                      absl::StrCat("must have as many elements as there are devices (",
                                   request.shape.devices, ")"));
  }
  for (size_t d = 0; d < request.budgets.size(); ++d) {
    if (request.budgets[d] >= Bytes(0)) continue;
    return FieldError(absl::StrCat("budgets_bytes[", d, "]"), request.budgets[d].value(),
                      "must be >= 0");
  }
  const std::vector<int>& ends = request.last_layers;
  if (ends.empty()) return absl::OkStatus();
  if (ends.size() != static_cast<size_t>(request.shape.stages())) {
    return FieldError("last_layers", static_cast<int64_t>(ends.size()),
                      absl::StrCat("must have as many elements as there are stages (",
                                   request.shape.stages(), ")"));
  }
  for (size_t i = 0; i < ends.size(); ++i) {
    const int before = i == 0 ? 0 : ends[i - 1];
    if (ends[i] > before && ends[i] <= chain.length()) continue;
    return FieldError(absl::StrCat("last_layers[", i, "]"), ends[i],
                      absl::StrCat("must be in [", before + 1, ", ", chain.length(), "]"));
  }
  if (ends.back() != chain.length()) {
    return FieldError(absl::StrCat("last_layers[", ends.size() - 1, "]"), ends.back(),
                      absl::StrCat("must be the last layer (", chain.length(), ")"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PipelinePlan> PlanPipeline(const Chain& chain, const PipelineRequest& request,
                                          const SolveContext& context) {
  return WithoutExceptions([&]() -> absl::StatusOr<PipelinePlan> {
    absl::Status status = context.status();
    if (status.ok()) status = CheckRequest(chain, request);
    if (!status.ok()) return status;
    const PipelineEvaluator pipeline(request.shape);
    std::vector<int64_t> budgets;
    for (const Bytes budget : request.budgets) {
      budgets.push_back(std::min(budget.value(), kMaxTotal));
    }
    absl::StatusOr<std::unique_ptr<StageCosts>> costs =
        StageCosts::Create(chain, pipeline, std::move(budgets), context.Part(0.0, 0.5));
    if (!costs.ok()) return costs.status();
    PipelinePlanner planner(request, pipeline, costs->get(), context.Part(0.5, 1.0));
    return request.last_layers.empty() ? planner.ChosenStages() : planner.GivenStages();
  });
}

}  // namespace stowage
