#include "client/torch/shared_data.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <utility>

namespace stowage {
namespace {

StoragePtr NewStorage(size_t bytes, c10::DataPtr data) {
  return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                               std::move(data), /*allocator=*/nullptr,
                                               /*resizable=*/false);
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
  const at::Tensor stands_for =
      at::empty({0}, tensor.options())
          .set_(c10::Storage(storage), tensor.storage_offset(), tensor.sizes(), tensor.strides());
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

}  // namespace stowage
