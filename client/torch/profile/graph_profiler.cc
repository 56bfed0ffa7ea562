#include "client/torch/profile/graph_profiler.h"

#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/torch/base/tensor_storage.h"
#include "client/torch/base/torch_status.h"
#include "client/torch/execute/plain_step.h"
#include "client/torch/model/model_state.h"
#include "client/torch/profile/gradients_aside.h"
#include "client/torch/profile/graph_profile_pass.h"
#include "client/torch/profile/graph_samples.h"
#include "client/torch/profile/profile_passes.h"

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

}  // namespace

absl::StatusOr<Profile> ProfileGraph(const GraphModel& model, const std::vector<at::Tensor>& inputs,
                                     const at::Tensor& target, const ProfileOptions& options) {
  absl::Status status = CheckRequest(model, inputs, options);
  if (!status.ok()) return status;
  const absl::StatusOr<ProfileMeters> meters = MakeProfileMeters(options);
  if (!meters.ok()) return meters.status();
  try {
    const GradientsAside aside(model);
    model.EnsureGradients();
    CostMeter costs(meters->memory, meters->timer.get(), meters->granularity);
    WholeSteps steps = MakeWholeSteps(options, inputs, meters->timer.get(), [&] {
      const StateGuard restore(model.buffers(), DeviceOf(inputs));
      return PlainGraphStep(model, inputs, target, meters->memory).status();
    });
    absl::StatusOr<Passes<NodeSample>> passes = RunPasses<NodeSample>(
        options, 2 * model.size(),
        [&](bool watch, const std::function<void()>& node_done) {
          return RunGraphProfilePass(model, inputs, target, &costs, watch, node_done);
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
