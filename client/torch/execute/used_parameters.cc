#include "client/torch/execute/used_parameters.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cstddef>
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

constexpr size_t kUsualNodes = 8;  // nodes
constexpr size_t kFewNodes = 32;   // that are looked for one by one

template <class T, class U>
bool IsAmong(const std::vector<T>& list, const U& element) {
  return std::find(list.begin(), list.end(), element) != list.end();
}

}  // namespace

std::vector<Node*> NodesOf(const std::vector<at::Tensor>& outputs,
                           const std::vector<const Node*>& ends) {
  std::vector<Node*> nodes;
  nodes.reserve(kUsualNodes);
  std::unordered_set<const Node*> known;  // where they are not few
  const auto add = [&](Node* node) {
    if (node == nullptr || IsAmong(ends, node)) return;
    if (nodes.size() < kFewNodes ? IsAmong(nodes, node) : !known.insert(node).second) return;
    nodes.push_back(node);
    if (nodes.size() == kFewNodes) known.insert(nodes.begin(), nodes.end());
  };
  for (const at::Tensor& output : outputs) {
    // Nobody holds the node that adds up what comes for an output that is a leaf.
    if (!output.defined() || output.grad_fn() == nullptr) continue;
    add(torch::autograd::impl::gradient_edge(output).function.get());
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const torch::autograd::Edge& edge : nodes[i]->next_edges()) add(edge.function.get());
  }
  return nodes;
}

void CheckUsedParameters(const std::vector<Node*>& nodes, const std::vector<at::Tensor>& listed) {
  int unlisted = 0;
  for (const Node* const node : nodes) {
    if (node->num_outputs() > 0) continue;
    const auto* const leaf = dynamic_cast<const AccumulateGrad*>(node);
    if (leaf == nullptr) continue;
    const bool is_listed =
        std::any_of(listed.begin(), listed.end(),
                    [&](const at::Tensor& parameter) { return parameter.is_same(leaf->variable); });
    unlisted += is_listed ? 0 : 1;
  }
  if (unlisted == 0) return;
  throw StageRuleError(
      absl::StrCat("its forward uses ", unlisted, " parameters that it does not list", kReplaced));
}

}  // namespace stowage
