#include "client/torch/offload/compute_copies.h"

#include <ATen/Functions.h>

#include <array>
#include <atomic>
#include <cstddef>

#include "client/torch/base/tensor_storage.h"

namespace stowage {
namespace {

using CopiesByType =
    std::array<std::atomic<ComputeCopies>, static_cast<size_t>(at::COMPILE_TIME_MAX_DEVICE_TYPES)>;
CopiesByType& Copies() {
  static auto* const copies = new CopiesByType();
  return *copies;
}

}  // namespace

void UseComputeCopies(c10::DeviceType type, ComputeCopies copies) {
  Copies()[static_cast<size_t>(type)] = copies;
}

ComputeCopies ComputeCopiesOf(const at::Tensor& tensor) {
  if (!IsContiguousMemory(tensor)) return nullptr;
  return Copies()[static_cast<size_t>(tensor.device().type())];
}

at::Tensor HostBlockFor(c10::Device device, at::IntArrayRef sizes, at::ScalarType type) {
  return at::empty(sizes, at::TensorOptions().dtype(type).pinned_memory(device.is_cuda()));
}

}  // namespace stowage
