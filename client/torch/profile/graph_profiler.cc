#include "client/torch/profile/graph_profiler.h"

#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/torch/base/tensor_storage.h"
#include "client/torch/base/torch_status.h"
#include "client/torch/execute/executor.h"
#include "client/torch/execute/step_report.h"
#include "client/torch/model/model_state.h"
#include "client/torch/profile/gradients_aside.h"
#include "client/torch/profile/graph_profile_pass.h"
#include "client/torch/profile/graph_samples.h"
#include "client/torch/profile/profile_passes.h"
#include "solvers/schedule/instance.h"

namespace stowage {
namespace {

absl::Status CheckRequest(const GraphModel& model, const std::vector<at::Tensor>& inputs,
                          const ProfileOptions& options) {
  if (!model.status().ok()) return model.status();
  if (model.size() == 0) return absl::InvalidArgumentError("the model has no node");
  if (inputs.size() != model.inputs().size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "there are ", inputs.size(), " inputs, the model reads ", model.inputs().size()));
  }
  for (const at::Tensor& input : inputs) {
    if (!input.defined()) return absl::InvalidArgumentError("an input is an undefined tensor");
  }
  return CheckPasses(options, inputs);
}

// That a plan would run which has memory for everything: all others are told against it.
absl::StatusOr<WholeStep> StoreAllStep(const GraphModel& model,
                                       const std::vector<at::Tensor>& inputs,
                                       const Tensors& targets, ExecutionDevice* device,
                                       const Passes<NodeSample>& passes) {
  absl::StatusOr<Graph> graph = MakeGraph(model, passes, /*with_times=*/false);
  if (!graph.ok()) return graph.status();
  Schedule schedule = StoreAllSchedule(*graph);
  absl::StatusOr<std::unique_ptr<Executor>> made =
      Executor::Create(&model, *std::move(graph), std::move(schedule), device);
  if (!made.ok()) return made.status();
  const std::shared_ptr<Executor> executor = *std::move(made);
  return WholeStep{executor->prediction().peak,
                   [&model, inputs, targets, executor]() -> absl::StatusOr<Later<Nanos>> {
                     const StateGuard restore(model.buffers(), DeviceOf(inputs));
                     const absl::StatusOr<StepReport> step = executor->Step(inputs, targets);
                     if (!step.ok()) return step.status();
                     return step->wall_time;
                   }};
}

}  // namespace

absl::StatusOr<Profile> ProfileGraph(const GraphModel& model, const std::vector<at::Tensor>& inputs,
                                     const Tensors& targets, const ProfileOptions& options) {
  absl::Status status = CheckRequest(model, inputs, options);
  if (!status.ok()) return status;
  const absl::StatusOr<ProfileMeters> meters = MakeProfileMeters(options);
  if (!meters.ok()) return meters.status();
  try {
    const UnusedMemory unused(options.device);
    status = CheckGradientRoom(model, options.device);
    if (!status.ok()) return status;
    const GradientsAside aside(model);
    model.EnsureGradients();
    CostMeter costs(meters->memory, meters->timer.get(), meters->granularity, DeviceOf(inputs));
    WholeSteps steps = MakeWholeSteps(options, inputs);
    absl::StatusOr<Passes<NodeSample>> passes = RunPasses<NodeSample>(
        options, 2 * model.size(),
        [&](bool watch, const std::function<void()>& node_done) {
          return RunGraphProfilePass(model, inputs, targets, &costs, watch, node_done);
        },
        [&](const Passes<NodeSample>& made) {
          return StoreAllStep(model, inputs, targets, options.device, made);
        },
        &steps);
    if (!passes.ok()) return passes.status();
    FinishTimes(options, steps, 0, &*passes);
    absl::StatusOr<Graph> graph = MakeGraph(model, *passes, !options.bytes_only);
    if (!graph.ok()) return graph.status();
    absl::StatusOr<Device> device = ProfiledDevice(options);
    if (!device.ok()) return device.status();
    return Profile{model.name(), *std::move(device), *std::move(graph),
                   options.bytes_only ? CostSource::kBytesOnly : CostSource::kMeasured};
  } catch (...) {
    return CurrentExceptionToStatus("profiling", absl::StatusCode::kInternal);
  }
}

}  // namespace stowage
