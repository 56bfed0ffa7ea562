#include "client/torch/execute/saved_slots.h"

#include <ATen/Functions.h>
#include <c10/core/TensorImpl.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/torch/base/tensor_storage.h"
#include "client/torch/base/torch_status.h"

namespace stowage {

// What it must be like when it is saved again is in the value where there is one, as is where it lies: of most nothing else
// is ever noted.
struct SavedSlot {
  at::Tensor value;  // undefined: not held
  bool own = true;   // else its memory is somebody else's
  c10::VariableVersion counter;
  uint32_t version = 0;
  std::vector<int64_t> sizes;
  at::TensorOptions options;
  // As long as nobody has settled whose the memory is.
  std::vector<int64_t> strides;
  int64_t offset = 0;
  c10::weak_intrusive_ptr<c10::StorageImpl> storage{c10::intrusive_ptr<c10::StorageImpl>()};

  void Describe(const at::Tensor& tensor) {
    sizes = tensor.sizes().vec();
    options = tensor.options();
  }
  void Empty() {
    if (!value.defined()) return;
    Describe(value);
    value.reset();
  }
  bool IsLike(const at::Tensor& tensor) const {
    if (!value.defined()) {
      return tensor.sizes() == sizes && tensor.dtype() == options.dtype() &&
             tensor.device() == options.device();
    }
    return tensor.sizes() == value.sizes() && tensor.dtype() == value.dtype() &&
           tensor.device() == value.device();
  }
};

namespace {

constexpr size_t kUsualSlots = 4;  // saved tensors of a node

// A tensor of the graph that shares memory and version, but not the graph: the hooks are part of that.
at::Tensor WithoutGraph(const at::Tensor& tensor) { return tensor.tensor_data(); }

// Sparse tensors, say, have no storage, and views of complex ones are more than a place in one.
bool LiesInStorage(const at::Tensor& tensor) {
  return StorageOf(tensor) != nullptr && !tensor.is_conj() && !tensor.is_neg();
}

StoragePtr StorageOfSaved(const SavedSlot& slot) {
  if (!slot.value.defined()) return slot.storage.lock();
  return LiesInStorage(slot.value) ? StoragePtrOf(slot.value) : StoragePtr();
}

at::Tensor FromStorage(const SavedSlot& slot, StoragePtr storage) {
  at::Tensor tensor = at::empty({0}, slot.options);
  tensor.set_(c10::Storage(std::move(storage)), slot.offset, slot.sizes, slot.strides);
  torch::autograd::impl::set_version_counter(tensor, slot.counter);
  return tensor;
}

class SlotHooks final : public torch::autograd::SavedVariableHooks {
 public:
  SlotHooks(std::vector<std::weak_ptr<SavedSlot>>* slots, bool keeps)
      : slots_(slots), keeps_(keeps) {}

  void call_pack_hook(const at::Tensor& tensor) override {
    slot_ = std::make_shared<SavedSlot>();
    slot_->counter = torch::autograd::impl::version_counter(tensor);
    slot_->version = slot_->counter.current_version();
    if (keeps_) {
      slot_->value = WithoutGraph(tensor);
    } else {
      slot_->Describe(tensor);
      if (LiesInStorage(tensor)) NotePlace(tensor);
    }
    slots_->push_back(slot_);
    slots_ = nullptr;
  }

  at::Tensor call_unpack_hook() override {
    if (!slot_->value.defined()) {
      throw StageRuleError(
          "the plan does not hold what its backward reads; if its forward runs a backward of its "
          "own, it cannot be computed again (must_keep)");
    }
    TORCH_CHECK(slot_->counter.current_version() == slot_->version,
                "one of the variables needed for gradient computation has been modified by an "
                "inplace operation: it is at version ",
                slot_->counter.current_version(), ", saved was version ", slot_->version);
    return slot_->value;
  }

 private:
  void NotePlace(const at::Tensor& tensor) {
    slot_->strides = tensor.strides().vec();
    slot_->offset = tensor.storage_offset();
    slot_->storage = c10::weak_intrusive_ptr<c10::StorageImpl>(StoragePtrOf(tensor));
  }

  std::vector<std::weak_ptr<SavedSlot>>* slots_;  // while packing only
  bool keeps_;
  std::shared_ptr<SavedSlot> slot_;
};

// Ends a forward of which nothing more is needed. Of no type that code between here and there would catch by name.
struct ForwardStopped {};

// Of a graph that nobody runs backward. `stopped`, unless that is null: this is the last that the forward is run for.
class FillingHooks final : public torch::autograd::SavedVariableHooks {
 public:
  FillingHooks(std::shared_ptr<SavedSlot> slot, size_t number, bool* stopped)
      : slot_(std::move(slot)), number_(number), stopped_(stopped) {}

  void call_pack_hook(const at::Tensor& tensor) override {
    const std::shared_ptr<SavedSlot> slot = std::move(slot_);
    if (slot == nullptr) return;  // the graph has let go of it
    if (!slot->IsLike(tensor)) {
      throw StageRuleError(absl::StrCat("saved tensor ", number_,
                                        " of its forward is another one when it runs again"));
    }
    if (!slot->own) return;
    slot->value = WithoutGraph(tensor);
    slot->counter = torch::autograd::impl::version_counter(tensor);
    slot->version = slot->counter.current_version();
    if (stopped_ == nullptr) return;
    *stopped_ = true;
    throw ForwardStopped();
  }

