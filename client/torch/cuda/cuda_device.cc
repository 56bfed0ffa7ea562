#include "client/torch/cuda/cuda_device.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/cuda/CachingHostAllocator.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "absl/strings/str_cat.h"
#include "client/torch/base/lazy_init.h"
#include "client/torch/base/torch_status.h"
#include "client/torch/base/torch_version.h"
#include "client/torch/memory/allocation_count.h"
#include "client/torch/memory/counting_meter.h"
#include "client/torch/memory/memory_refusal.h"
#include "client/torch/memory/shared_peaks_meter.h"
#include "client/torch/offload/compute_copies.h"
#include "client/torch/offload/queued_timer.h"

namespace stowage {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

constexpr Bytes kGranularity(512);

// What LibTorch's allocator tells of a GPU.
struct CudaWatch {
  // Null before LibTorch 2.7, and where the allocator is one that tells of no blocks (cudaMallocAsync).
  AllocationCount* count = nullptr;
  // Null before LibTorch 2.7.
  RefusalLog* refusals = nullptr;
};

#if STOWAGE_TORCH_AT_LEAST(2, 7)
Bytes AsBytes(size_t bytes) { return Bytes(static_cast<int64_t>(bytes)); }

// Called under the allocator's own lock.
void Tell(const allocator::TraceEntry& event, AllocationCount* count) {
  using Event = allocator::TraceEntry;
  const Bytes bytes = AsBytes(event.size_);
  if (event.action_ == Event::ALLOC) return count->Allocated(bytes);
  // A free that was asked for changes nothing until no stream uses the block.
  if (event.action_ == Event::FREE_COMPLETED) return count->Freed(bytes);
  if (event.action_ == Event::SEGMENT_ALLOC || event.action_ == Event::SEGMENT_MAP) {
    return count->Reserved(bytes);
  }
  if (event.action_ == Event::SEGMENT_FREE || event.action_ == Event::SEGMENT_UNMAP) {
    return count->Released(bytes);
  }
}

AllocationCount::Sums Snapshot(c10::DeviceIndex gpu, const AllocationCount& count) {
  AllocationCount::Sums sums;
  for (const auto& segment : allocator::snapshot().segments) {
    if (segment.device != gpu) continue;
    sums.reserved += AsBytes(segment.total_size);
    for (const auto& block : segment.blocks) {
      if (!block.active) continue;
      sums.requested += AsBytes(block.requested_size);
      sums.blocks += count.Block(AsBytes(block.requested_size));
    }
  }
  return sums;
}

struct GpuEvents {
  AllocationCount count{kGranularity};
  RefusalLog refusals;
};

class Watch {
 public:
  Watch() : gpus_(static_cast<size_t>(c10::cuda::device_count())) {
    allocator::attachOutOfMemoryObserver(
        [this](int64_t gpu, size_t asked, size_t total, size_t free) {
          NoteRefusal(static_cast<c10::DeviceIndex>(gpu), AsBytes(asked), AsBytes(total),
                      AsBytes(free));
        });
    try {
      allocator::attachAllocatorTraceTracker(
          [this](const allocator::TraceEntry& event) { Tell(event, &At(event.device_).count); });
    } catch (const c10::Error&) {
      return;
    }
    counts_ = true;
    for (size_t i = 0; i < gpus_.size(); ++i) {
      gpus_[i].count.StartFrom(
          [&] { return Snapshot(static_cast<c10::DeviceIndex>(i), gpus_[i].count); });
    }
  }

  CudaWatch Of(c10::DeviceIndex gpu) {
    return {counts_ ? &At(gpu).count : nullptr, &At(gpu).refusals};
  }

 private:
  GpuEvents& At(c10::DeviceIndex gpu) { return gpus_.at(static_cast<size_t>(gpu)); }

  // Called without that lock. `total` is less than the GPU has where the process may use a share.
  void NoteRefusal(c10::DeviceIndex gpu, Bytes asked, Bytes total, Bytes free) {
    const allocator::DeviceStats stats = allocator::getDeviceStats(gpu);
    const Bytes reserved(stats.reserved_bytes[0].current);
    const Bytes live =
        counts_ ? At(gpu).count.now().requested : Bytes(stats.requested_bytes[0].current);
    At(gpu).refusals.Note({asked, live, reserved, std::min(reserved + free, total), Bytes(0)});
  }

  std::deque<GpuEvents> gpus_;
  bool counts_ = false;
};

// From the first call of the process on, for good: the allocator forgets nobody who listens.
CudaWatch WatchGpu(c10::DeviceIndex gpu) {
  static auto* const watch = new Watch();
  return watch->Of(gpu);
}
#else
CudaWatch WatchGpu(c10::DeviceIndex /*gpu*/) { return {}; }
#endif

// The first of each statistic is the sum over the allocator's pools.
class CudaFigures final : public AllocatorFigures {
 public:
  CudaFigures(c10::DeviceIndex index, RefusalLog* refusals) : index_(index), refusals_(refusals) {}

