// The bytes of one tensor of a plan, and all storages that stand for them.
//
// An activation that is dropped and made again lies elsewhere in memory, while the graphs of its
// readers still point at the storages that they saw. So the bytes belong to an object of this class,
// the storages only point at them: nowhere while nothing is held, and at the new place after a
// recompute, which gives bit for bit what they saw. Not thread-safe.
#ifndef STOWAGE_CLIENT_TORCH_SHARED_DATA_H_
#define STOWAGE_CLIENT_TORCH_SHARED_DATA_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "client/torch/host_copies.h"

namespace stowage {

class SharedData {
 public:
  SharedData() = default;
  SharedData(SharedData&&) = default;
  SharedData& operator=(SharedData&&) = default;
  ~SharedData() { Free(); }

  // Takes the bytes out of the tensor's storage, which from now on points at them, as do all others.
  void Own(const at::Tensor& tensor);
  // Holds on to a tensor of somebody else's. What comes back stands for it and, unlike the tensor,
  // loses its bytes with Free.
  at::Tensor Borrow(const at::Tensor& tensor);
  // Frees the bytes of the tensor's storage, which are the same, and points it at these.
  void Join(const at::Tensor& tensor);
  void Free();

  // The storage that has the bytes; null if nothing is held.
  const StoragePtr& home() const { return home_; }
  // After the home's bytes went somewhere else, or nowhere: all storages point there.
  void Follow();

 private:
  void PointTo(c10::StorageImpl* storage) const;

  StoragePtr home_;
  std::vector<StoragePtr> storages_;
};

// The same bytes under a storage of their own: they are freed when both storages have let go of them.
at::Tensor SharingBytes(const at::Tensor& tensor);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_SHARED_DATA_H_
