#include "tests/bench/gpu/report_device.h"

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "solvers/model/field_error.h"
#include "tests/client/device/test_device.h"
#include "tests/client/device/wait_count.h"
#ifdef STOWAGE_TORCH_CUDA
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include "client/torch/base/deterministic_kernels.h"
#include "client/torch/cuda/cuda_device.h"
#endif

namespace stowage {
namespace {

class ReportTestDevice final : public ReportDevice {
 public:
  bool is_gpu() const override { return false; }
  void BeDeterministic(bool /*may_warn*/) override {}

  absl::StatusOr<std::unique_ptr<ExecutionDevice>> Make(const TransferModel& link) override {
    absl::StatusOr<std::unique_ptr<TestDevice>> made = TestDevice::Create(link);
    if (!made.ok()) return made.status();
    return std::unique_ptr<ExecutionDevice>(*std::move(made));
  }

  int64_t waits() const override { return TestDevice::waits(); }

  Bytes LimitMemory(Bytes of_test_device) override {
    EmptyCache();
    TestDevice::memory().SetLimit(of_test_device.value());
    return of_test_device;
  }

  void EmptyCache() override {
    TestDevice::Synchronize();
    TestDevice::memory().Empty();
  }

  absl::Status TraceKernels(const std::string& /*path*/,
                            const std::function<absl::Status()>& run) override {
    absl::Status status = run();
    TestDevice::Synchronize();
    return status;
  }
};

#ifdef STOWAGE_TORCH_CUDA
class ReportGpu final : public ReportDevice {
 public:
  explicit ReportGpu(int index)
      : index_(index),
        waits_(c10::Device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(index))) {
    BeDeterministic(/*may_warn=*/false);
  }

  bool is_gpu() const override { return true; }
  void BeDeterministic(bool may_warn) override { UseDeterministicKernels(may_warn); }

  absl::StatusOr<std::unique_ptr<ExecutionDevice>> Make(const TransferModel& link) override {
    absl::StatusOr<std::unique_ptr<CudaDevice>> made = CudaDevice::Create(index_, link);
    if (!made.ok()) return made.status();
    return std::unique_ptr<ExecutionDevice>(*std::move(made));
  }

  int64_t waits() const override { return waits_.count(); }

  Bytes LimitMemory(Bytes /*of_test_device*/) override {
    const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(index_));
    EmptyCache();
    size_t free = 0, total = 0;
    C10_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    const auto stats =
        c10::cuda::CUDACachingAllocator::getDeviceStats(static_cast<c10::DeviceIndex>(index_));
    return Bytes(static_cast<int64_t>(free) + stats.reserved_bytes[0].current);
  }

  void EmptyCache() override {
    c10::cuda::device_synchronize();
    c10::cuda::CUDACachingAllocator::emptyCache();
  }

  absl::Status TraceKernels(const std::string& path,
                            const std::function<absl::Status()>& run) override {
    using torch::profiler::impl::ActivityType;
    const torch::profiler::impl::ProfilerConfig config(
        torch::profiler::impl::ProfilerState::KINETO);
    const std::set<ActivityType> activities = {ActivityType::CPU, ActivityType::CUDA};
    torch::autograd::profiler::prepareProfiler(config, activities);
    torch::autograd::profiler::enableProfiler(config, activities);
    absl::Status status = run();
    c10::cuda::device_synchronize();
    torch::autograd::profiler::disableProfiler()->save(path);
    return status;
  }

 private:
  const int index_;
  const WaitCount waits_;
};

// Where there is one.
std::unique_ptr<ReportDevice> GpuOf(int index) {
  if (index >= c10::cuda::device_count()) return nullptr;
  return std::make_unique<ReportGpu>(index);
}
#else
std::unique_ptr<ReportDevice> GpuOf(int /*index*/) { return nullptr; }
#endif

}  // namespace

absl::StatusOr<std::unique_ptr<ReportDevice>> ReportDeviceNamed(const std::string& name) {
  if (name == "test") return std::make_unique<ReportTestDevice>();
  const std::vector<std::string> parts = absl::StrSplit(name, absl::MaxSplits(':', 1));
  int index = 0;
  const bool numbered = parts.size() == 1 || (absl::SimpleAtoi(parts[1], &index) && index >= 0);
  if (parts[0] != "cuda" || !numbered) {
    return FieldError("--device", name, "must be test, cuda or cuda:N");
  }
  std::unique_ptr<ReportDevice> gpu = GpuOf(index);
  if (gpu == nullptr) return FieldError("--device", name, "is not there");
  return gpu;
}

}  // namespace stowage
