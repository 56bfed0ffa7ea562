// Networks as computation graphs, and the memory of a stage, by walking through their ops as autograd
// does.
#ifndef STOWAGE_SOLVERS_ZOO_NETWORK_GRAPH_H_
#define STOWAGE_SOLVERS_ZOO_NETWORK_GRAPH_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/graph.h"
#include "solvers/model/units.h"
#include "solvers/zoo/network.h"
#include "solvers/zoo/roofline.h"

namespace stowage {

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

// A network as the graph that client/torch profiles of its model: with the structure that keys of jobs
// have.
//
// GraphOf says what the ops are; a profile differs from it where the executor does.
//   - Gradients that a concatenation hands back are slices of its own. Each moves into memory with one channel more, so
//     that it stays a slice and kernels do what they do in plain training (client/torch/execute/node_runner.h); so it does
//     where additions hand it on, until it is summed up or computed with.
//   - Profiles do not say which ops are linear in several inputs.
// LibTorch 1.13 keeps the input of a mean, and has keys of its own for graphs with one; from 2.0 on it does not.
// Times are modelled. Errors and complexity: those of GraphOf.
absl::StatusOr<Graph> ProfiledGraphOf(const Network& network, const DeviceModel& device);

// A network as a computation graph: every op is a vertex.
//
// Bytes follow from the rules of network_builder.h. Views and in-place ops are aliases, the loss is two
// vertices at the end, the input is vertex 0. Gradients belong to storages and come one by one in a
// graph, while autograd hands some on without a copy, keeps what slices of a concatenation lie in,
// and adds up into new memory. What it holds beyond the graph's gradients while an op's backward
// runs is that op's backward overhead: with the backwards in reverse program order, as autograd
// runs them, memory is never above what the graph says. It is below where a gradient is handed on.
// Vertex i is op i; it is named after its stage, its op and its place in the stage. Errors: those
// of ValidateDeviceModel and of Graph::Create. O(ops + edges).
absl::StatusOr<Graph> GraphOf(const Network& network, const DeviceModel& device);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_ZOO_NETWORK_GRAPH_H_
