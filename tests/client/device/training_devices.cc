#include "tests/client/device/training_devices.h"

#include <c10/util/Exception.h>

#include <map>

#include "client/torch/execute/run_backward.h"
#include "client/torch/memory/tracking_allocator.h"
#include "client/torch/offload/device_use.h"
#include "client/torch/offload/simulated_device.h"
#include "tests/client/device/test_device.h"
#ifdef STOWAGE_TORCH_CUDA
#include <c10/cuda/CUDAFunctions.h>

#include "client/torch/cuda/cuda_device.h"
#endif

namespace stowage {
namespace {

void UseTestDevice(TrainingDevice* device) {
  static auto* const test_device = TestDevice::Create().value().release();
  device->device = test_device->device();
  device->execution = test_device;
  device->exact = false;
  device->has_autocast = TestDevice::has_autocast();
}

#ifdef STOWAGE_TORCH_CUDA
void UseGpu(TrainingDevice* device) {
  if (c10::cuda::device_count() == 0) {
    device->missing = "there is no GPU here";
    return;
  }
  const CopyCost cost{int64_t{10} << 30, Nanos(10000)};
  static auto* const gpu =
      CudaDevice::Create(0, TransferModel{cost, cost, /*full_duplex=*/true, Bytes(64 << 20)})
          .value()
          .release();
  device->device = gpu->device();
  device->execution = gpu;
  device->exact = false;
}
#else
void UseGpu(TrainingDevice* device) { device->missing = "LibTorch was built without CUDA"; }
#endif

TrainingDevice Make(const std::string& name) {
  TrainingDevice device;
  device.name = name;
  if (name == "test") {
    UseTestDevice(&device);
  } else if (name == "cuda") {
    UseGpu(&device);
  } else {
    TORCH_CHECK(name == "cpu", "there is no training device ", name);
  }
  return device;
}

}  // namespace

MemoryMeter* TrainingDevice::meter() const {
  return execution == nullptr ? TrackingAllocator::Get() : execution->meter();
}

Bytes TrainingDevice::live() const {
  if (!device.is_cpu()) EmptyQueues(device);
  return meter()->current();
}

void TrainingDevice::LimitMemory(Bytes more) const {
  TORCH_CHECK(limits_memory(), name, " has no limit to the byte");
  if (device.is_cpu()) {
    TrackingAllocator::Get()->SetLimit(TrackingAllocator::Get()->current() + more);
  } else {
    TestDevice::memory().SetLiveLimit(TestDevice::memory().stats().allocated_bytes + more.value());
  }
}

void TrainingDevice::ClearLimit() const {
  if (device.is_cpu()) {
    TrackingAllocator::Get()->ClearLimit();
  } else if (limits_memory()) {
    TestDevice::memory().SetLiveLimit(INT64_MAX);
  }
}

namespace {

std::map<std::string, TrainingDevice>& Devices() {
  static auto* const devices = new std::map<std::string, TrainingDevice>();
  return *devices;
}

}  // namespace

std::unique_ptr<ExecutionDevice> MakeLinkedDevice(const TrainingDevice& device,
                                                  const TransferModel& link) {
  TORCH_CHECK(device.missing.empty(), device.missing);
  if (device.device.is_cpu()) return SimulatedDevice::Create(link).value();
#ifdef STOWAGE_TORCH_CUDA
  if (device.device.is_cuda()) return CudaDevice::Create(0, link).value();
#endif
  return TestDevice::Create(link).value();
}

const TrainingDevice& TrainingDeviceNamed(const std::string& name) {
  const auto known = Devices().find(name);
  return known != Devices().end() ? known->second
                                  : Devices().emplace(name, Make(name)).first->second;
}

void FinishTrainingDevices() {
  for (const auto& [name, device] : Devices()) {
    if (!device.device.is_cpu()) WaitFor(device.device);
  }
}

void MoveTo(c10::Device device, const std::vector<at::Tensor>& tensors) {
  if (device.is_cpu()) return;
  for (const at::Tensor& tensor : tensors) MoveTo(device, tensor);
}

void MoveTo(c10::Device device, const ModelTensors& model) {
  MoveTo(device, model.parameters());
  MoveTo(device, model.buffers());
}

}  // namespace stowage
