#include "client/torch/held_tensors.h"

#include <utility>

#include "client/torch/tensor_storage.h"

namespace stowage {

HeldTensors::HeldTensors(int stages, at::Tensor input, ExecutionDevice* device)
    : copies_(std::make_unique<HostCopies>(device)),
      plain_(static_cast<size_t>(stages) + 1),
      saved_(plain_.size()),
      parts_(plain_.size()) {
  plain_[0] = std::move(input);
}

HeldTensors& HeldTensors::operator=(HeldTensors&& other) {
  Release().IgnoreError();
  copies_ = std::move(other.copies_);
  plain_ = std::move(other.plain_);
  saved_ = std::move(other.saved_);
  parts_ = std::move(other.parts_);
  return *this;
}

bool HeldTensors::PlainHere(int l) const {
  return plain_[static_cast<size_t>(l)].defined() && !copies_->IsAway(TensorKind::kActivation, l);
}

bool HeldTensors::OutputHere(int l) const {
  // The part after the last saved tensor.
  const int rest = static_cast<int>(parts_[static_cast<size_t>(l)].size()) + 1;
  return output(l).defined() && !copies_->IsAway(TensorKind::kSaved, l) &&
         !copies_->IsAway(TensorKind::kSaved, l, rest);
}

const at::Tensor& HeldTensors::Activation(int l) const {
  return PlainHere(l) ? plain_[static_cast<size_t>(l)] : output(l);
}

void HeldTensors::PutSaved(int l, SavedForward forward, std::vector<StoragePtr> parts_of_l) {
  saved(l) = std::move(forward);
  parts(l) = std::move(parts_of_l);
}

const SavedForward& HeldTensors::Saved(int l) {
  // The backward frees them one by one.
  parts(l).clear();
  c10::StorageImpl* bound = StorageOf(saved(l).input);
  const bool is_here = (PlainHere(l - 1) && bound == StorageOf(plain(l - 1))) ||
                       (OutputHere(l - 1) && bound == StorageOf(output(l - 1)));
  if (!is_here) {
    // A recomputed input, bit for bit what the graph saw. The activation owns the bytes and
    // outlives the backward.
    const c10::StorageImpl* held = StorageOf(Activation(l - 1));
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
  if (!PlainHere(l)) return;
  ReleaseFromGraph(l, plain(l));
  plain(l).reset();
}

void HeldTensors::DropSaved(int l) {
  ReleaseFromGraph(l, saved(l).output);
  saved(l) = {};
  parts(l).clear();
}

void HeldTensors::DropSavedKeepOutput(int l) {
  plain(l) = saved(l).output.variable_data();
  copies_->Discard(TensorKind::kSaved, l);
  saved(l) = {};
  parts(l).clear();
}

void HeldTensors::Discard(TensorKind tensor, int l) {
  const bool plain_is_away = tensor == TensorKind::kActivation && !PlainHere(l);
  copies_->Discard(tensor, l);
  if (tensor == TensorKind::kSaved) return DropSaved(l);
  if (plain_is_away) {
    plain(l).reset();
  } else {
    DropPlain(l);
  }
}

std::vector<StoragePtr> HeldTensors::StoragesOf(const Instruction& i) {
  const int l = i.stage;
  if (i.tensor == TensorKind::kActivation) return {StoragePtrOf(plain(l))};
  const StoragePtr rest = StoragePtrOf(output(l));
  if (i.part > parts(l).size()) return {rest};
  if (i.part > 0) return {parts(l)[static_cast<size_t>(i.part) - 1]};
  std::vector<StoragePtr> all = parts(l);
  all.push_back(rest);
  return all;
}

void HeldTensors::Transfer(const Instruction& i) {
  if (i.op != Op::kOffloadStart) return copies_->Continue(i);
  const bool lent = i.tensor == TensorKind::kActivation && i.stage == 0;
  copies_->StartOffload(i, StoragesOf(i), lent);
}

absl::Status HeldTensors::Release() {
  plain_.clear();
  saved_.clear();
  parts_.clear();
  return copies_ ? copies_->ReturnLent() : absl::OkStatus();
}

}  // namespace stowage
