#include "client/torch/execute/graph_tensors.h"

#include <utility>

#include "client/torch/base/tensor_storage.h"
#include "client/torch/base/torch_status.h"

namespace stowage {

GraphTensors::GraphTensors(const GraphModel* model, const Graph* graph, ExecutionDevice* device)
    : model_(*model),
      graph_(*graph),
      copies_(device),
      vertices_(static_cast<size_t>(graph->size())) {}

// Where the graph says that v lives in the memory of its first input, the bytes are there already.
void GraphTensors::PutOutputs(int v, const std::vector<at::Tensor>& outputs, bool /*saves*/) {
  HeldOutputs& made = vertex(v).made;
  const bool owns = graph_.storage(v) == v;
  const NodeOutput first = model_.node(v).inputs.front();
  for (const at::Tensor& output : outputs) {
    if (!output.defined() || owns != (StorageOf(output) == StorageOf(Value(first)))) continue;
    throw StageRuleError(owns ? "its output is a view of its input, which the plan does not know"
                              : "its output is no view of its input, as the plan has it");
  }
  if (!owns) {
    made.LiveIn(vertex(first.node).made, first.index, outputs);
  } else if (made.IsHeld()) {
    made.Join(outputs);
  } else {
    made.Own(outputs);
  }
}

void GraphTensors::Discard(TensorKind tensor, int v) {
  copies_.Discard(tensor, v + 1);
  if (tensor == TensorKind::kSaved) return vertex(v).extras.clear();
  vertex(v).made.Free();
}

void GraphTensors::Transfer(const Instruction& i) {
  VertexState& moved = vertex(i.stage - 1);
  const bool saved = i.tensor == TensorKind::kSaved;
  if (i.op == Op::kOffloadStart) {
    const bool lent = !saved && graph_.vertex(i.stage - 1).inputs.empty();
    copies_.StartOffload(i, saved ? moved.extras : moved.made.Homes(), lent);
    return;
  }
  copies_.Continue(i);
  if (!saved) moved.made.Follow();
}

void GraphTensors::Run(const Instruction& i) {
  i.op == Op::kDiscard ? Discard(i.tensor, i.stage - 1) : Transfer(i);
}

// As of chains, storages stay known.
absl::Status GraphTensors::Release() {
  for (VertexState& held : vertices_) {
    held.extras.clear();
    held.made.Release();
  }
  return copies_.ReturnLent();
}

}  // namespace stowage
