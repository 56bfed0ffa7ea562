// Whether a part of a model trains what it lists: parameters that were replaced since it was listed (load_state_dict with
// assign, adapters put around a layer) would else go untrained, without a word.
#ifndef STOWAGE_CLIENT_TORCH_EXECUTE_USED_PARAMETERS_H_
#define STOWAGE_CLIENT_TORCH_EXECUTE_USED_PARAMETERS_H_

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <vector>

namespace stowage {

// Of a forward that made `output`, with a graph that ends at `ends`, where there are other parts, and at leaves. Throws
// StageRuleError if it reaches a parameter that is not among `listed`. One that is listed and not used in this step is no
// error: parts may be conditional. O(nodes of the graph).
void CheckUsedParameters(const at::Tensor& output,
                         const std::vector<const torch::autograd::Node*>& ends,
                         const std::vector<at::Tensor>& listed);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_EXECUTE_USED_PARAMETERS_H_
