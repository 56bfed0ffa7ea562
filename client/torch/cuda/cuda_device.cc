#include "client/torch/cuda/cuda_device.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "client/torch/base/lazy_init.h"
#include "client/torch/base/torch_status.h"
#include "client/torch/base/torch_version.h"
#include "client/torch/cuda/cuda_event.h"
#include "client/torch/cuda/cuda_timer.h"
#include "client/torch/memory/counting_meter.h"

namespace stowage {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

cudaStream_t Raw(const c10::Stream& stream) { return c10::cuda::CUDAStream(stream).stream(); }

// What tensors asked for. The first of each statistic is the sum over the allocator's pools. How large the blocks are depends
// on what the allocator keeps: not the same from step to step.
const auto& Asked(const allocator::DeviceStats& stats) {
#if STOWAGE_TORCH_AT_LEAST(2, 1)
  return stats.requested_bytes[0];
#else
  return stats.active_bytes[0];
#endif
}

// By the allocator's own peaks, of which there is one of each.
class CudaMeter final : public MemoryMeter {
 public:
  CudaMeter(c10::DeviceIndex index, RefusalLog* refusals) : index_(index), refusals_(refusals) {}

  Bytes current() const override { return Bytes(Asked(Stats()).current); }
  Bytes peak() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::max(earlier_peak_, Bytes(Asked(Stats()).peak));
  }
  void ResetPeak() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    earlier_peak_ = earlier_blocks_ = earlier_reserved_ = Bytes(0);
    allocator::resetPeakStats(index_);
  }
  // The allocator has one peak, which begins anew: what it was is kept here.
  Bytes TakeRecentPeak() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const allocator::DeviceStats stats = Stats();
    const Bytes recent(Asked(stats).peak);
    earlier_peak_ = std::max(earlier_peak_, recent);
    earlier_blocks_ = std::max(earlier_blocks_, Bytes(stats.active_bytes[0].peak));
    earlier_reserved_ = std::max(earlier_reserved_, Bytes(stats.reserved_bytes[0].peak));
    allocator::resetPeakStats(index_);
    return recent;
  }
  // What other streams still use is among the active.
  Bytes block_bytes() const override { return Bytes(Stats().active_bytes[0].current); }
  Bytes peak_block_bytes() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::max(earlier_blocks_, Bytes(Stats().active_bytes[0].peak));
  }
  Bytes reserved() const override { return Bytes(Stats().reserved_bytes[0].current); }
  Bytes peak_reserved() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::max(earlier_reserved_, Bytes(Stats().reserved_bytes[0].peak));
  }
  RefusalLog* refusals() override { return refusals_; }

 private:
  allocator::DeviceStats Stats() const { return allocator::getDeviceStats(index_); }

  const c10::DeviceIndex index_;
  RefusalLog* const refusals_;
  mutable std::mutex mutex_;
  Bytes earlier_peak_;  // since the last ResetPeak, up to the last TakeRecentPeak
  Bytes earlier_blocks_;
  Bytes earlier_reserved_;
};

std::unique_ptr<MemoryMeter> MeterOf(c10::Device device, const CudaWatch& watch) {
  if (watch.count != nullptr) return std::make_unique<CountingMeter>(watch.count, watch.refusals);
  return std::make_unique<CudaMeter>(device.index(), watch.refusals);
}

cudaError_t CopyAll(const std::vector<CopyPiece>& pieces, cudaMemcpyKind kind,
                    cudaStream_t stream) {
  for (const CopyPiece& piece : pieces) {
    const cudaError_t error =
        cudaMemcpyAsync(piece.destination, piece.source, piece.bytes, kind, stream);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

class CudaCopy final : public DeviceCopy {
 public:
  CudaCopy(c10::Device device, cudaStream_t stream, const std::vector<CopyPiece>& pieces,
           cudaMemcpyKind kind)
      : device_(device) {
    CudaEvent ready;
    ready.Record(Compute());
    C10_CUDA_CHECK(ready.Block(stream));
    const cudaError_t error = CopyAll(pieces, kind, stream);
    done_.Record(stream);
    if (error == cudaSuccess) return;
    // Some pieces may be on their way.
    C10_CUDA_IGNORE_ERROR(done_.Block(Compute()));
    C10_CUDA_CHECK(error);
  }

  ~CudaCopy() override {
    if (waited_) return;
    const c10::DeviceGuard guard(device_);
    C10_CUDA_IGNORE_ERROR(done_.Block(Compute()));
  }

  void Wait() override {
    const c10::DeviceGuard guard(device_);
    C10_CUDA_CHECK(done_.Block(Compute()));
    waited_ = true;
  }

 private:
  cudaStream_t Compute() const { return c10::cuda::getCurrentCUDAStream(device_.index()).stream(); }

  const c10::Device device_;
  CudaEvent done_;
  bool waited_ = false;
};

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

c10::Stream NewStream(c10::Device device) {
  return c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index()).unwrap();
}

}  // namespace

CudaDevice::CudaDevice(c10::Device device, const std::optional<TransferModel>& link,
                       Bytes host_memory)
    : device_(device),
      watch_(WatchGpu(device.index())),
      link_(link, host_memory, LockedMemory(device)),
      meter_(MeterOf(device, watch_)),
      to_host_(NewStream(device)),
      to_device_(one_channel() ? to_host_ : NewStream(device)) {}

// Copies that were given up may still write to the pool.
CudaDevice::~CudaDevice() {
  C10_CUDA_IGNORE_ERROR(cudaStreamSynchronize(Raw(to_host_)));
  C10_CUDA_IGNORE_ERROR(cudaStreamSynchronize(Raw(to_device_)));
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
    return std::unique_ptr<CudaDevice>(new CudaDevice(device, link, host_memory));
  } catch (...) {
    return CurrentExceptionToStatus(absl::StrCat("GPU ", index), absl::StatusCode::kInternal);
  }
}

absl::Status CudaDevice::SetLink(const TransferModel& link) {
  absl::Status status = link_.SetLink(link);
  if (status.ok() && one_channel()) to_device_ = to_host_;
  return status;
}

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

std::unique_ptr<StageTimer> CudaDevice::MakeTimer() { return MakeCudaTimer(device_); }

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

std::unique_ptr<DeviceCopy> CudaDevice::StartCopy(Stream direction,
                                                  const std::vector<CopyPiece>& pieces) {
  const c10::DeviceGuard guard(device_);
  const bool to_host = direction == Stream::kToHost;
  return std::make_unique<CudaCopy>(device_, Raw(to_host ? to_host_ : to_device_), pieces,
                                    to_host ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice);
}

}  // namespace stowage
