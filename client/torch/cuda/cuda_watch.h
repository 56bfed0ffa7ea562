// What LibTorch's CUDA allocator tells of a GPU. Only where LibTorch has CUDA (STOWAGE_TORCH_CUDA).
#ifndef STOWAGE_CLIENT_TORCH_CUDA_CUDA_WATCH_H_
#define STOWAGE_CLIENT_TORCH_CUDA_CUDA_WATCH_H_

#include <c10/core/Device.h>

#include "client/torch/memory/allocation_count.h"
#include "client/torch/memory/memory_refusal.h"

namespace stowage {

struct CudaWatch {
  // Null before LibTorch 2.7, and where the allocator is one that tells of no blocks (cudaMallocAsync).
  AllocationCount* count = nullptr;
  // Null before LibTorch 2.7.
  RefusalLog* refusals = nullptr;
};

// From the first call of the process on, for good: the allocator forgets nobody who listens. CUDA is initialised. Throws
// what LibTorch throws. Thread-safe.
CudaWatch WatchGpu(c10::DeviceIndex gpu);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_CUDA_CUDA_WATCH_H_
