// What of a device is left for the activations of a model that LibTorch holds.
#ifndef STOWAGE_CLIENT_AGENT_DEVICE_BUDGET_H_
#define STOWAGE_CLIENT_AGENT_DEVICE_BUDGET_H_

#include "absl/status/statusor.h"
#include "client/torch/model/model_tensors.h"
#include "client/torch/offload/execution_device.h"
#include "solvers/model/budget.h"

namespace stowage {

// The limit, and where it says nothing of memory (0) what this process can have of the device at this moment: what is free
// (ExecutionDevice::FreeMemory), and what the model's own tensors take there. All else that is live stays where it is: the
// optimizer's state, once it is there, is in no limit, and to be stated as 0. Not to be asked within a step.
// INVALID_ARGUMENT for "device_limit.memory": neither says.
absl::StatusOr<DeviceLimit> LimitOfDevice(const ModelTensors& model, DeviceLimit limit,
                                          const ExecutionDevice* device);

// SubtractFrom for "device_limit", of LimitOfDevice. Gradients of tied parameters count twice, as steps hold them
// (ParameterGradients).
absl::StatusOr<DeviceBudget> BudgetOfDevice(const ModelTensors& model, const DeviceLimit& limit,
                                            const ExecutionDevice* device = nullptr);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_AGENT_DEVICE_BUDGET_H_
