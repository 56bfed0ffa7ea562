#include "client/torch/held_tensors.h"

#include <c10/core/StorageImpl.h>

#include <utility>

namespace stowage {
namespace {

c10::StorageImpl* StorageOf(const at::Tensor& tensor) {
  return tensor.storage().unsafeGetStorageImpl();
}

}  // namespace

HeldTensors::HeldTensors(int stages, at::Tensor input)
    : plain_(static_cast<size_t>(stages) + 1), saved_(plain_.size()) {
  plain_[0] = std::move(input);
}

const at::Tensor& HeldTensors::Activation(int l) const {
  const at::Tensor& plain = plain_[static_cast<size_t>(l)];
  return plain.defined() ? plain : saved_[static_cast<size_t>(l)].output;
}

const SavedForward& HeldTensors::Saved(int l) {
  c10::StorageImpl* bound = StorageOf(saved(l).input);
  c10::StorageImpl* held = StorageOf(Activation(l - 1));
  if (bound != held) {
    // A recomputed input, bit for bit what the graph saw. The activation owns the bytes and
    // outlives the backward.
    void* data = const_cast<void*>(static_cast<const void*>(held->data()));
    bound->set_data_ptr(c10::DataPtr(data, held->device()));
  }
  return saved(l);
}

void HeldTensors::ReleaseFromGraph(int l, const at::Tensor& activation) {
  // a^0 is the caller's.
  if (l == 0 || static_cast<size_t>(l) + 1 >= saved_.size()) return;
  const SavedForward& next = saved(l + 1);
  if (!next.input.defined() || StorageOf(next.input) != StorageOf(activation)) return;
  c10::StorageImpl* storage = StorageOf(activation);
  storage->set_data_ptr(c10::DataPtr(nullptr, storage->device()));
}

void HeldTensors::DropPlain(int l) {
  if (!plain(l).defined()) return;
  ReleaseFromGraph(l, plain(l));
  plain(l).reset();
}

void HeldTensors::DropSaved(int l) {
  ReleaseFromGraph(l, saved(l).output);
  saved(l) = {};
}

void HeldTensors::Reduce(int l) {
  plain(l) = saved(l).output.variable_data();
  saved(l) = {};
}

}  // namespace stowage
