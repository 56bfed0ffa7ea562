#include "client/torch/shared_data.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <utility>

namespace stowage {
namespace {

using StoragePtr = c10::intrusive_ptr<c10::StorageImpl>;

StoragePtr StorageImplOf(const at::Tensor& tensor) {
  return StoragePtr::reclaim_copy(tensor.storage().unsafeGetStorageImpl());
}

}  // namespace

void SharedData::PointAll(void* data, c10::Device device) {
  // Storages that nobody else knows any more were those of graphs that are gone.
  storages_.erase(
      std::remove_if(storages_.begin(), storages_.end(),
                     [](const StoragePtr& storage) { return storage.use_count() == 1; }),
      storages_.end());
  for (const StoragePtr& storage : storages_) {
    storage->set_data_ptr(c10::DataPtr(data, device));
  }
}

void SharedData::Own(const at::Tensor& tensor) {
  const StoragePtr storage = StorageImplOf(tensor);
  const c10::Device device = storage->device();
  c10::DataPtr bytes = storage->set_data_ptr(c10::DataPtr(nullptr, device));
  void* const data = bytes.get();
  data_ = std::move(bytes);
  held_ = true;
  storages_.push_back(storage);
  PointAll(data, device);
}

at::Tensor SharedData::Borrow(at::Tensor tensor) {
  const c10::Device device = tensor.device();
  const auto storage = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), tensor.storage().nbytes(), c10::DataPtr(nullptr, device),
      /*allocator=*/nullptr, /*resizable=*/false);
  const at::Tensor stands_for =
      at::empty({0}, tensor.options())
          .set_(c10::Storage(storage), tensor.storage_offset(), tensor.sizes(), tensor.strides());
  storages_.push_back(storage);
  void* const data =
      const_cast<void*>(static_cast<const void*>(tensor.storage().unsafeGetStorageImpl()->data()));
  borrowed_ = std::move(tensor);
  held_ = true;
  PointAll(data, device);
  return stands_for;
}

void SharedData::Join(const at::Tensor& tensor) {
  const StoragePtr storage = StorageImplOf(tensor);
  void* const data = borrowed_.defined() ? const_cast<void*>(static_cast<const void*>(
                                               borrowed_.storage().unsafeGetStorageImpl()->data()))
                                         : data_.get();
  storage->set_data_ptr(c10::DataPtr(data, storage->device()));
  storages_.push_back(storage);
}

void SharedData::Free() {
  if (!held_) return;
  held_ = false;
  for (const StoragePtr& storage : storages_) {
    storage->set_data_ptr(c10::DataPtr(nullptr, storage->device()));
  }
  data_.clear();
  borrowed_.reset();
}

}  // namespace stowage
