// The memory behind tensors: where it is, whether two of them share it, and new of it. Pure functions.
#ifndef STOWAGE_CLIENT_TORCH_BASE_TENSOR_STORAGE_H_
#define STOWAGE_CLIENT_TORCH_BASE_TENSOR_STORAGE_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stowage {

// Null of a tensor that is undefined or has none. The tensor owns it.
c10::StorageImpl* StorageOf(const at::Tensor& tensor);

// One for each tensor, null of those that have none.
void AppendStorages(const std::vector<at::Tensor>& tensors,
                    std::vector<const c10::StorageImpl*>* storages);

// Each once, in the order of the tensors; none of those that have none.
std::vector<const c10::StorageImpl*> StoragesOf(const std::vector<at::Tensor>& tensors);
// Bytes of them all.
int64_t StorageBytesOf(const std::vector<at::Tensor>& tensors);

// Whether its memory holds its elements one after the other, as they are: one could copy the bytes.
bool IsContiguousMemory(const at::Tensor& tensor);

// That tensors are on, which are on one; the CPU where there are none.
c10::Device DeviceOf(const std::vector<at::Tensor>& tensors);

// With this memory, of as many bytes; never resized.
c10::intrusive_ptr<c10::StorageImpl> NewStorage(size_t bytes, c10::DataPtr data);

// Placed in a storage as another tensor is in its own.
at::Tensor OnStorage(c10::intrusive_ptr<c10::StorageImpl> storage, const at::Tensor& like);

// A tensor as long as others hold its memory. Holds none itself.
class WeakTensor {
 public:
  WeakTensor() = default;
  explicit WeakTensor(const at::Tensor& tensor);
  // Undefined where nobody holds it any more, as after construction by default.
  at::Tensor Lock() const;

 private:
  at::Tensor place_;  // without memory
  c10::weak_intrusive_ptr<c10::StorageImpl> storage_{c10::intrusive_ptr<c10::StorageImpl>()};
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_BASE_TENSOR_STORAGE_H_
