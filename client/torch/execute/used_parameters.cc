#include "client/torch/execute/used_parameters.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "client/torch/base/torch_status.h"

namespace stowage {
namespace {

using torch::autograd::AccumulateGrad;
using torch::autograd::Node;

constexpr char kReplaced[] =
    ": was it replaced (load_state_dict with assign, an adapter)? Build the model anew, or copy "
    "into the parameters";

// Leaves that the graphs of `outputs` reach, without going beyond `ends`.
std::unordered_set<const c10::TensorImpl*> LeavesOf(const std::vector<at::Tensor>& outputs,
                                                    const std::vector<const Node*>& ends) {
  std::unordered_set<const c10::TensorImpl*> leaves;
  std::unordered_set<const Node*> seen(ends.begin(), ends.end());
  std::vector<const Node*> left;
  for (const at::Tensor& output : outputs) {
    if (!output.defined() || !output.requires_grad()) continue;
    left.push_back(torch::autograd::impl::gradient_edge(output).function.get());
  }
  while (!left.empty()) {
    const Node* const node = left.back();
    left.pop_back();
    if (node == nullptr || !seen.insert(node).second) continue;
    if (const auto* leaf = dynamic_cast<const AccumulateGrad*>(node)) {
      leaves.insert(leaf->variable.unsafeGetTensorImpl());
    }
    for (const torch::autograd::Edge& edge : node->next_edges()) {
      left.push_back(edge.function.get());
    }
  }
  return leaves;
}

}  // namespace

void CheckUsedParameters(const std::vector<at::Tensor>& outputs,
                         const std::vector<const Node*>& ends,
                         const std::vector<at::Tensor>& listed) {
  std::unordered_set<const c10::TensorImpl*> leaves = LeavesOf(outputs, ends);
  for (const at::Tensor& parameter : listed) leaves.erase(parameter.unsafeGetTensorImpl());
  if (leaves.empty()) return;
  throw StageRuleError(absl::StrCat("its forward uses ", leaves.size(),
                                    " parameters that it does not list", kReplaced));
}

}  // namespace stowage
