#include "tests/client/device/training_devices.h"

#include <map>

#include "tests/client/device/test_device.h"

namespace stowage {
namespace {

TrainingDevice Make(const std::string& name) {
  TrainingDevice device;
  device.name = name;
  if (name == "test") {
    static auto* const test_device = TestDevice::Create().value().release();
    device.device = test_device->device();
    device.execution = test_device;
    device.exact = false;
  }
  return device;
}

}  // namespace

const TrainingDevice& TrainingDeviceNamed(const std::string& name) {
  static auto* const devices = new std::map<std::string, TrainingDevice>();
  const auto known = devices->find(name);
  return known != devices->end() ? known->second : devices->emplace(name, Make(name)).first->second;
}

void MoveTo(c10::Device device, const ModelTensors& model) {
  if (device.is_cpu()) return;
  for (const at::Tensor& parameter : model.parameters()) MoveTo(device, parameter);
  for (const at::Tensor& buffer : model.buffers()) MoveTo(device, buffer);
}

}  // namespace stowage
