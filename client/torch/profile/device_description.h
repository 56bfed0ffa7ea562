#ifndef STOWAGE_CLIENT_TORCH_PROFILE_DEVICE_DESCRIPTION_H_
#define STOWAGE_CLIENT_TORCH_PROFILE_DEVICE_DESCRIPTION_H_

#include "client/torch/offload/execution_device.h"
#include "solvers/model/device.h"

namespace stowage {

// A device, or the CPU if it is null, as profiles name it: its hardware, the framework's version and the
// math settings of LibTorch at this moment, autocast among them. Not its link, which is measured
// (MeasureTransfers).
Device DescribeDevice(const ExecutionDevice* device = nullptr);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_PROFILE_DEVICE_DESCRIPTION_H_
