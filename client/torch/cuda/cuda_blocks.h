// LibTorch's CUDA allocator with sources that serve in its place (sourced_allocator.h), as they do on the
// CPU with TrackingAllocator. Only where LibTorch has CUDA and is 2.11 or later (STOWAGE_CUDA_BLOCKS).
//
//   CudaBlocks* blocks = CudaBlocks::Install().value();     // at the start of main
//   auto arena = StepArena::Create({}, blocks->Of(0));      // of GPU 0
//
// All else is passed on to the caching allocator that was there; the region of a source is a block of it. What streams have to
// do with it: StreamSources. What is captured in a CUDA graph, or shared with other processes, must not be of a source.
//
// Statistics: of the sums over all pools, allocated bytes count what is used of regions, in units of 512
// bytes, not the regions; reserved bytes, those that the caching allocator holds, count them whole. So
// CudaDevice's meter, and what is held against a budget, is right for both.
#ifndef STOWAGE_CLIENT_TORCH_CUDA_CUDA_BLOCKS_H_
#define STOWAGE_CLIENT_TORCH_CUDA_CUDA_BLOCKS_H_

#include "absl/status/statusor.h"
#include "client/torch/memory/sourced_allocator.h"

namespace stowage {

// Thread-safe, except Install.
class CudaBlocks {
 public:
  // Puts the one instance before LibTorch's allocator, for good. Calling it again does nothing more. Blocks
  // allocated earlier are freed properly; no source sees them. FAILED_PRECONDITION: there is no GPU, or the allocator that
  // is there tells of no blocks.
  static absl::StatusOr<CudaBlocks*> Install();

  // Of that GPU; null if there is none of that number.
  virtual SourcedAllocator* Of(int gpu) = 0;

 protected:
  virtual ~CudaBlocks() = default;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_CUDA_CUDA_BLOCKS_H_
