// Kinds of devices that a network can be modelled on: what they hold, compute and copy.
//
// Every figure is modelled, none measured: peaks as the kinds are sold, and shares of them that kernels
// are taken to reach. Good for comparing batches and plans on one kind, not for promising step times.
#ifndef STOWAGE_SOLVERS_ZOO_DEVICE_KINDS_H_
#define STOWAGE_SOLVERS_ZOO_DEVICE_KINDS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/device.h"
#include "solvers/model/transfer_model.h"
#include "solvers/zoo/roofline.h"

namespace stowage {

struct DeviceKind {
  std::string name;         // "a100"
  std::string description;  // one line: the product, and in what arithmetic products are taken
  DeviceModel model;        // with the device's memory
  CopyCost host_link;       // to host memory and back, each way at once
};

// In the order in which they are listed to people.
const std::vector<DeviceKind>& AllDeviceKinds();

// DescribeModel with the link: to as much host memory as several such devices would share.
Device DescribeKind(const DeviceKind& kind);

// INVALID_ARGUMENT for an unknown name; the message lists all.
absl::StatusOr<DeviceKind> FindDeviceKind(const std::string& name);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_ZOO_DEVICE_KINDS_H_
