#include "client/torch/base/tensor_storage.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <utility>

namespace stowage {

c10::StorageImpl* StorageOf(const at::Tensor& tensor) {
  return tensor.defined() && tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl()
                                                  : nullptr;
}

void AppendStorages(const std::vector<at::Tensor>& tensors,
                    std::vector<const c10::StorageImpl*>* storages) {
  for (const at::Tensor& tensor : tensors) storages->push_back(StorageOf(tensor));
}

std::vector<const c10::StorageImpl*> StoragesOf(const std::vector<at::Tensor>& tensors) {
  std::vector<const c10::StorageImpl*> storages;
  for (const at::Tensor& tensor : tensors) {
    const c10::StorageImpl* const storage = StorageOf(tensor);
    if (storage == nullptr) continue;
    if (std::find(storages.begin(), storages.end(), storage) != storages.end()) continue;
    storages.push_back(storage);
  }
  return storages;
}

int64_t StorageBytesOf(const std::vector<at::Tensor>& tensors) {
  int64_t bytes = 0;
  for (const c10::StorageImpl* storage : StoragesOf(tensors)) {
    bytes += static_cast<int64_t>(storage->nbytes());
  }
  return bytes;
}

bool IsContiguousMemory(const at::Tensor& tensor) {
  return tensor.layout() == at::kStrided && tensor.is_contiguous() && tensor.has_storage() &&
         !tensor.is_conj() && !tensor.is_neg() && !tensor.key_set().has(c10::DispatchKey::Python);
}

c10::Device DeviceOf(const std::vector<at::Tensor>& tensors) {
  return tensors.empty() ? c10::Device(c10::kCPU) : tensors.front().device();
}

c10::intrusive_ptr<c10::StorageImpl> NewStorage(size_t bytes, c10::DataPtr data) {
  return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                               std::move(data), /*allocator=*/nullptr,
                                               /*resizable=*/false);
}

at::Tensor OnStorage(c10::intrusive_ptr<c10::StorageImpl> storage, const at::Tensor& like) {
  return at::empty({0}, like.options())
      .set_(c10::Storage(std::move(storage)), like.storage_offset(), like.sizes(), like.strides());
}

WeakTensor::WeakTensor(const at::Tensor& tensor) {
  c10::StorageImpl* const storage = StorageOf(tensor);
  if (storage == nullptr) return;
  const auto held = c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(storage);
  storage_ = c10::weak_intrusive_ptr<c10::StorageImpl>(held);
  place_ =
      OnStorage(NewStorage(storage->nbytes(), c10::DataPtr(nullptr, storage->device())), tensor);
}

at::Tensor WeakTensor::Lock() const {
  c10::intrusive_ptr<c10::StorageImpl> storage = storage_.lock();
  return storage ? OnStorage(std::move(storage), place_) : at::Tensor();
}

}  // namespace stowage
