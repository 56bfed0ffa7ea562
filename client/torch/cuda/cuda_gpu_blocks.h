// The sources of one GPU: see cuda_blocks.h, of which this is a part.
#ifndef STOWAGE_CLIENT_TORCH_CUDA_CUDA_GPU_BLOCKS_H_
#define STOWAGE_CLIENT_TORCH_CUDA_CUDA_GPU_BLOCKS_H_

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "client/torch/memory/allocation_count.h"
#include "client/torch/memory/block_sources.h"
#include "client/torch/memory/region_count.h"
#include "client/torch/memory/sourced_allocator.h"

namespace stowage {

// Thread-safe.
class CudaGpuBlocks final : public SourcedAllocator, private RegionMemory {
 public:
  using Allocator = c10::cuda::CUDACachingAllocator::CUDAAllocator;
  using Stats = c10::CachingDeviceAllocator::DeviceStats;

  // Both outlive it; the count is of that GPU.
  CudaGpuBlocks(Allocator* native, c10::DeviceIndex gpu, AllocationCount* count)
      : native_(native), gpu_(gpu), regions_count_(count, this), peak_(count) {}

  void Add(std::shared_ptr<BlockSource> source) override { sources_.Add(std::move(source)); }
  void DropDone() override { sources_.DropDone(); }
  BlockSource* Enter(BlockSource* source) override;
  void* Reserve(Bytes size, Bytes alignment) override;
  void Unreserve(void* region, Bytes size) override;
  Bytes granularity() const override { return Bytes(kGranularity); }

  // A block for the stream, if its source has one.
  void* Allocate(size_t size, cudaStream_t stream);
  // It got an ordinary one.
  void Allocated(const void* block, size_t size, cudaStream_t stream);
  // Shows a block that goes to the sources. Whether one of them served it.
  bool Free(const void* block);
  // Whether the block is a source's; notes that the stream uses it, too.
  bool RecordStream(const void* block, c10::cuda::CUDAStream stream);

  Stats GetStats();
  void ResetPeakStats();

 private:
  static constexpr int64_t kGranularity = 512;

  struct Served {
    Bytes bytes;
    cudaStream_t stream;
    std::vector<c10::cuda::CUDAStream> others;
  };
  struct Region {
    void* block;  // the caching allocator's
    int64_t bytes;
    std::vector<c10::cuda::CUDAStream> streams;  // that its blocks were served for
  };

  void EmptyCache() override { native_->emptyCache({0, 0}); }
  void* Allocate(Bytes bytes) override;
  void Free(void* block) override { native_->raw_delete(block); }

  void NoteStream(c10::cuda::CUDAStream stream);
  void WaitFor(c10::cuda::CUDAStream other, cudaStream_t stream) const;

  Allocator* const native_;
  const c10::DeviceIndex gpu_;
  BlockSources sources_;
  // Not held while the caching allocator is called: what that calls back may allocate.
  std::mutex mutex_;
  BlockSource* entered_ = nullptr;
  std::optional<c10::cuda::CUDAStream> stream_;  // where a source was entered last
  std::unordered_map<const void*, Served> served_;
  std::unordered_map<const void*, Region> regions_;
  RegionCount regions_count_;
  // Of what the user is shown, since ResetPeakStats or the first region after it; then regions have been in the caching
  // allocator's own peak, and what was there before is its.
  AllocationCount::Mark peak_;
  bool own_peak_ = false;
  int64_t earlier_peak_ = 0;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_CUDA_CUDA_GPU_BLOCKS_H_
