// What of a device is left for the activations of a model that LibTorch holds.
#ifndef STOWAGE_CLIENT_AGENT_DEVICE_BUDGET_H_
#define STOWAGE_CLIENT_AGENT_DEVICE_BUDGET_H_

#include "absl/status/statusor.h"
#include "client/torch/model/model_tensors.h"
#include "solvers/model/budget.h"

namespace stowage {

// SubtractFrom for "device_limit". Gradients of tied parameters count twice, as steps hold them
// (ParameterGradients).
absl::StatusOr<DeviceBudget> BudgetOfDevice(const ModelTensors& model, const DeviceLimit& limit);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_AGENT_DEVICE_BUDGET_H_
