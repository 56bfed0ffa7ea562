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

// The memory of one stage, found by walking through its ops as autograd does: which tensors are
// saved, and what is alive at once while the stage runs in each of its three ways.
//
// The forward frees a tensor after its last reader in the stage. The backward visits the ops in
// reverse, frees what an op saved as soon as the op is done, and adds the gradients of a tensor with
// several readers up into new memory. The gradient of the output stays until the stage is done, as
// its owner holds it; gradients of parameters live until they are added to those that exist
// already.

// The fields of Stage (solvers/model/chain.h) with the same names.
struct StageMemory {
  Bytes output;
  Bytes saved;
  std::vector<Bytes> saved_tensors;
  Bytes input_gradient;
  Bytes forward_saving_overhead;
  Bytes forward_overhead;
  Bytes backward_overhead;
};

// Of network.stages[stage]. O(ops of the stage * their inputs).
StageMemory MemoryOfStage(const Network& network, size_t stage);

// What a network keeps on a device whatever the batch.

// Parameters, all of them trained and none of their gradients allocated yet, and the running statistics of batch
// norms, as client/models holds them. O(ops).
ModelBytes BytesOfModel(const Network& network);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_ZOO_ROOFLINE_H_
