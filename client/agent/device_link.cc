#include "client/agent/device_link.h"

#include <algorithm>

#include "solvers/model/transfer_model.h"

namespace stowage {

bool HasLink(const ExecutionDevice* device) {
  return device != nullptr && device->link() != nullptr;
}

void StateLink(const ExecutionDevice* device, Bytes host_memory, Device* profiled) {
  const bool copies = HasLink(device) && host_memory > Bytes(0);
  const TransferModel link = copies ? *device->link() : TransferModel();
  profiled->duplex = !copies            ? Duplex::kUnspecified
                     : link.full_duplex ? Duplex::kFull
                                        : Duplex::kHalf;
  profiled->host_memory = std::min(link.host_memory, host_memory);
  profiled->to_host_bytes_per_second = link.to_host.bytes_per_second;
  profiled->to_device_bytes_per_second = link.to_device.bytes_per_second;
  profiled->to_host_latency = link.to_host.latency;
  profiled->to_device_latency = link.to_device.latency;
}

}  // namespace stowage
