#include "client/torch/base/tensor_storage.h"

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

c10::Device DeviceOf(const std::vector<at::Tensor>& tensors) {
  return tensors.empty() ? c10::Device(c10::kCPU) : tensors.front().device();
}

c10::intrusive_ptr<c10::StorageImpl> NewStorage(size_t bytes, c10::DataPtr data) {
  return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                               std::move(data), /*allocator=*/nullptr,
                                               /*resizable=*/false);
}

}  // namespace stowage
