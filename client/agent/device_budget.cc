#include "client/agent/device_budget.h"

#include <cstdint>

namespace stowage {
namespace {

int64_t BytesOf(const at::Tensor& tensor) { return static_cast<int64_t>(tensor.nbytes()); }

ModelBytes Count(const ModelTensors& model) {
  ModelBytes bytes;
  for (const at::Tensor& parameter : model.parameters()) {
    const Bytes size(BytesOf(parameter));
    bytes.parameters += size;
    if (!parameter.requires_grad()) continue;
    bytes.trained += size;
    if (parameter.grad().defined()) bytes.allocated += size;
  }
  for (const at::Tensor& parameter : model.tied_parameters()) {
    if (parameter.requires_grad()) bytes.tied += Bytes(BytesOf(parameter));
  }
  for (const at::Tensor& buffer : model.buffers()) bytes.buffers += Bytes(BytesOf(buffer));
  return bytes;
}

}  // namespace

absl::StatusOr<DeviceBudget> BudgetOfDevice(const ModelTensors& model, const DeviceLimit& limit) {
  return SubtractFrom("device_limit", limit, Count(model));
}

}  // namespace stowage
