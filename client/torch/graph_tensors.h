// What an executor of graphs holds at one moment: tensors, what graphs saved, and gradients, with the
// ownership that the referee accounts (solvers/plan/graph_simulate.h).
//
// The caller keeps to a schedule that the referee accepted; nothing is checked twice. Not
// thread-safe.
#ifndef STOWAGE_CLIENT_TORCH_GRAPH_TENSORS_H_
#define STOWAGE_CLIENT_TORCH_GRAPH_TENSORS_H_

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "client/torch/node_runner.h"
#include "client/torch/shared_data.h"
#include "solvers/model/graph.h"

namespace stowage {

class GraphTensors {
 public:
  // The graph must outlive the object.
  explicit GraphTensors(const Graph* graph);

  // The plain tensors that v reads.
  std::vector<at::Tensor> Inputs(int v) const;
  const at::Tensor& Value(int v) const { return vertex(v).value; }

  // The tensor of a source.
  void PutSource(int v, at::Tensor tensor);
  // What a forward of v made. Throws StageRuleError where it is a view and the graph says it is not,
  // or the other way round.
  void PutPlain(int v, const at::Tensor& output);
  void PutSaved(int v, SavedNode saved);

  // For the backward of v.
  SavedNode TakeSaved(int v) { return std::move(vertex(v).saved); }
  // What readers have given to v so far; then there is none.
  at::Tensor TakeGradient(int v) { return std::move(vertex(v).gradient); }
  void PutGradient(int v, at::Tensor gradient) { vertex(v).gradient = std::move(gradient); }

  void DropTensor(int v) { vertex(v).data.Free(); }
  void DropSaved(int v) { vertex(v).saved = {}; }

 private:
  struct VertexState {
    at::Tensor value;  // metadata, and the storage at which the bytes are
    SharedData data;   // of a vertex that owns its storage
    SavedNode saved;
    at::Tensor gradient;  // as far as it is known
  };

  VertexState& vertex(int v) { return vertices_[static_cast<size_t>(v)]; }
  const VertexState& vertex(int v) const { return vertices_[static_cast<size_t>(v)]; }
  void Keep(int v, const at::Tensor& output);

  const Graph& graph_;
  std::vector<VertexState> vertices_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_GRAPH_TENSORS_H_
