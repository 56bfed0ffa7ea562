#include "client/torch/graph_tensors.h"

#include <utility>

#include "client/torch/torch_status.h"

namespace stowage {

GraphTensors::GraphTensors(const Graph* graph)
    : graph_(*graph), vertices_(static_cast<size_t>(graph->size())) {}

std::vector<at::Tensor> GraphTensors::Inputs(int v) const {
  std::vector<at::Tensor> inputs;
  for (const GraphInput& input : graph_.vertex(v).inputs) {
    inputs.push_back(Value(static_cast<int>(input.vertex)));
  }
  return inputs;
}

void GraphTensors::PutSource(int v, at::Tensor tensor) {
  vertex(v).value = vertex(v).data.Borrow(std::move(tensor));
}

// Where the graph says that v lives in the memory of its first input, the bytes are there already.
void GraphTensors::Keep(int v, const at::Tensor& output) {
  VertexState& kept = vertex(v);
  const bool owns = graph_.storage(v) == v;
  const int first = static_cast<int>(graph_.vertex(v).inputs.front().vertex);
  if (owns == (StorageOf(output) == StorageOf(Value(first)))) {
    throw StageRuleError(owns ? "its output is a view of its input, which the plan does not know"
                              : "its output is no view of its input, as the plan has it");
  }
  if (owns && kept.data.held()) {
    kept.data.Join(output);
  } else if (owns) {
    kept.data.Own(output);
  }
  kept.value = output.variable_data();
}

void GraphTensors::PutPlain(int v, const at::Tensor& output) { Keep(v, output); }

void GraphTensors::PutSaved(int v, SavedNode saved) {
  Keep(v, saved.output);
  vertex(v).saved = std::move(saved);
}

}  // namespace stowage
