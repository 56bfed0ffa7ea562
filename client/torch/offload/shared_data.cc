#include "client/torch/offload/shared_data.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "client/torch/base/tensor_storage.h"

namespace stowage {
namespace {

using Share = std::shared_ptr<c10::DataPtr>;

void DropShare(void* share) { delete static_cast<Share*>(share); }

c10::DataPtr DataOf(const Share& share) {
  return {share->get(), new Share(share), &DropShare, share->device()};
}

}  // namespace

SharedData::~SharedData() {
  Free(0);
  Free(1);
}

void SharedData::PointToBytes(c10::StorageImpl* storage) const {
  void* data = nullptr;
  for (const StoragePtr& home : homes_) {
    if (data == nullptr && home) data = const_cast<void*>(static_cast<const void*>(home->data()));
  }
  storage->set_data_ptr(c10::DataPtr(data, storage->device()));
}

void SharedData::Follow() {
  // Storages that nobody else knows any more were those of graphs that are gone.
  storages_.erase(
      std::remove_if(storages_.begin(), storages_.end(),
                     [](const StoragePtr& storage) { return storage.use_count() == 1; }),
      storages_.end());
  for (const StoragePtr& storage : storages_) PointToBytes(storage.get());
}

void SharedData::Own(const at::Tensor& tensor, int home) {
  const StoragePtr storage = StoragePtrOf(tensor);
  const c10::Device device = storage->device();
  homes_[static_cast<size_t>(home)] =
      NewStorage(storage->nbytes(), storage->set_data_ptr(c10::DataPtr(nullptr, device)));
  storages_.push_back(storage);
  Follow();
}

at::Tensor SharedData::Borrow(const at::Tensor& tensor) {
  homes_[0] = StoragePtrOf(tensor);
  const StoragePtr storage =
      NewStorage(homes_[0]->nbytes(), c10::DataPtr(nullptr, homes_[0]->device()));
  const at::Tensor stands_for = OnStorage(storage, tensor);
  storages_.push_back(storage);
  Follow();
  return stands_for;
}

void SharedData::Join(const at::Tensor& tensor) {
  storages_.push_back(StoragePtrOf(tensor));
  PointToBytes(storages_.back().get());
}

void SharedData::Free(int home) {
  StoragePtr freed = std::move(homes_[static_cast<size_t>(home)]);
  if (freed) Follow();
}

void SharedData::Rename(int from, int to) {
  homes_[static_cast<size_t>(to)] = std::move(homes_[static_cast<size_t>(from)]);
}

at::Tensor SharedData::Share(const at::Tensor& of) {
  const StoragePtr& home = homes_[0] && homes_[0]->data() != nullptr ? homes_[0] : homes_[1];
  const auto share =
      std::make_shared<c10::DataPtr>(home->set_data_ptr(c10::DataPtr(nullptr, home->device())));
  home->set_data_ptr(DataOf(share));
  return OnStorage(NewStorage(home->nbytes(), DataOf(share)), of);
}

}  // namespace stowage
