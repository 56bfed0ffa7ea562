#include "client/torch/base/tensor_storage.h"

#include <algorithm>
#include <utility>

namespace stowage {

c10::StorageImpl* StorageOf(const at::Tensor& tensor) {
  return tensor.defined() && tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl()
                                                  : nullptr;
}

void InsertStorages(const std::vector<at::Tensor>& tensors,
                    std::unordered_set<const c10::StorageImpl*>* storages) {
  for (const at::Tensor& tensor : tensors) storages->insert(StorageOf(tensor));
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

c10::Device DeviceOf(const std::vector<at::Tensor>& tensors) {
  return tensors.empty() ? c10::Device(c10::kCPU) : tensors.front().device();
}

c10::intrusive_ptr<c10::StorageImpl> NewStorage(size_t bytes, c10::DataPtr data) {
  return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                               std::move(data), /*allocator=*/nullptr,
                                               /*resizable=*/false);
}

}  // namespace stowage
