// What LibTorch keeps and allocates when it runs an op and its backward, from shapes alone.
//
// The rules are those of LibTorch 1.13 on the CPU in float32, as its allocator shows them (the
// tests compare them); later versions and other devices differ in small things, such as a dropout
// mask of one byte per element. Not in them, because shapes do not say it: the workspace that a
// convolution takes while it runs.
#ifndef STOWAGE_SOLVERS_NETWORKS_OP_RULES_H_
#define STOWAGE_SOLVERS_NETWORKS_OP_RULES_H_

#include "solvers/model/units.h"
#include "solvers/networks/network.h"

namespace stowage {

struct OpRules {
  bool saves_inputs = false;
  bool saves_output = false;
  Bytes extra;            // made by the forward, saved for the backward: statistics, indices, mask
  int extra_tensors = 1;  // that it consists of, equal in size
  Bytes forward_temporary;  // beside output and extra
  // The gradient of an input is the gradient of the output, or a view of it: no new memory.
  bool passes_gradient = false;
  // Copies a gradient that is a slice of a larger tensor before it reads it.
  bool wants_dense_gradient = false;
  Bytes backward_temporary;  // beside the new gradients
};

OpRules RulesOf(const NetworkOp& op);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_NETWORKS_OP_RULES_H_
