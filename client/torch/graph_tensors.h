// What an executor of graphs holds at one moment: tensors, what graphs saved, and gradients, with the
// ownership that the evaluator accounts (solvers/schedule/evaluator.h).
//
// The caller keeps to a schedule that the evaluator accepted; nothing is checked twice. Transfers throw
// what HostCopies throws. Not thread-safe.
#ifndef STOWAGE_CLIENT_TORCH_GRAPH_TENSORS_H_
#define STOWAGE_CLIENT_TORCH_GRAPH_TENSORS_H_

#include <ATen/core/Tensor.h>

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/torch/host_copies.h"
#include "client/torch/node_runner.h"
#include "client/torch/shared_data.h"
#include "solvers/model/graph.h"
#include "solvers/schedule/schedule.h"

namespace stowage {

class GraphTensors {
 public:
  // The graph must outlive the object.
  GraphTensors(const Graph* graph, ExecutionDevice* device);
  GraphTensors(GraphTensors&&) = default;
  ~GraphTensors() { Release().IgnoreError(); }

  // The plain tensors that v reads.
  std::vector<at::Tensor> Inputs(int v) const;
  const at::Tensor& Value(int v) const { return vertex(v).value; }

  // The tensor of a source.
  void PutSource(int v, const at::Tensor& tensor);
  // What a forward of v made. Throws StageRuleError where it is a view and the graph says it is not,
  // or the other way round.
  void PutPlain(int v, const at::Tensor& output);
  // `extras`: what of it can go to the host.
  void PutSaved(int v, SavedNode saved, std::vector<StoragePtr> extras);
  // The extras of a forward whose graph is the caller's.
  void PutExtras(int v, std::vector<StoragePtr> extras) { vertex(v).extras = std::move(extras); }

  // For the backward of v.
  SavedNode TakeSaved(int v);
  // What readers have given to v so far; then there is none.
  at::Tensor TakeGradient(int v) { return std::move(vertex(v).gradient); }
  void PutGradient(int v, at::Tensor gradient) { vertex(v).gradient = std::move(gradient); }

  void DropSaved(int v) { TakeSaved(v); }
  // Of a tensor, or extras, that are here or on the host.
  void Discard(TensorKind tensor, int v);
  // A start or a wait.
  void Transfer(const Instruction& i);

  // Lets go of everything; callers who hold sources get back what is on the host of them, or the error
  // says that one is lost.
  absl::Status Release();
  const HostCopies& copies() const { return *copies_; }

 private:
  struct VertexState {
    at::Tensor value;  // metadata, and the storage at which the bytes are
    SharedData data;   // of a vertex that owns its storage
    SavedNode saved;
    std::vector<StoragePtr> extras;
    at::Tensor gradient;  // as far as it is known
  };

  VertexState& vertex(int v) { return vertices_[static_cast<size_t>(v)]; }
  const VertexState& vertex(int v) const { return vertices_[static_cast<size_t>(v)]; }
  void Keep(int v, const at::Tensor& output);

  const Graph& graph_;
  std::unique_ptr<HostCopies> copies_;  // null after a move
  std::vector<VertexState> vertices_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_GRAPH_TENSORS_H_
