#include "client/torch/shared_data.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "client/torch/tensor_storage.h"

namespace stowage {
namespace {

at::Tensor OnStorage(StoragePtr storage, const at::Tensor& like) {
  return at::empty({0}, like.options())
      .set_(c10::Storage(std::move(storage)), like.storage_offset(), like.sizes(), like.strides());
}

using Share = std::shared_ptr<c10::DataPtr>;

void DropShare(void* share) { delete static_cast<Share*>(share); }

c10::DataPtr DataOf(const Share& share) {
  return {share->get(), new Share(share), &DropShare, share->device()};
}

}  // namespace

void SharedData::PointTo(c10::StorageImpl* storage) const {
  void* const data = const_cast<void*>(static_cast<const void*>(home_->data()));
  storage->set_data_ptr(c10::DataPtr(data, home_->device()));
}

void SharedData::Follow() {
  // Storages that nobody else knows any more were those of graphs that are gone.
  storages_.erase(
      std::remove_if(storages_.begin(), storages_.end(),
                     [](const StoragePtr& storage) { return storage.use_count() == 1; }),
      storages_.end());
  for (const StoragePtr& storage : storages_) PointTo(storage.get());
}

void SharedData::Own(const at::Tensor& tensor) {
  const StoragePtr storage = StoragePtrOf(tensor);
  const c10::Device device = storage->device();
  home_ = NewStorage(storage->nbytes(), storage->set_data_ptr(c10::DataPtr(nullptr, device)));
  storages_.push_back(storage);
  Follow();
}

at::Tensor SharedData::Borrow(const at::Tensor& tensor) {
  home_ = StoragePtrOf(tensor);
  const StoragePtr storage = NewStorage(home_->nbytes(), c10::DataPtr(nullptr, home_->device()));
  const at::Tensor stands_for = OnStorage(storage, tensor);
  storages_.push_back(storage);
  Follow();
  return stands_for;
}

void SharedData::Join(const at::Tensor& tensor) {
  storages_.push_back(StoragePtrOf(tensor));
  PointTo(storages_.back().get());
}

void SharedData::Free() {
  if (!home_) return;
  for (const StoragePtr& storage : storages_) {
    storage->set_data_ptr(c10::DataPtr(nullptr, storage->device()));
  }
  home_.reset();
}

at::Tensor SharingBytes(const at::Tensor& tensor) {
  const StoragePtr storage = StoragePtrOf(tensor);
  const auto share = std::make_shared<c10::DataPtr>(
      storage->set_data_ptr(c10::DataPtr(nullptr, storage->device())));
  storage->set_data_ptr(DataOf(share));
  return OnStorage(NewStorage(storage->nbytes(), DataOf(share)), tensor);
}

}  // namespace stowage
