// What an executor holds at one moment: plain activations and the saved tensors of stages, with the
// same ownership that the evaluator accounts (solvers/schedule/evaluator.h): dropping an activation frees
// its memory even while the graph of the next stage still points at it, and a graph finds its input
// again when that was recomputed meanwhile.
//
// The caller keeps to a schedule that the evaluator accepted; nothing is checked twice. Transfers throw
// what HostCopies throws. Not thread-safe.
#ifndef STOWAGE_CLIENT_TORCH_HELD_TENSORS_H_
#define STOWAGE_CLIENT_TORCH_HELD_TENSORS_H_

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "client/torch/host_copies.h"
#include "client/torch/stage_runner.h"
#include "solvers/schedule/schedule.h"

namespace stowage {

class HeldTensors {
 public:
  // Stages 1..stages. `input` is a^0 and stays the caller's.
  HeldTensors(int stages, at::Tensor input, ExecutionDevice* device);
  HeldTensors(HeldTensors&&) = default;
  HeldTensors& operator=(HeldTensors&& other);
  ~HeldTensors() { Release().IgnoreError(); }

  // a^l: plain if it is held so, else the output inside saved l.
  const at::Tensor& Activation(int l) const;

  void PutPlain(int l, at::Tensor activation) { plain(l) = std::move(activation); }
  // `parts`: what of it, the output aside, can go to the host.
  void PutSaved(int l, SavedForward forward, std::vector<StoragePtr> parts);
  // Saved l for its backward, bound to the a^{l-1} that is held now.
  const SavedForward& Saved(int l);

  // No-op if a^l is not held plain.
  void DropPlain(int l);
  void DropSaved(int l);
  // Saved l becomes plain a^l.
  void DropSavedKeepOutput(int l);
  // Of a tensor that is here or on the host.
  void Discard(TensorKind tensor, int l);
  // A start or a wait.
  void Transfer(const Instruction& i);

  // Lets go of everything; a caller who holds the input gets back what is on the host of it, or the
  // error says that it is lost.
  absl::Status Release();
  const HostCopies& copies() const { return *copies_; }

 private:
  at::Tensor& plain(int l) { return plain_[static_cast<size_t>(l)]; }
  SavedForward& saved(int l) { return saved_[static_cast<size_t>(l)]; }
  const at::Tensor& output(int l) const { return saved_[static_cast<size_t>(l)].output; }
  std::vector<StoragePtr>& parts(int l) { return parts_[static_cast<size_t>(l)]; }

  bool PlainHere(int l) const;
  bool OutputHere(int l) const;
  std::vector<StoragePtr> StoragesOf(const Instruction& i);
  void ReleaseFromGraph(int l, const at::Tensor& activation);

  std::unique_ptr<HostCopies> copies_;  // null after a move
  std::vector<at::Tensor> plain_;
  std::vector<SavedForward> saved_;
  std::vector<std::vector<StoragePtr>> parts_;  // by stage
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_HELD_TENSORS_H_
