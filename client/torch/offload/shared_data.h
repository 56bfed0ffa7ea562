// The bytes of one tensor of a plan, and all storages that stand for them.
//
// An activation that is dropped and made again lies elsewhere in memory, while the graphs of its
// readers still point at the storages that they saw. So the bytes belong to an object of this class,
// the storages only point at them: nowhere while nothing is held, and at the new place after a
// recompute, which gives bit for bit what they saw. A plan may hold the same bytes twice: each time has a home of its own,
// and the storages point at one of them. Not thread-safe.
#ifndef STOWAGE_CLIENT_TORCH_OFFLOAD_SHARED_DATA_H_
#define STOWAGE_CLIENT_TORCH_OFFLOAD_SHARED_DATA_H_

#include <ATen/core/Tensor.h>

#include <array>
#include <vector>

#include "client/torch/offload/host_copies.h"

namespace stowage {

class SharedData {
 public:
  SharedData() = default;
  SharedData(SharedData&&) = default;
  SharedData& operator=(SharedData&&) = default;
  ~SharedData();

  // Takes the bytes out of the tensor's storage, which from now on points at them, as do all others.
  void Own(const at::Tensor& tensor, int home = 0);
  // Holds on to a tensor of somebody else's. What comes back stands for it and, unlike the tensor,
  // loses its bytes with Free.
  at::Tensor Borrow(const at::Tensor& tensor);
  // Frees the bytes of the tensor's storage, which are the same, and points it at these.
  void Join(const at::Tensor& tensor);
  // No-op if nothing is held there.
  void Free(int home = 0);
  // What is held at `from` is at `to` from now on, where nothing is held.
  void Rename(int from, int to);
  // `of` has the bytes of this object: lets it share them, so that they live on with it when they are freed here.
  at::Tensor Share(const at::Tensor& of);

  // The storage that has the bytes; null if nothing is held.
  const StoragePtr& home(int home = 0) const { return homes_[static_cast<size_t>(home)]; }
  // After a home's bytes went somewhere else, or nowhere: all storages point to where they are.
  void Follow();

 private:
  void PointToBytes(c10::StorageImpl* storage) const;

  std::array<StoragePtr, 2> homes_;
  std::vector<StoragePtr> storages_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_OFFLOAD_SHARED_DATA_H_