  at::Tensor call_unpack_hook() override {
    throw StageRuleError(
        "its forward runs a backward of its own: it cannot be computed again (must_keep)");
  }

 private:
  std::shared_ptr<SavedSlot> slot_;
  size_t number_;
  bool* stopped_;
};

}  // namespace

std::unique_ptr<torch::autograd::SavedVariableHooks> SavedSlots::Recording::MakeHooks() {
  if (slots_->slots_.empty()) slots_->slots_.reserve(kUsualSlots);
  return std::make_unique<SlotHooks>(&slots_->slots_, keeps_);
}

std::unique_ptr<torch::autograd::SavedVariableHooks> SavedSlots::Refilling::MakeHooks() {
  if (stopped_) throw ForwardStopped();  // somebody has caught the first one
  if (filled_ == slots_->slots_.size()) {
    throw StageRuleError("its forward saved more tensors when it ran again than at first");
  }
  const size_t number = filled_++;
  return std::make_unique<FillingHooks>(slots_->slots_[number].lock(), number,
                                        stops_ && filled_ == end_ ? &stopped_ : nullptr);
}

void SavedSlots::Refilling::Check() const {
  if (filled_ == end_) return;
  throw StageRuleError(absl::StrCat("its forward saved ", slots_->slots_.size(),
                                    " tensors at first and ", filled_, " when it ran again"));
}

void SavedSlots::Settle(const std::vector<const c10::StorageImpl*>& held_by_others,
                        const std::vector<at::Tensor>& outputs) {
  std::vector<const c10::StorageImpl*> made;
  AppendStorages(outputs, &made);
  const auto has = [](const std::vector<const c10::StorageImpl*>& storages,
                      const StoragePtr& storage) {
    return std::find(storages.begin(), storages.end(), storage.get()) != storages.end();
  };
  held_.reserve(slots_.size());
  for (const std::weak_ptr<SavedSlot>& known : slots_) {
    std::shared_ptr<SavedSlot> slot = known.lock();
    if (slot == nullptr) continue;
    StoragePtr storage = StorageOfSaved(*slot);
    saves_output_ = saves_output_ || (storage && has(made, storage));
    slot->own = !storage || !has(held_by_others, storage);
    if (!slot->own && !slot->value.defined()) slot->value = FromStorage(*slot, std::move(storage));
    slot->storage.reset();
    held_.push_back(std::move(slot));
  }
}

void SavedSlots::Hold(const std::vector<at::Tensor>& outputs) {
  for (const at::Tensor& output : outputs) {
    // Nobody holds the node that adds up what comes for an output that is a leaf.
    if (!output.defined() || output.grad_fn() == nullptr) continue;
    graph_.push_back(torch::autograd::impl::gradient_edge(output).function);
  }
}

size_t SavedSlots::EndOfOwn() const {
  for (size_t end = slots_.size(); end > 0; --end) {
    const std::shared_ptr<SavedSlot> slot = slots_[end - 1].lock();
    if (slot != nullptr && slot->own) return end;
  }
  return 0;
}

SavedSlots SavedSlots::Emptied() const {
  SavedSlots emptied;
  emptied.saves_output_ = saves_output_;
  for (const std::weak_ptr<SavedSlot>& known : slots_) {
    const std::shared_ptr<SavedSlot> slot = known.lock();
    if (slot == nullptr) {
      emptied.slots_.emplace_back();
      continue;
    }
    emptied.held_.push_back(std::make_shared<SavedSlot>());
    SavedSlot& copy = *emptied.held_.back();
    copy.own = slot->own;
    copy.sizes = slot->sizes;
    copy.options = slot->options;
    if (slot->value.defined()) copy.Describe(slot->value);
    emptied.slots_.push_back(emptied.held_.back());
  }
  return emptied;
}

void SavedSlots::Drop() {
  graph_.clear();
  for (const std::weak_ptr<SavedSlot>& known : slots_) {
    const std::shared_ptr<SavedSlot> slot = known.lock();
    if (slot != nullptr && slot->own) slot->Empty();
  }
}

std::vector<StoragePtr> SavedSlots::OwnStorages(c10::Device device) const {
  std::vector<StoragePtr> storages;
  std::vector<size_t> holders;
  for (const std::weak_ptr<SavedSlot>& known : slots_) {
    const std::shared_ptr<SavedSlot> slot = known.lock();
    if (slot == nullptr || !slot->own) continue;
    const StoragePtr storage = StoragePtrOf(slot->value);
    if (!storage || storage->nbytes() == 0 || storage->device() != device) continue;
    const auto same = std::find(storages.begin(), storages.end(), storage);
    if (same == storages.end()) {
      storages.push_back(storage);
      holders.push_back(1);
    } else {
      ++holders[static_cast<size_t>(same - storages.begin())];
    }
  }
  std::vector<StoragePtr> own;
  for (size_t i = 0; i < storages.size(); ++i) {
    // One more is the list above.
    if (storages[i].use_count() == holders[i] + 1) own.push_back(storages[i]);
  }
  return own;
}

}  // namespace stowage
