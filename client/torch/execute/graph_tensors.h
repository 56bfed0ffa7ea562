// HeldTensors by the accounting of graphs: one tensor for each memory, and what nodes save beyond inputs and output.
#ifndef STOWAGE_CLIENT_TORCH_EXECUTE_GRAPH_TENSORS_H_
#define STOWAGE_CLIENT_TORCH_EXECUTE_GRAPH_TENSORS_H_

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/torch/execute/held_outputs.h"
#include "client/torch/execute/held_tensors.h"
#include "client/torch/offload/host_copies.h"
#include "solvers/model/graph.h"
#include "solvers/schedule/schedule.h"

namespace stowage {

// Not thread-safe.
class GraphTensors : public HeldTensors {
 public:
  // Model and graph must outlive the object.
  GraphTensors(const GraphModel* model, const Graph* graph, ExecutionDevice* device);
  ~GraphTensors() override { Release().IgnoreError(); }

  const at::Tensor& Value(NodeOutput made) const override {
    return vertex(made.node).made.value(made.index);
  }

  at::Tensor Share(NodeOutput made) override {
    const HeldOutputs& of = vertex(made.node).made;
    HeldOutputs& owner = vertex(graph_.storage(made.node)).made;
    return owner.Share(of.value(made.index), of.part(made.index));
  }
  void PutSource(int v, const std::vector<at::Tensor>& tensors) override {
    vertex(v).made.Borrow(tensors, tensors.size());
  }
  void PutOutputs(int v, const std::vector<at::Tensor>& outputs, bool saves) override;
  void PutExtras(int v, std::vector<StoragePtr> extras) override {
    vertex(v).extras = std::move(extras);
  }
  void BeginBackward(int v) override { PutExtras(v, {}); }
  void FinishBackward(int v) override { PutExtras(v, {}); }
  void Run(const Instruction& i) override;

  absl::Status Release() override;
  const HostCopies& copies() const override { return copies_; }

 private:
  struct VertexState {
    HeldOutputs made;
    std::vector<StoragePtr> extras;
  };

  VertexState& vertex(int v) { return vertices_[static_cast<size_t>(v)]; }
  const VertexState& vertex(int v) const { return vertices_[static_cast<size_t>(v)]; }
  void Discard(TensorKind tensor, int v);
  void Transfer(const Instruction& i);

  const GraphModel& model_;
  const Graph& graph_;
  HostCopies copies_;
  std::vector<VertexState> vertices_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_EXECUTE_GRAPH_TENSORS_H_
