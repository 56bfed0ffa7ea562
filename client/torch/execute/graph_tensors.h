// HeldTensors by the accounting of graphs: one tensor for each memory, and what nodes save beyond inputs and output.
#ifndef STOWAGE_CLIENT_TORCH_EXECUTE_GRAPH_TENSORS_H_
#define STOWAGE_CLIENT_TORCH_EXECUTE_GRAPH_TENSORS_H_

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/torch/execute/held_tensors.h"
#include "client/torch/offload/host_copies.h"
#include "client/torch/offload/shared_data.h"
#include "solvers/model/graph.h"
#include "solvers/schedule/schedule.h"

namespace stowage {

// Not thread-safe.
class GraphTensors : public HeldTensors {
 public:
  // The graph must outlive the object.
  GraphTensors(const Graph* graph, ExecutionDevice* device);
  ~GraphTensors() override { Release().IgnoreError(); }

  const at::Tensor& Value(int v) const override { return vertex(v).value; }

  at::Tensor Share(int v) override { return vertex(graph_.storage(v)).data.Share(vertex(v).value); }
  void PutSource(int v, const at::Tensor& tensor) override;
  void PutOutput(int v, const at::Tensor& output, bool saves) override;
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
    at::Tensor value;  // metadata, and the storage at which the bytes are
    SharedData data;   // of a vertex that owns its storage
    std::vector<StoragePtr> extras;
  };

  VertexState& vertex(int v) { return vertices_[static_cast<size_t>(v)]; }
  const VertexState& vertex(int v) const { return vertices_[static_cast<size_t>(v)]; }
  void Discard(TensorKind tensor, int v);
  void Transfer(const Instruction& i);

  const Graph& graph_;
  HostCopies copies_;
  std::vector<VertexState> vertices_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_EXECUTE_GRAPH_TENSORS_H_
