// Modelled times: how long a device of stated speed takes for an op, by the larger of its
// arithmetic and its memory traffic (Williams et al. 2009, the roofline model), plus a fixed cost
// per kernel. Models, not measurements: whoever stores them says so (CostSource::kModelled).
#ifndef STOWAGE_SOLVERS_NETWORKS_ROOFLINE_H_
#define STOWAGE_SOLVERS_NETWORKS_ROOFLINE_H_

#include <string>

#include "absl/status/status.h"
#include "solvers/model/device.h"
#include "solvers/model/units.h"
#include "solvers/networks/network.h"

namespace stowage {

struct DeviceModel {
  std::string name;
  double peak_flops_per_second = 0;
  double peak_bytes_per_second = 0;
  double arithmetic_efficiency = 1;  // share of the peak that kernels reach, in (0, 1]
  double bandwidth_efficiency = 1;
  Nanos kernel_overhead;  // of each kernel
  Bytes memory;
};

// NVIDIA V100 PCIe 16 GB in float32: 14 TFLOP/s, 900 GB/s, 5 us per kernel. 90% and 85% of the
// peaks are reached: with these, ResNet-1001 and ResNet-101 train as fast as Beaumont et al. 2019
// state (section 5.4).
const DeviceModel& ModelledV100();

// INVALID_ARGUMENT unless both peaks are above 0, efficiencies in (0, 1] and the overhead not
// negative.
absl::Status ValidateDeviceModel(const DeviceModel& model);

// The device of a modelled profile: its name says that it is a model.
Device DescribeModel(const DeviceModel& model);

struct StageTimes {
  Nanos forward;
  Nanos backward;
};

// Of network.stages[stage].
StageTimes ModelledTimes(const Network& network, size_t stage, const DeviceModel& device);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_NETWORKS_ROOFLINE_H_
