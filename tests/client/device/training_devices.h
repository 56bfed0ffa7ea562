// The devices that fixtures of training are parametrised over.
#ifndef STOWAGE_TESTS_CLIENT_DEVICE_TRAINING_DEVICES_H_
#define STOWAGE_TESTS_CLIENT_DEVICE_TRAINING_DEVICES_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <memory>
#include <string>
#include <vector>

#include "client/torch/memory/memory_meter.h"
#include "client/torch/model/model_tensors.h"
#include "client/torch/offload/execution_device.h"
#include "solvers/model/transfer_model.h"
#include "solvers/model/units.h"

namespace stowage {

struct TrainingDevice {
  // "cpu", "test" (TestDevice) or "cuda" (the first GPU).
  std::string name;
  // Why there is none here: all else is then the CPU's, and tests are skipped (SKIP_IF_MISSING). Empty where there is.
  std::string missing;
  c10::Device device = c10::kCPU;
  // Null: the CPU, which the installed TrackingAllocator measures.
  ExecutionDevice* execution = nullptr;
  // Blocks are what was asked for, to the byte.
  bool exact = true;
  // LibTorch casts for it by itself.
  bool has_autocast = true;

  // Of `execution`, or the installed one.
  MemoryMeter* meter() const;
  // What tensors hold. Autograd's thread for the device may hold on to what it ran last, until the next forward: it lets go.
  Bytes live() const;
  // From now on what is live may grow by so much and no more; only where limits_memory().
  void LimitMemory(Bytes more) const;
  void ClearLimit() const;
  bool limits_memory() const { return !device.is_cuda(); }
};

// Another device of that kind, with copies over that link: on the CPU a SimulatedDevice. Only where there is one.
std::unique_ptr<ExecutionDevice> MakeLinkedDevice(const TrainingDevice& device,
                                                  const TransferModel& link);

// The one of the process. Any other name than those above ends it.
const TrainingDevice& TrainingDeviceNamed(const std::string& name);

// Waits for what those that were asked for still have to do: their queues hold memory of the host, too.
void FinishTrainingDevices();

// Puts tensors there, or a model's, for all who hold them.
void MoveTo(c10::Device device, const std::vector<at::Tensor>& tensors);
void MoveTo(c10::Device device, const ModelTensors& model);

}  // namespace stowage

// In SetUp, or at the beginning of a test.
#define SKIP_IF_MISSING(training_device) \
  if (!(training_device).missing.empty()) GTEST_SKIP() << (training_device).missing

#endif  // STOWAGE_TESTS_CLIENT_DEVICE_TRAINING_DEVICES_H_
