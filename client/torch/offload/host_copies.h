// Tensors of a step that are away: what goes to host memory and comes back, as the evaluators account it
// (solvers/schedule/evaluator.h).
//
// What moves are the bytes of storages. All tensors of a storage, also those that graphs saved, go
// with it, and find the bytes again when they have come back, wherever they then are. Device memory is
// freed by the wait for an offload and allocated by the start of a prefetch, both in compute's order.
//
// The caller keeps to a schedule that the evaluator accepted; nothing is checked twice. Functions throw
// what LibTorch throws, HostMemoryError, and what made a copy fail. Not thread-safe.
#ifndef STOWAGE_CLIENT_TORCH_OFFLOAD_HOST_COPIES_H_
#define STOWAGE_CLIENT_TORCH_OFFLOAD_HOST_COPIES_H_

#include <c10/core/Allocator.h>
#include <c10/core/StorageImpl.h>

#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "client/torch/offload/execution_device.h"
#include "client/torch/offload/host_pool.h"
#include "solvers/model/units.h"
#include "solvers/schedule/schedule.h"

namespace at {
class Tensor;
}

namespace stowage {

using StoragePtr = c10::intrusive_ptr<c10::StorageImpl>;

// Null of a tensor that has none.
StoragePtr StoragePtrOf(const at::Tensor& tensor);

// Whether the bytes of a tensor of somebody else's may go and come back elsewhere: they are the whole
// of a storage, in memory of the device's allocator.
bool CanLend(const at::Tensor& tensor, const ExecutionDevice& device);

// Whether nobody holds the tensor, or its storage, but the variable that is asked about.
bool IsSoleHolder(const at::Tensor& tensor);

class HostCopies {
 public:
  // Copies nothing if the device has no link.
  explicit HostCopies(ExecutionDevice* device) : device_(device) {}
  HostCopies(const HostCopies&) = delete;
  HostCopies& operator=(const HostCopies&) = delete;

  // An offload-start of what the instruction names: the bytes of these storages, in one copy. `lent`:
  // they are somebody else's, who gets them back at the end (ReturnLent).
  void StartOffload(const Instruction& i, std::vector<StoragePtr> storages, bool lent = false);
  // The other three, of what StartOffload has got.
  void Continue(const Instruction& i);

  // Whether the tensor, or part of it, is on the host or on its way back.
  bool IsAway(TensorKind tensor, int stage, int part = 0) const;
  // Drops what the host has of the tensor, all its parts; no-op where it has none.
  void Discard(TensorKind tensor, int stage);

  // At the end of a step, however it ended, when nothing of the step is held any more: gives up what
  // is on its way and forgets everything, but brings back first the bytes of lent storages that
  // others hold. Where that fails such a storage has no bytes then.
  absl::Status ReturnLent();

  // By all copies.
  Bytes offloaded() const { return offloaded_; }
  Bytes prefetched() const { return prefetched_; }

 private:
  // Destroyed from below: a copy, if it is still on its way, before its ends.
  struct HostCopy {
    bool lent = false;
    bool coming = false;  // else it leaves while there is a copy, and is on the host after it
    std::vector<StoragePtr> storages;
    HostPool::Block host;
    std::vector<c10::DataPtr> arriving;
    std::unique_ptr<DeviceCopy> copy;

    bool away() const { return coming || copy == nullptr; }
  };
  using Key = std::tuple<TensorKind, int, int>;

  static Key KeyOf(const Instruction& i) { return {i.tensor, i.stage, i.part}; }
  static void WaitOffload(HostCopy* entry);
  void StartPrefetch(HostCopy* entry);
  static void WaitPrefetch(HostCopy* entry);
  void BringBack(HostCopy* entry);

  ExecutionDevice* device_;
  std::map<Key, HostCopy> copies_;
  Bytes offloaded_;
  Bytes prefetched_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_OFFLOAD_HOST_COPIES_H_
