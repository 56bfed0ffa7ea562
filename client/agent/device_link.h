// The link to host memory of the device that steps run on, in the profiles that plans are asked for with.
#ifndef STOWAGE_CLIENT_AGENT_DEVICE_LINK_H_
#define STOWAGE_CLIENT_AGENT_DEVICE_LINK_H_

#include "client/torch/offload/execution_device.h"
#include "solvers/model/device.h"
#include "solvers/model/units.h"

namespace stowage {

// Whether plans for it may copy. Null is a device without a link.
bool HasLink(const ExecutionDevice* device);

// Of host memory, as much as the link has.
inline constexpr Bytes kAllHostMemory(kMaxTotal);

// Writes the device's link into the profile's, with no more host memory than that: TransfersOf gives it
// back. Without a link, or host memory, the profile's device copies nothing, whatever was written there.
void WriteLink(const ExecutionDevice* device, Bytes host_memory, Device* profiled);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_AGENT_DEVICE_LINK_H_
