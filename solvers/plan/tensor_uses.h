// What an instruction reads and writes: which instructions have to wait for an op on the
// communication stream. Internal to the referees (simulate.h, graph_simulate.h have the rules).
//
// Tensors go by numbers. To make or to drop a tensor is to write it. Instructions that are not valid
// have some uses or none.
#ifndef STOWAGE_SOLVERS_PLAN_TENSOR_USES_H_
#define STOWAGE_SOLVERS_PLAN_TENSOR_USES_H_

#include <cstddef>
#include <vector>

#include "solvers/model/chain.h"
#include "solvers/model/graph.h"
#include "solvers/plan/schedule.h"

namespace stowage {

struct TensorUse {
  size_t tensor;
  bool writes;
};

using TensorUses = std::vector<TensorUse>;

// `input_held`: whether the plain input of the stage is. The numbers are below 3L + 9.
TensorUses UsesOf(const Chain& chain, const Instruction& instruction, bool input_held);

// `has_run`: whether the vertex has run forward; `output_held`: whether the storage that it owns is.
// The numbers are below 4V. O(inputs).
TensorUses UsesOf(const Graph& graph, const Instruction& instruction, bool has_run,
                  bool output_held);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLAN_TENSOR_USES_H_