  Figures Read() const override {
    const allocator::DeviceStats stats = allocator::getDeviceStats(index_);
#if STOWAGE_TORCH_AT_LEAST(2, 1)
    const auto& requested = stats.requested_bytes[0];
#else
    const auto& requested = stats.active_bytes[0];
#endif
    // What other streams still use is among the active.
    return {Of(requested), Of(stats.active_bytes[0]), Of(stats.reserved_bytes[0])};
  }
  void ResetPeaks() override { allocator::resetPeakStats(index_); }
  RefusalLog* refusals() override { return refusals_; }

 private:
  template <class Statistic>
  static Figure Of(const Statistic& statistic) {
    return {Bytes(statistic.current), Bytes(statistic.peak)};
  }

  const c10::DeviceIndex index_;
  RefusalLog* const refusals_;
};

std::unique_ptr<MemoryMeter> MeterOf(c10::Device device, const CudaWatch& watch) {
  if (watch.count != nullptr) return std::make_unique<CountingMeter>(watch.count, watch.refusals);
  return std::make_unique<SharedPeaksMeter>(
      std::make_unique<CudaFigures>(device.index(), watch.refusals));
}

class TimedEvent {
 public:
  TimedEvent() { C10_CUDA_CHECK(cudaEventCreate(&event_)); }
  TimedEvent(const TimedEvent&) = delete;
  TimedEvent& operator=(const TimedEvent&) = delete;
  ~TimedEvent() { C10_CUDA_IGNORE_ERROR(cudaEventDestroy(event_)); }

  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

// The current stream of the calling thread, which may have been another one at a mark. Nothing to be compiled for a GPU.
class CudaQueue final : public GatedQueue {
 public:
  explicit CudaQueue(c10::Device device) : device_(device) {}
  ~CudaQueue() override {
    const c10::DeviceGuard guard(device_);
    events_.clear();
  }

  void Mark(size_t mark) override {
    const c10::DeviceGuard guard(device_);
    while (mark >= events_.size()) events_.emplace_back();
    C10_CUDA_CHECK(cudaEventRecord(events_[mark].get(), Compute()));
  }

  bool Passed(size_t mark) override {
    const cudaError_t state = cudaEventQuery(events_[mark].get());
    if (state != cudaErrorNotReady) C10_CUDA_CHECK(state);
    cudaGetLastError();  // or the next call would report that it is not ready
    return state == cudaSuccess;
  }

  void Wait(size_t mark) override {
    c10::cuda::warn_or_error_on_sync();  // those who asked LibTorch for it
    C10_CUDA_CHECK(cudaEventSynchronize(events_[mark].get()));
  }

  Nanos Between(size_t start, size_t stop) override {
    const c10::DeviceGuard guard(device_);
    float milliseconds = 0;
    C10_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, events_[start].get(), events_[stop].get()));
    return Nanos(std::llround(static_cast<double>(milliseconds) * 1e6));
  }

  void Call(void (*function)(void*), void* argument) override {
    const c10::DeviceGuard guard(device_);
    C10_CUDA_CHECK(cudaLaunchHostFunc(Compute(), function, argument));
  }

 private:
  cudaStream_t Compute() const { return c10::cuda::getCurrentCUDAStream(device_.index()).stream(); }

  const c10::Device device_;
  std::deque<TimedEvent> events_;
};

void CopyOn(const CopyPiece& piece, Stream direction, c10::Stream stream) {
  const c10::DeviceGuard guard(stream.device());
  C10_CUDA_CHECK(cudaMemcpyAsync(
      piece.destination, piece.source, piece.bytes,
      direction == Stream::kToHost ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice,
      c10::cuda::CUDAStream(stream).stream()));
}

// Kernels reach page-locked memory themselves.
void CopyByKernels(const std::vector<CopyPiece>& pieces, const at::Tensor& host_block,
                   c10::Device device) {
  const c10::DeviceGuard guard(device);
  const auto bytes_at = [device](void* data, size_t bytes) {
    return at::for_blob(data, {static_cast<int64_t>(bytes)})
        .options(at::TensorOptions(device).dtype(at::kByte))
        .target_device(device)
        .make_tensor();
  };
  std::vector<at::Tensor> to, from;
  for (const CopyPiece& piece : pieces) {
    if (piece.bytes == 0) continue;
    to.push_back(bytes_at(piece.destination, piece.bytes));
    from.push_back(bytes_at(const_cast<void*>(piece.source), piece.bytes));
  }
  if (to.empty()) return;
#if STOWAGE_TORCH_AT_LEAST(2, 1)
  at::_foreach_copy_(to, from);
#else
  for (size_t i = 0; i < to.size(); ++i) at::bitwise_or_out(to[i], from[i], at::Scalar(0));
#endif
  // Or the block might be another's before the kernels have run.
  void* const context = host_block.storage().data_ptr().get_context();
  const c10::cuda::CUDAStream compute = c10::cuda::getCurrentCUDAStream(device.index());
#if STOWAGE_TORCH_AT_LEAST(2, 8)
  at::getHostAllocator(at::kCUDA)->record_event(host_block.data_ptr(), context, compute.unwrap());
#else
  at::cuda::CachingHostAllocator_recordEvent(host_block.data_ptr(), context, compute);
#endif
}

