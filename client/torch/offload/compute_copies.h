// Copies of a few bytes to host memory and back that a device's compute makes itself. The engines that copy for plans work off what
// they were given in order: compute that waits for a copy by them waits for all copies of the plan before it, for milliseconds.
#ifndef STOWAGE_CLIENT_TORCH_OFFLOAD_COMPUTE_COPIES_H_
#define STOWAGE_CLIENT_TORCH_OFFLOAD_COMPUTE_COPIES_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <vector>

#include "client/torch/offload/execution_device.h"

namespace stowage {

// Between tensors of a device and `host_block`, host memory that its kernels reach, when compute comes to it. The block is
// handed to nobody else before the copies are done.
using ComputeCopies = void (*)(const std::vector<CopyPiece>& pieces, const at::Tensor& host_block,
                               c10::Device device);

// Of such devices from now on, for the life of the process. Thread-safe.
void UseComputeCopies(c10::DeviceType type, ComputeCopies copies);

// Null where the tensor's device has none, or where the tensor is not contiguous. Thread-safe.
ComputeCopies ComputeCopiesOf(const at::Tensor& tensor);

// Host memory for copies from and to such a device, page-locked where it is a GPU. Throws what LibTorch throws.
at::Tensor HostBlockFor(c10::Device device, at::IntArrayRef sizes, at::ScalarType type);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_OFFLOAD_COMPUTE_COPIES_H_
