// A network as the graph that client/torch profiles of its model: with the structure that keys of jobs have.
//
// GraphOf (network_graph.h) says what the ops are; a profile differs from it where the executor does.
//   - Gradients that a concatenation hands back are slices of its own. Each moves into memory with one channel more, so
//     that it stays a slice and kernels do what they do in plain training (client/torch/node_runner.h); so it does
//     where additions hand it on, until it is summed up or computed with.
//   - Profiles do not say which ops are linear in several inputs.
// LibTorch 1.13 keeps the input of a mean, and has keys of its own for graphs with one; from 2.0 on it does not.
#ifndef STOWAGE_SOLVERS_NETWORKS_PROFILED_GRAPH_H_
#define STOWAGE_SOLVERS_NETWORKS_PROFILED_GRAPH_H_

#include "absl/status/statusor.h"
#include "solvers/model/graph.h"
#include "solvers/networks/network.h"
#include "solvers/networks/roofline.h"

namespace stowage {

// Times are modelled. Errors and complexity: those of GraphOf.
absl::StatusOr<Graph> ProfiledGraphOf(const Network& network, const DeviceModel& device);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_NETWORKS_PROFILED_GRAPH_H_
