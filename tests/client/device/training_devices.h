// The devices that fixtures of training are parametrised over.
#ifndef STOWAGE_TESTS_CLIENT_DEVICE_TRAINING_DEVICES_H_
#define STOWAGE_TESTS_CLIENT_DEVICE_TRAINING_DEVICES_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <string>

#include "client/torch/memory/memory_meter.h"
#include "client/torch/model/model_tensors.h"
#include "client/torch/offload/execution_device.h"

namespace stowage {

struct TrainingDevice {
  // "cpu" or "test" (TestDevice).
  std::string name;
  c10::Device device = c10::kCPU;
  // Null: the CPU, which the installed TrackingAllocator measures.
  ExecutionDevice* execution = nullptr;
  // Blocks are what was asked for, to the byte.
  bool exact = true;
  MemoryMeter* meter() const { return execution == nullptr ? nullptr : execution->meter(); }
};

// The one of the process.
const TrainingDevice& TrainingDeviceNamed(const std::string& name);

// Puts a model there, for all who hold its tensors.
void MoveTo(c10::Device device, const ModelTensors& model);

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_DEVICE_TRAINING_DEVICES_H_
