#ifndef STOWAGE_CLIENT_TORCH_PROFILE_DEVICE_DESCRIPTION_H_
#define STOWAGE_CLIENT_TORCH_PROFILE_DEVICE_DESCRIPTION_H_

#include "client/torch/offload/execution_device.h"
#include "solvers/model/device.h"

namespace stowage {

// A device, or the CPU if it is null, as profiles name it: its hardware, the framework's version and, as math
// settings, all else that decides which kernels run and what they take: LibTorch's switches at this moment, autocast
// among them, on a GPU those of attention and what the environment tells its allocator, and the device's own software
// (ExecutionDevice::Software), and the version of how costs are measured. Not its link, which is measured
// (MeasureTransfers). Reads the environment.
Device DescribeDevice(const ExecutionDevice* device = nullptr);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_PROFILE_DEVICE_DESCRIPTION_H_
