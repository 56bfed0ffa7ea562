#include "client/torch/profile/graph_samples.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

bool SameStructure(const NodeSample& a, const NodeSample& b) {
  return a.alias == b.alias && a.needs_inputs == b.needs_inputs && a.needs_output == b.needs_output;
}

bool HasBytes(const Vertex& vertex, const NodeSample& sample) {
  return sample.output == vertex.output && sample.extra_saved == vertex.extra_saved;
}

void TakeStructure(const NodeSample& sample, Vertex* vertex) {
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
  for (const NodeOutput input : node.inputs) vertex.inputs.push_back({input.node, false});
  vertex.random = node.random;
  vertex.stateful = node.stateful;
  return vertex;
}

// The passes' samples of one node as a vertex.
absl::StatusOr<Vertex> Combine(const GraphModel& model, int v, const Passes<NodeSample>& passes,
                               bool with_times) {
  Vertex vertex = VertexOf(model, v);
  const NodeSample& first = passes.front()[static_cast<size_t>(v)];
  TakeStructure(first, &vertex);
  for (const std::vector<NodeSample>& pass : passes) {
    const NodeSample& sample = pass[static_cast<size_t>(v)];
    if (!SameStructure(first, sample) || !HasBytes(vertex, sample)) {
      return absl::FailedPreconditionError(
          absl::StrCat(model.Describe(v), ": its tensors change their size from run to run"));
    }
    TakeMost(sample, &vertex);
  }
  if (with_times) {
    const StageTimes times = TimesOf(passes, static_cast<size_t>(v));
    vertex.forward_time = times.forward.median;
    vertex.backward_time = times.backward.median;
  }
  // What it changes is nowhere listed, so a recompute could not be undone.
  const bool hidden_state = vertex.stateful && model.node(v).buffers.empty();
  vertex.must_keep = model.node(v).must_keep || hidden_state;
  if (!vertex.must_keep) SetStoppedRecompute(passes, static_cast<size_t>(v), with_times, &vertex);
  return vertex;
}

}  // namespace

absl::StatusOr<Graph> MakeGraph(const GraphModel& model, const Passes<NodeSample>& passes,
                                bool with_times) {
  GraphSpec spec;
  spec.name = model.name();
  for (int v = 0; v < model.size(); ++v) {
    absl::StatusOr<Vertex> vertex = Combine(model, v, passes, with_times);
    if (!vertex.ok()) return vertex.status();
    spec.vertices.push_back(*std::move(vertex));
  }
  return Graph::Create(std::move(spec));
}

}  // namespace stowage