// Page-locked, so that copies from and to it run beside compute.
HostPool::Source LockedMemory(c10::Device device) {
  return {[device](size_t bytes) -> void* {
            const c10::DeviceGuard guard(device);
            void* data = nullptr;
            if (cudaHostAlloc(&data, bytes, cudaHostAllocDefault) == cudaSuccess) return data;
            cudaGetLastError();  // or the next call would report it
            return nullptr;
          },
          [](void* data) { C10_CUDA_IGNORE_ERROR(cudaFreeHost(data)); }};
}

cudaDeviceProp PropertiesOf(c10::Device device) {
  cudaDeviceProp properties;
  C10_CUDA_CHECK(cudaGetDeviceProperties(&properties, device.index()));
  return properties;
}

}  // namespace

CudaDevice::CudaDevice(c10::Device device, const std::optional<TransferModel>& link,
                       Bytes host_memory)
    : device_(device),
      link_(link, host_memory, LockedMemory(device)),
      meter_(MeterOf(device, WatchGpu(device.index()))),
      copies_(device, &CopyOn) {
  if (one_channel()) copies_.ShareOneStream();
}

absl::StatusOr<std::unique_ptr<CudaDevice>> CudaDevice::Create(
    int index, const std::optional<TransferModel>& link, Bytes host_memory) {
  if (link) {
    absl::Status status = ValidateTransferModel(*link);
    if (!status.ok()) return status;
  }
  const int count = c10::cuda::device_count();
  if (index < 0 || index >= count) {
    return absl::FailedPreconditionError(
        absl::StrCat("there is no GPU ", index, ", their number is ", count));
  }
  try {
    const c10::Device device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(index));
    // Before, the allocator serves nobody; before its first block, it has no statistics.
    InitialiseLazily(device.type());
    const c10::DeviceGuard guard(device);
    c10::GetAllocator(device.type())->allocate(1);
    UseComputeCopies(device.type(), &CopyByKernels);
    return std::unique_ptr<CudaDevice>(new CudaDevice(device, link, host_memory));
  } catch (...) {
    return CurrentExceptionToStatus(absl::StrCat("GPU ", index), absl::StatusCode::kInternal);
  }
}

absl::Status CudaDevice::SetLink(const TransferModel& link) {
  absl::Status status = link_.SetLink(link);
  if (status.ok() && one_channel()) copies_.ShareOneStream();
  return status;
}

Bytes CudaDevice::granularity() const { return kGranularity; }

std::optional<Bytes> CudaDevice::FreeMemory() const {
  const c10::DeviceGuard guard(device_);
  size_t free = 0, total = 0;
  C10_CUDA_CHECK(cudaMemGetInfo(&free, &total));
  const allocator::DeviceStats stats = allocator::getDeviceStats(device_.index());
  const int64_t unused = stats.reserved_bytes[0].current - stats.active_bytes[0].current;
  return Bytes(static_cast<int64_t>(free) + unused);
}

void CudaDevice::GiveBackUnused() { allocator::emptyCache(); }

bool CudaDevice::IsCapturing() const {
  const c10::DeviceGuard guard(device_);
  return c10::cuda::currentStreamCaptureStatusMayInitCtx() != c10::cuda::CaptureStatus::None;
}

std::unique_ptr<StageTimer> CudaDevice::MakeTimer() {
  return MakeQueuedTimer(std::make_unique<CudaQueue>(device_));
}

Device CudaDevice::Hardware() const {
  const cudaDeviceProp properties = PropertiesOf(device_);
  Device device;
  device.model = properties.name;
  device.allocation_granularity = granularity();
  device.memory = Bytes(static_cast<int64_t>(properties.totalGlobalMem));
  return device;
}

std::vector<DeviceSetting> CudaDevice::Software() const {
  int runtime = 0, driver = 0;
  C10_CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
  C10_CUDA_CHECK(cudaDriverGetVersion(&driver));
  const at::CUDAHooksInterface& hooks = at::detail::getCUDAHooks();
  const long cudnn = hooks.compiledWithCuDNN() ? hooks.versionCuDNN() : 0;
  return {{"cuda", absl::StrCat(runtime)},
          {"driver", absl::StrCat(driver)},
          {"cudnn", absl::StrCat(cudnn)},
          {"multiprocessors", absl::StrCat(PropertiesOf(device_).multiProcessorCount)}};
}

std::optional<CudaKernels> CudaDevice::cuda_kernels() const {
  const at::CUDAHooksInterface& hooks = at::detail::getCUDAHooks();
  if (!hooks.compiledWithCuDNN() || !at::globalContext().userEnabledCuDNN()) return CudaKernels();
  return CudaKernels{hooks.versionCuDNN(), PropertiesOf(device_).major >= 8};
}

std::unique_ptr<DeviceCopy> CudaDevice::StartCopy(Stream direction,
                                                  const std::vector<CopyPiece>& pieces) {
  return copies_.Start(direction, pieces);
}

}  // namespace stowage
