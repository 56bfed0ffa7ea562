#include "client/torch/execute/held_outputs.h"

#include <algorithm>

#include "client/torch/base/tensor_storage.h"
#include "client/torch/base/torch_status.h"

namespace stowage {

HeldOutputs::Few<int> HeldOutputs::PartsOf(const std::vector<at::Tensor>& made) {
  Few<int> parts;
  Few<const c10::StorageImpl*> known;
  for (const at::Tensor& tensor : made) {
    const c10::StorageImpl* const storage = StorageOf(tensor);
    if (storage == nullptr) {
      parts.push_back(-1);
      continue;
    }
    const auto same = std::find(known.begin(), known.end(), storage);
    parts.push_back(static_cast<int>(same - known.begin()));
    if (same == known.end()) known.push_back(storage);
  }
  return parts;
}

HeldOutputs::Few<size_t> HeldOutputs::Firsts() const {
  Few<size_t> firsts;
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i] == static_cast<int>(firsts.size())) firsts.push_back(i);
  }
  return firsts;
}

void HeldOutputs::Put(const std::vector<at::Tensor>& made) {
  Few<int> parts = PartsOf(made);
  if (!parts_.empty() && parts != parts_) {
    throw StageRuleError(
        "it returns other tensors when it runs again: others are undefined, or share memory");
  }
  parts_ = std::move(parts);
  data_.resize(Firsts().size());
  values_.assign(made.begin(), made.end());
}

void HeldOutputs::Own(const std::vector<at::Tensor>& made, int home) {
  Put(made);
  const Few<size_t> firsts = Firsts();
  for (size_t i = 0; i < firsts.size(); ++i) data_[i].Own(made[firsts[i]], home);
}

void HeldOutputs::Join(const std::vector<at::Tensor>& made) {
  Put(made);
  const Few<size_t> firsts = Firsts();
  for (size_t i = 0; i < firsts.size(); ++i) data_[i].Join(made[firsts[i]]);
}

void HeldOutputs::Borrow(const std::vector<at::Tensor>& lent, size_t parts) {
  data_.resize(parts);
  beside_.resize(lent.size() - parts);
  values_.clear();
  parts_.assign(lent.size(), -1);
  for (size_t i = 0; i < lent.size(); ++i) {
    if (i < parts) parts_[i] = static_cast<int>(i);
    values_.push_back((i < parts ? data_[i] : beside_[i - parts]).Borrow(lent[i]));
  }
}

const at::Tensor& HeldOutputs::value(int index) const {
  static const at::Tensor nothing;
  const auto i = static_cast<size_t>(index);
  return i < values_.size() ? values_[i] : nothing;
}

void HeldOutputs::Release() {
  const auto free = [](SharedData& part) {
    part.Free(0);
    part.Free(1);
  };
  std::for_each(data_.begin(), data_.end(), free);
  std::for_each(beside_.begin(), beside_.end(), free);
}

void HeldOutputs::LiveIn(const HeldOutputs& owner, int at, const std::vector<at::Tensor>& made) {
  values_.assign(made.begin(), made.end());
  parts_.assign(made.size(), owner.part(at));
}

at::Tensor HeldOutputs::Share(const at::Tensor& of, int part) {
  return part < 0 ? of : data_[static_cast<size_t>(part)].Share(of);
}

bool HeldOutputs::IsHeld(int home) const {
  return std::any_of(data_.begin(), data_.end(),
                     [home](const SharedData& part) { return part.home(home) != nullptr; });
}

void HeldOutputs::Free(int home) {
  for (SharedData& part : data_) part.Free(home);
}

void HeldOutputs::Rename(int from, int to) {
  for (SharedData& part : data_) part.Rename(from, to);
}

void HeldOutputs::Follow() {
  for (SharedData& part : data_) part.Follow();
}

std::vector<StoragePtr> HeldOutputs::Homes(int home) const {
  std::vector<StoragePtr> homes;
  for (const SharedData& part : data_) homes.push_back(part.home(home));
  return homes;
}

}  // namespace stowage
