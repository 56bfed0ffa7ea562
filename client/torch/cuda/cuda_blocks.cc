#include "client/torch/cuda/cuda_blocks.h"

#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include <memory>
#include <vector>

#include "client/torch/base/lazy_init.h"
#include "client/torch/cuda/cuda_watch.h"
#include "client/torch/cuda/passing_cuda_allocator.h"
#include "client/torch/memory/stream_sources.h"

namespace stowage {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

constexpr size_t kAllPools = 0;  // among the statistics of each kind

// LibTorch's own, of one GPU.
class CudaMemory final : public StreamMemory {
 public:
  CudaMemory(allocator::CUDAAllocator* native, c10::DeviceIndex gpu)
      : native_(native), gpu_(c10::DeviceType::CUDA, gpu) {}

  void EmptyCache() override { native_->emptyCache({0, 0}); }
  void* Allocate(Bytes bytes) override {
    const c10::DeviceGuard guard(gpu_);
    try {
      return native_->raw_alloc_with_stream(static_cast<size_t>(bytes.value()),
                                            c10::cuda::getCurrentCUDAStream(gpu_.index()).stream());
    } catch (const c10::OutOfMemoryError&) {
      return nullptr;
    }
  }
  void Free(void* block) override {
    const c10::DeviceGuard guard(gpu_);
    native_->raw_delete(block);
  }

  c10::Stream CurrentStream() override {
    return c10::cuda::getCurrentCUDAStream(gpu_.index()).unwrap();
  }
  const void* Handle(c10::Stream stream) override { return c10::cuda::CUDAStream(stream).stream(); }
  void Wait(c10::Stream stream, c10::Stream other) override {
    c10::Event event(gpu_.type());
    event.record(other);
    event.block(stream);
  }
  // It takes only blocks that carry its own deleter.
  void RecordStream(void* block, c10::Stream stream) override {
    c10::DataPtr shown(block, block, native_->raw_deleter(), gpu_);
    native_->recordStream(shown, c10::cuda::CUDAStream(stream));
    shown.release_context();
  }
  int64_t PeakOfAllocated() override {
    return native_->getDeviceStats(gpu_.index()).allocated_bytes[kAllPools].peak;
  }

 private:
  allocator::CUDAAllocator* const native_;
  const c10::Device gpu_;
};

struct GpuBlocks {
  GpuBlocks(allocator::CUDAAllocator* native, c10::DeviceIndex gpu)
      : memory(native, gpu), sources(&memory, WatchGpu(gpu).count) {}

  CudaMemory memory;
  StreamSources sources;
};

class CudaBlocksAllocator final : public PassingCudaAllocator, public CudaBlocks {
 public:
  CudaBlocksAllocator(Base* native, int gpus) : PassingCudaAllocator(native) {
    for (int gpu = 0; gpu < gpus; ++gpu) {
      gpus_.push_back(std::make_unique<GpuBlocks>(native, static_cast<c10::DeviceIndex>(gpu)));
    }
  }

  // As LibTorch does with its own; null before.
  static CudaBlocksAllocator* installed;

  SourcedAllocator* Of(int gpu) override {
    const bool exists = gpu >= 0 && gpu < static_cast<int>(gpus_.size());
    return exists ? &gpus_[static_cast<size_t>(gpu)]->sources : nullptr;
  }

  c10::DataPtr allocate(size_t size) override {
    const c10::DeviceIndex gpu = c10::cuda::current_device();
    const c10::Device device(c10::DeviceType::CUDA, gpu);
    void* block = nullptr;
    if (size > 0) {
      StreamSources& blocks = At(gpu).sources;
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
    StreamSources& blocks = At(c10::cuda::current_device()).sources;
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
      if (gpu->sources.RecordStream(data.get(), stream.unwrap())) return;
    }
    At(data.device().index()).memory.RecordStream(data.get(), stream.unwrap());
  }

  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex gpu) override {
    c10::CachingDeviceAllocator::DeviceStats stats = to()->getDeviceStats(gpu);
    auto& said = stats.allocated_bytes[kAllPools];
    const auto shown = At(gpu).sources.WithoutRegions({said.current, said.peak});
    said.current = shown.current;
    said.peak = shown.peak;
    return stats;
  }
  void resetPeakStats(c10::DeviceIndex gpu) override {
    to()->resetPeakStats(gpu);
    At(gpu).sources.ResetPeak();
  }

 private:
  static void Delete(void* block) {
    if (block == nullptr) return;
    if (!installed->FreeAtSource(block)) installed->to()->raw_deleter()(block);
  }

  bool FreeAtSource(const void* block) {
    for (const auto& gpu : gpus_) {
      if (gpu->sources.Free(block)) return true;
    }
    return false;
  }

  GpuBlocks& At(c10::DeviceIndex gpu) { return *gpus_.at(static_cast<size_t>(gpu)); }

  std::vector<std::unique_ptr<GpuBlocks>> gpus_;
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
