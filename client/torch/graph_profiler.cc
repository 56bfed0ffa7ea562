#include "client/torch/graph_profiler.h"

#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/torch/gradients_aside.h"
#include "client/torch/graph_profile_pass.h"
#include "client/torch/graph_samples.h"
#include "client/torch/profile_passes.h"
#include "client/torch/torch_status.h"
#include "client/torch/tracking_allocator.h"

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
  return CheckPasses(options);
}

}  // namespace

absl::StatusOr<Profile> ProfileGraph(const GraphModel& model, const std::vector<at::Tensor>& inputs,
                                     const at::Tensor& target, const ProfileOptions& options) {
  absl::Status status = CheckRequest(model, inputs, options);
  if (!status.ok()) return status;
  absl::StatusOr<MemoryMeter*> meter = MeterOrInstalled(options.meter);
  if (!meter.ok()) return meter.status();
  try {
    const GradientsAside aside(model);
    model.EnsureGradients();
    const absl::StatusOr<Passes<NodeSample>> passes = RunPasses<NodeSample>(
        options, 2 * model.size(), [&](const std::function<void()>& node_done) {
          return RunGraphProfilePass(model, inputs, target, *meter, node_done);
        });
    if (!passes.ok()) return passes.status();
    absl::StatusOr<Graph> graph = MakeGraph(model, *passes, !options.bytes_only);
    if (!graph.ok()) return graph.status();
    return Profile{model.name(), DescribeDevice(), *std::move(graph),
                   options.bytes_only ? CostSource::kBytesOnly : CostSource::kMeasured};
  } catch (...) {
    return CurrentExceptionToStatus("profiling", absl::StatusCode::kInternal);
  }
}

}  // namespace stowage
