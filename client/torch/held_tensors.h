// What an executor holds at one moment: plain activations and the saved tensors of stages, with the
// same ownership that the referee accounts (solvers/plan/simulate.h): dropping an activation frees
// its memory even while the graph of the next stage still points at it, and a graph finds its input
// again when that was recomputed meanwhile.
//
// The caller keeps to a schedule that the referee accepted; nothing is checked twice. Not
// thread-safe.
#ifndef STOWAGE_CLIENT_TORCH_HELD_TENSORS_H_
#define STOWAGE_CLIENT_TORCH_HELD_TENSORS_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "client/torch/stage_runner.h"

namespace stowage {

class HeldTensors {
 public:
  // Stages 1..stages. `input` is a^0 and stays the caller's.
  HeldTensors(int stages, at::Tensor input);

  // a^l: plain if it is held so, else the output inside saved l.
  const at::Tensor& Activation(int l) const;

  void PutPlain(int l, at::Tensor activation) { plain(l) = std::move(activation); }
  void PutSaved(int l, SavedForward forward) { saved(l) = std::move(forward); }
  // Saved l for its backward, bound to the a^{l-1} that is held now.
  const SavedForward& Saved(int l);

  // No-op if a^l is not held plain.
  void DropPlain(int l);
  void DropSaved(int l);
  // Saved l becomes plain a^l.
  void Reduce(int l);

 private:
  at::Tensor& plain(int l) { return plain_[static_cast<size_t>(l)]; }
  SavedForward& saved(int l) { return saved_[static_cast<size_t>(l)]; }
  void ReleaseFromGraph(int l, const at::Tensor& activation);

  std::vector<at::Tensor> plain_;
  std::vector<SavedForward> saved_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_HELD_TENSORS_H_
