#include "client/cli/training_device.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "client/cli/script_flags.h"
#include "client/cli/training_commands.h"
#include "client/torch/offload/simulated_device.h"
#include "solvers/model/field_error.h"
#ifdef STOWAGE_TORCH_CUDA
#include <c10/cuda/CUDAFunctions.h>

#include "client/torch/cuda/cuda_device.h"
#endif

namespace stowage {
namespace {

absl::Status DeviceError(const std::string& rule) {
  return FieldError("--device", absl::GetFlag(FLAGS_device), rule);
}

std::vector<OtherDevice>& OtherDevices() {
  static auto* const devices = new std::vector<OtherDevice>();
  return *devices;
}

#ifdef STOWAGE_TORCH_CUDA
absl::Status CheckGpu(int index) {
  const int count = c10::cuda::device_count();
  if (index < count) return absl::OkStatus();
  return DeviceError(count == 0
                         ? std::string("CUDA finds no GPU here; cpu is there")
                         : absl::StrCat("must be less than cuda:", count, ": there are so many"));
}

absl::StatusOr<std::unique_ptr<ExecutionDevice>> GpuOf(int index) {
  absl::StatusOr<std::unique_ptr<CudaDevice>> gpu = CudaDevice::Create(index);
  if (!gpu.ok()) return gpu.status();
  return std::unique_ptr<ExecutionDevice>(*std::move(gpu));
}
#else
absl::Status CheckGpu(int /*index*/) {
  return DeviceError("LibTorch was built without CUDA: this build has cpu alone");
}

absl::StatusOr<std::unique_ptr<ExecutionDevice>> GpuOf(int /*index*/) {
  return DeviceError("LibTorch was built without CUDA");
}
#endif

}  // namespace

void AddOtherDevice(OtherDevice device) { OtherDevices().push_back(std::move(device)); }

absl::StatusOr<c10::Device> DeviceFromFlag() {
  const std::string text = absl::GetFlag(FLAGS_device);
  if (text == "cpu") return c10::Device(c10::kCPU);
  for (const OtherDevice& other : OtherDevices()) {
    if (text == other.name) return other.device;
  }
  const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  int index = 0;
  const bool parsed = parts[0] == "cuda" &&
                      (parts.size() == 1 || (absl::SimpleAtoi(parts[1], &index) && index >= 0));
  if (!parsed || index > 127) return DeviceError("must be cpu, cuda or cuda:n, such as cuda:1");
  const absl::Status status = CheckGpu(index);
  if (!status.ok()) return status;
  return c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(index));
}

absl::StatusOr<std::optional<TransferModel>> LinkFromFlag() {
  constexpr Bytes kHostMemory(int64_t{1} << 40);
  const std::string text = absl::GetFlag(FLAGS_link);
  if (text.empty()) return std::nullopt;
  const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  double speed = 0;
  absl::Duration latency;
  const bool parsed = absl::SimpleAtod(parts[0], &speed) &&
                      (parts.size() == 1 || absl::ParseDuration(parts[1], &latency));
  if (!parsed || !(speed >= 1e-6 && speed <= 1e6) || latency < absl::ZeroDuration() ||
      latency > absl::Hours(1)) {
    return FieldError("--link", text,
                      "must be GB/s in [0.000001, 1000000], then \":\" and a "
                      "latency up to 1h or nothing, such as 12 or 12:10us");
  }
  const CopyCost cost{static_cast<int64_t>(speed * 1e9), Nanos(absl::ToInt64Nanoseconds(latency))};
  return TransferModel{cost, cost, /*full_duplex=*/true, kHostMemory};
}

absl::StatusOr<std::unique_ptr<ExecutionDevice>> ExecutionDeviceOn(
    c10::Device device, const std::optional<TransferModel>& link) {
  if (link && !device.is_cpu()) {
    return FieldError("--link", absl::GetFlag(FLAGS_link), "is simulated on a cpu alone");
  }
  if (device.is_cuda()) return GpuOf(device.index());
  for (const OtherDevice& other : OtherDevices()) {
    if (other.device == device) return other.create();
  }
  if (!link) return nullptr;
  absl::StatusOr<std::unique_ptr<SimulatedDevice>> simulated = SimulatedDevice::Create(*link);
  if (!simulated.ok()) return simulated.status();
  return std::unique_ptr<ExecutionDevice>(*std::move(simulated));
}

}  // namespace stowage
