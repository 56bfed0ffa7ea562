// Modelled times: how long a device of stated speed takes for an op, by the larger of its
// arithmetic and its memory traffic (Williams et al. 2009, the roofline model), plus a fixed cost
// per kernel. Models, not measurements: whoever stores them says so (CostSource::kModelled).
#ifndef STOWAGE_SOLVERS_ZOO_ROOFLINE_H_
#define STOWAGE_SOLVERS_ZOO_ROOFLINE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "solvers/model/budget.h"
#include "solvers/model/device.h"
#include "solvers/model/units.h"
#include "solvers/zoo/network.h"

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

struct OpTimes {
  Nanos forward;
  Nanos backward;  // with the addition of its gradients to those of later readers

  OpTimes& operator+=(const OpTimes& more);
};

// Of every op. Times beyond what a problem may have are cut there, sums too: Chain::Create and
// Graph::Create refuse them. O(ops + edges).
std::vector<OpTimes> ModelledTimes(const Network& network, const DeviceModel& device);

// What a network keeps on a device whatever the batch.

// Parameters, all of them trained and none of their gradients allocated yet, and the running statistics of batch
// norms, as client/models holds them. O(ops).
ModelBytes BytesOfModel(const Network& network);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_ZOO_ROOFLINE_H_
