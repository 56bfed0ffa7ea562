#include "client/agent/device_budget.h"

#include <cstdint>
#include <optional>

#include "solvers/model/field_error.h"

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

absl::StatusOr<DeviceLimit> LimitOfDevice(const ModelTensors& model, DeviceLimit limit,
                                          const ExecutionDevice* device) {
  if (limit.memory != Bytes(0)) return limit;
  const std::optional<Bytes> free = device == nullptr ? std::nullopt : device->FreeMemory();
  if (!free) {
    return FieldError("device_limit.memory", 0,
                      "must be given: this device does not say how much of its memory is free");
  }
  const ModelBytes bytes = Count(model);
  limit.memory = *free + bytes.parameters + bytes.buffers + bytes.allocated;
  return limit;
}

absl::StatusOr<DeviceBudget> BudgetOfDevice(const ModelTensors& model, const DeviceLimit& limit,
                                            const ExecutionDevice* device) {
  const absl::StatusOr<DeviceLimit> known = LimitOfDevice(model, limit, device);
  if (!known.ok()) return known.status();
  return SubtractFrom("device_limit", *known, Count(model));
}

}  // namespace stowage
