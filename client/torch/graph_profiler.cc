#include "client/torch/graph_profiler.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/torch/gradients_aside.h"
#include "client/torch/graph_profile_pass.h"
#include "client/torch/median.h"
#include "client/torch/torch_status.h"
#include "client/torch/tracking_allocator.h"

namespace stowage {
namespace {

using Passes = std::vector<std::vector<NodeSample>>;

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
  if (options.warmup < 0 || options.repeats < 1) {
    return absl::InvalidArgumentError(absl::StrCat("warmup must be >= 0 and repeats >= 1, not ",
                                                   options.warmup, " and ", options.repeats));
  }
  return absl::OkStatus();
}

absl::StatusOr<Passes> RunPasses(const GraphModel& model, const std::vector<at::Tensor>& inputs,
                                 const at::Tensor& target, MemoryMeter* meter,
                                 const ProfileOptions& options) {
  const int counted = options.bytes_only ? 1 : options.repeats;
  const double total = 2.0 * model.size() * (options.warmup + counted);
  int done = 0;
  const std::function<void()> node_done = [&] {
    ++done;
    if (options.progress) options.progress(done / total);
  };
  Passes passes;
  for (int i = 0; i < options.warmup + counted; ++i) {
    auto pass = RunGraphProfilePass(model, inputs, target, meter, node_done);
    if (!pass.ok()) return pass.status();
    if (i >= options.warmup) passes.push_back(*std::move(pass));
  }
  return passes;
}

bool SameBytes(const NodeSample& a, const NodeSample& b) {
  return a.output == b.output && a.extra_saved == b.extra_saved && a.alias == b.alias &&
         a.needs_inputs == b.needs_inputs && a.needs_output == b.needs_output;
}

void TakeBytes(const NodeSample& sample, Vertex* vertex) {
  vertex->output = sample.output;
  vertex->output_gradient = sample.output_gradient;
  vertex->extra_saved = sample.extra_saved;
  vertex->backward_needs_output = sample.needs_output;
  vertex->alias = sample.alias;
  for (size_t i = 0; i < sample.needs_inputs.size(); ++i) {
    vertex->inputs[i].backward_needs = sample.needs_inputs[i];
  }
}

// What may differ from pass to pass: the most of it.
void TakeMost(const NodeSample& sample, Vertex* vertex) {
  vertex->forward_saving_overhead =
      std::max(vertex->forward_saving_overhead, sample.forward_saving_overhead);
  vertex->forward_overhead = std::max(vertex->forward_overhead, sample.forward_overhead);
  vertex->backward_overhead = std::max(vertex->backward_overhead, sample.backward_overhead);
  vertex->random |= sample.random;
  vertex->stateful |= sample.stateful;
}

Vertex VertexOf(const GraphModel& model, int v) {
  const ModelNode& node = model.node(v);
  Vertex vertex;
  vertex.id = vertex.program_order = v;
  vertex.name = node.name;
  vertex.op_kind = node.op_kind;
  for (const int input : node.inputs) vertex.inputs.push_back({input, false});
  vertex.random = node.random;
  vertex.stateful = node.stateful;
  return vertex;
}

// The passes' samples of one node as a vertex.
absl::StatusOr<Vertex> Combine(const GraphModel& model, int v, const Passes& passes,
                               bool with_times) {
  Vertex vertex = VertexOf(model, v);
  const NodeSample& first = passes.front()[static_cast<size_t>(v)];
  TakeBytes(first, &vertex);
  std::vector<Nanos> forward;
  std::vector<Nanos> backward;
  for (const std::vector<NodeSample>& pass : passes) {
    const NodeSample& sample = pass[static_cast<size_t>(v)];
    if (!SameBytes(first, sample)) {
      return absl::FailedPreconditionError(
          absl::StrCat(model.Describe(v), ": its tensors change their size from run to run"));
    }
    TakeMost(sample, &vertex);
    forward.insert(forward.end(), {sample.forward_time, sample.forward_saving_time});
    backward.push_back(sample.backward_time);
  }
  if (with_times) {
    vertex.forward_time = Median(std::move(forward));
    vertex.backward_time = Median(std::move(backward));
  }
  // What it changes is nowhere listed, so a recompute could not be undone.
  const bool hidden_state = vertex.stateful && model.node(v).buffers.empty();
  vertex.must_keep = model.node(v).must_keep || hidden_state;
  return vertex;
}

absl::StatusOr<Graph> MakeGraph(const GraphModel& model, const Passes& passes, bool with_times) {
  GraphSpec spec;
  spec.name = model.name();
  for (int v = 0; v < model.size(); ++v) {
    absl::StatusOr<Vertex> vertex = Combine(model, v, passes, with_times);
    if (!vertex.ok()) return vertex.status();
    spec.vertices.push_back(*std::move(vertex));
  }
  return Graph::Create(std::move(spec));
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
    absl::StatusOr<Passes> passes = RunPasses(model, inputs, target, *meter, options);
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
