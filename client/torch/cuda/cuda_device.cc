#include "client/torch/cuda/cuda_device.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAStream.h>

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "client/torch/base/lazy_init.h"
#include "client/torch/base/torch_status.h"
#include "client/torch/base/torch_version.h"
#include "client/torch/cuda/cuda_timer.h"
#include "client/torch/memory/counting_meter.h"
#include "client/torch/memory/shared_peaks_meter.h"

namespace stowage {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

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

void CopyOn(const CopyPiece& piece, Stream direction, c10::Stream stream) {
  const c10::DeviceGuard guard(stream.device());
  C10_CUDA_CHECK(cudaMemcpyAsync(
      piece.destination, piece.source, piece.bytes,
      direction == Stream::kToHost ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice,
      c10::cuda::CUDAStream(stream).stream()));
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
      watch_(WatchGpu(device.index())),
      link_(link, host_memory, LockedMemory(device)),
      meter_(MeterOf(device, watch_)),
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
  return copies_.Start(direction, pieces);
}

}  // namespace stowage
