#ifndef STOWAGE_CLIENT_TORCH_OFFLOAD_DESCRIBE_LINK_H_
#define STOWAGE_CLIENT_TORCH_OFFLOAD_DESCRIBE_LINK_H_

#include "solvers/model/device.h"
#include "solvers/model/transfer_model.h"

namespace stowage {

// Writes a link to host memory into a device's description, as TransfersOf reads it.
inline void DescribeLink(const TransferModel& link, Device* device) {
  device->duplex = link.full_duplex ? Duplex::kFull : Duplex::kHalf;
  device->host_memory = link.host_memory;
  device->to_host_bytes_per_second = link.to_host.bytes_per_second;
  device->to_device_bytes_per_second = link.to_device.bytes_per_second;
  device->to_host_latency = link.to_host.latency;
  device->to_device_latency = link.to_device.latency;
}

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_OFFLOAD_DESCRIBE_LINK_H_
