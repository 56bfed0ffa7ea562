#include "client/agent/device_link.h"

#include <algorithm>

#include "client/torch/offload/describe_link.h"
#include "solvers/model/transfer_model.h"

namespace stowage {

bool HasLink(const ExecutionDevice* device) {
  return device != nullptr && device->link() != nullptr;
}

void WriteLink(const ExecutionDevice* device, Bytes host_memory, Device* profiled) {
  const bool copies = HasLink(device) && host_memory > Bytes(0);
  DescribeLink(copies ? *device->link() : TransferModel(), profiled);
  if (!copies) profiled->duplex = Duplex::kUnspecified;
  profiled->host_memory = std::min(profiled->host_memory, host_memory);
}

}  // namespace stowage
