// The memory of one stage, found by walking through its ops as autograd does: which tensors are
// saved, and what is alive at once while the stage runs in each of its three ways.
//
// The forward frees a tensor after its last reader in the stage. The backward visits the ops in
// reverse, frees what an op saved as soon as the op is done, and adds the gradients of a tensor with
// several readers up into new memory. The gradient of the output stays until the stage is done, as
// its owner holds it; gradients of parameters live until they are added to those that exist
// already.
#ifndef STOWAGE_SOLVERS_NETWORKS_STAGE_MEMORY_H_
#define STOWAGE_SOLVERS_NETWORKS_STAGE_MEMORY_H_

#include <vector>

#include "solvers/model/units.h"
#include "solvers/networks/network.h"

namespace stowage {

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

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_NETWORKS_STAGE_MEMORY_H_
