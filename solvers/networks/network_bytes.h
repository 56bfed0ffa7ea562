// What a network keeps on a device whatever the batch.
#ifndef STOWAGE_SOLVERS_NETWORKS_NETWORK_BYTES_H_
#define STOWAGE_SOLVERS_NETWORKS_NETWORK_BYTES_H_

#include "solvers/model/device_budget.h"
#include "solvers/networks/network.h"

namespace stowage {

// Parameters, all of them trained and none of their gradients allocated yet, and the running statistics of batch
// norms, as client/models holds them. O(ops).
ModelBytes BytesOfModel(const Network& network);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_NETWORKS_NETWORK_BYTES_H_
