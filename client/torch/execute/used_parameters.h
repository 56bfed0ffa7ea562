// Finds parameters that a part of a model uses and does not list: those that replaced others since the model was built
// (load_state_dict with assign, adapters put around a layer). Without the check they would go untrained in silence.
#ifndef STOWAGE_CLIENT_TORCH_EXECUTE_USED_PARAMETERS_H_
#define STOWAGE_CLIENT_TORCH_EXECUTE_USED_PARAMETERS_H_

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <vector>

namespace stowage {

// Of a forward that made `outputs`: the nodes of its graph, which ends at `ends`, where there are other parts, and at leaves.
// The outputs hold them. O(nodes of the graph).
std::vector<torch::autograd::Node*> NodesOf(const std::vector<at::Tensor>& outputs,
                                            const std::vector<const torch::autograd::Node*>& ends);

// Throws StageRuleError if a forward with these nodes reaches a parameter that is not among `listed`. One that is listed and
// not used in this step is no error: parts may be conditional.
void CheckUsedParameters(const std::vector<torch::autograd::Node*>& nodes,
                         const std::vector<at::Tensor>& listed);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_EXECUTE_USED_PARAMETERS_H_
