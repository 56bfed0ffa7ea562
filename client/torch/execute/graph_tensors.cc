#include "client/torch/execute/graph_tensors.h"

#include <utility>

#include "client/torch/base/tensor_storage.h"
#include "client/torch/base/torch_status.h"

namespace stowage {

GraphTensors::GraphTensors(const Graph* graph, ExecutionDevice* device)
    : graph_(*graph), copies_(device), vertices_(static_cast<size_t>(graph->size())) {}

void GraphTensors::PutSource(int v, const at::Tensor& tensor) {
  vertex(v).value = vertex(v).data.Borrow(tensor);
}

// Where the graph says that v lives in the memory of its first input, the bytes are there already.
void GraphTensors::PutOutput(int v, const at::Tensor& output, bool /*saves*/) {
  VertexState& kept = vertex(v);
  const bool owns = graph_.storage(v) == v;
  const int first = static_cast<int>(graph_.vertex(v).inputs.front().vertex);
  if (owns == (StorageOf(output) == StorageOf(Value(first)))) {
    throw StageRuleError(owns ? "its output is a view of its input, which the plan does not know"
                              : "its output is no view of its input, as the plan has it");
  }
  if (owns && kept.data.home()) {
    kept.data.Join(output);
  } else if (owns) {
    kept.data.Own(output);
  }
  kept.value = output.variable_data();
}

void GraphTensors::Discard(TensorKind tensor, int v) {
  copies_.Discard(tensor, v + 1);
  if (tensor == TensorKind::kSaved) return vertex(v).extras.clear();
  vertex(v).data.Free();
}

void GraphTensors::Transfer(const Instruction& i) {
  VertexState& moved = vertex(i.stage - 1);
  const bool saved = i.tensor == TensorKind::kSaved;
  if (i.op == Op::kOffloadStart) {
    const bool lent = !saved && graph_.vertex(i.stage - 1).inputs.empty();
    copies_.StartOffload(i, saved ? moved.extras : std::vector<StoragePtr>{moved.data.home()},
                         lent);
    return;
  }
  copies_.Continue(i);
  if (!saved) moved.data.Follow();
}

void GraphTensors::Run(const Instruction& i) {
  i.op == Op::kDiscard ? Discard(i.tensor, i.stage - 1) : Transfer(i);
}

absl::Status GraphTensors::Release() {
  vertices_.clear();
  return copies_.ReturnLent();
}

}  // namespace stowage
