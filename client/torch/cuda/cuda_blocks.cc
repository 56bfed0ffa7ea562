#include "client/torch/cuda/cuda_blocks.h"

#include <c10/core/Allocator.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include <memory>
#include <vector>

#include "client/torch/base/lazy_init.h"
#include "client/torch/cuda/cuda_gpu_blocks.h"
#include "client/torch/cuda/cuda_watch.h"
#include "client/torch/cuda/passing_cuda_allocator.h"

namespace stowage {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

class CudaBlocksAllocator final : public PassingCudaAllocator, public CudaBlocks {
 public:
  CudaBlocksAllocator(Base* native, int gpus) : PassingCudaAllocator(native) {
    for (int gpu = 0; gpu < gpus; ++gpu) {
      const auto index = static_cast<c10::DeviceIndex>(gpu);
      gpus_.push_back(std::make_unique<CudaGpuBlocks>(native, index, WatchGpu(index).count));
    }
  }

  // As LibTorch does with its own; null before.
  static CudaBlocksAllocator* installed;

  SourcedAllocator* Of(int gpu) override {
    const bool exists = gpu >= 0 && gpu < static_cast<int>(gpus_.size());
    return exists ? gpus_[static_cast<size_t>(gpu)].get() : nullptr;
  }

  c10::DataPtr allocate(size_t size) override {
    const c10::DeviceIndex gpu = c10::cuda::current_device();
    const c10::Device device(c10::DeviceType::CUDA, gpu);
    void* block = nullptr;
    if (size > 0) {
      CudaGpuBlocks& blocks = At(gpu);
      const cudaStream_t stream = c10::cuda::getCurrentCUDAStream(gpu).stream();
      block = blocks.Allocate(size, stream);
      if (block == nullptr) {
        c10::DataPtr ordinary = to()->allocate(size);
        block = ordinary.release_context();
        blocks.Allocated(block, size, stream);
      }
    }
    return {block, block, &Delete, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Delete; }

  void* raw_alloc(size_t size) override {
    const c10::DeviceIndex gpu = c10::cuda::current_device();
    return raw_alloc_with_stream(size, c10::cuda::getCurrentCUDAStream(gpu).stream());
  }
  void* raw_alloc_with_stream(size_t size, cudaStream_t stream) override {
    if (size == 0) return nullptr;
    CudaGpuBlocks& blocks = At(c10::cuda::current_device());
    void* block = blocks.Allocate(size, stream);
    if (block != nullptr) return block;
    block = to()->raw_alloc_with_stream(size, stream);
    blocks.Allocated(block, size, stream);
    return block;
  }
  void raw_delete(void* block) override {
    if (!FreeAtSource(block)) to()->raw_delete(block);
  }

  void recordStream(const c10::DataPtr& data, c10::cuda::CUDAStream stream) override {
    if (data.get_deleter() != &Delete) return to()->recordStream(data, stream);
    for (const auto& gpu : gpus_) {
      if (gpu->RecordStream(data.get(), stream)) return;
    }
    // The caching allocator takes only blocks that carry its own deleter.
    c10::DataPtr shown(data.get(), data.get(), to()->raw_deleter(), data.device());
    to()->recordStream(shown, stream);
    shown.release_context();
  }

  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex gpu) override {
    return At(gpu).GetStats();
  }
  void resetPeakStats(c10::DeviceIndex gpu) override { At(gpu).ResetPeakStats(); }

 private:
  static void Delete(void* block) {
    if (block == nullptr) return;
    if (!installed->FreeAtSource(block)) installed->to()->raw_deleter()(block);
  }

  bool FreeAtSource(const void* block) {
    for (const auto& gpu : gpus_) {
      if (gpu->Free(block)) return true;
    }
    return false;
  }

  CudaGpuBlocks& At(c10::DeviceIndex gpu) { return *gpus_.at(static_cast<size_t>(gpu)); }

  std::vector<std::unique_ptr<CudaGpuBlocks>> gpus_;
};

CudaBlocksAllocator* CudaBlocksAllocator::installed = nullptr;

}  // namespace

absl::StatusOr<CudaBlocks*> CudaBlocks::Install() {
  if (CudaBlocksAllocator::installed != nullptr) return CudaBlocksAllocator::installed;
  const int gpus = c10::cuda::device_count();
  if (gpus == 0 || allocator::get() == nullptr) {
    return absl::FailedPreconditionError("there is no GPU whose memory a source could serve");
  }
  InitialiseLazily(c10::DeviceType::CUDA);
  if (WatchGpu(0).count == nullptr) {
    return absl::FailedPreconditionError(
        "LibTorch's CUDA allocator tells of no blocks (PYTORCH_CUDA_ALLOC_CONF=backend), so that "
        "those "
        "of a source could not be counted beside them");
  }
  // Never destroyed: tensors of static storage duration are freed after main.
  CudaBlocksAllocator::installed = new CudaBlocksAllocator(allocator::get(), gpus);
  allocator::allocator.store(CudaBlocksAllocator::installed);
  c10::SetAllocator(c10::DeviceType::CUDA, CudaBlocksAllocator::installed,
                    kSourcedAllocatorPriority);
  return CudaBlocksAllocator::installed;
}

}  // namespace stowage
