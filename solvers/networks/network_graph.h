// A network as a computation graph: every op is a vertex.
//
// Bytes follow from the rules of op_rules.h. Views and in-place ops are aliases, the loss is two
// vertices at the end, the input is vertex 0. Gradients belong to storages and come one by one in a
// graph, while autograd hands some on without a copy, keeps what slices of a concatenation lie in,
// and adds up into new memory. What it holds beyond the graph's gradients while an op's backward
// runs is that op's backward overhead: with the backwards in reverse program order, as autograd
// runs them, memory is never above what the graph says. It is below where a gradient is handed on.
#ifndef STOWAGE_SOLVERS_NETWORKS_NETWORK_GRAPH_H_
#define STOWAGE_SOLVERS_NETWORKS_NETWORK_GRAPH_H_

#include "absl/status/statusor.h"
#include "solvers/model/graph.h"
#include "solvers/networks/network.h"
#include "solvers/networks/roofline.h"

namespace stowage {

// Vertex i is op i; it is named after its stage, its op and its place in the stage. Errors: those
// of ValidateDeviceModel and of Graph::Create. O(ops + edges).
absl::StatusOr<Graph> GraphOf(const Network& network, const DeviceModel& device);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_NETWORKS_NETWORK_GRAPH_H_
