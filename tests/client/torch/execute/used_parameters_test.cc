#include "client/torch/execute/used_parameters.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <set>
#include <vector>

#include "client/torch/base/torch_status.h"

namespace stowage {
namespace {

using torch::autograd::Node;

const Node* NodeOf(const at::Tensor& tensor) {
  return torch::autograd::impl::gradient_edge(tensor).function.get();
}

TEST(UsedParameters, NodesOfGraphsOfAnySizeAreFoundOnceEach) {
  for (const int length : {1, 30, 32, 33, 200}) {
    const at::Tensor parameter = at::ones({2}).requires_grad_();
    const at::Tensor before = at::ones({2}).requires_grad_().mul(2);
    at::Tensor y = before;
    for (int i = 0; i < length; ++i) y = y.mul(parameter);  // each reads it
    const std::vector<Node*> nodes = NodesOf({y, y, at::Tensor()}, {NodeOf(before)});
    EXPECT_EQ(nodes.size(), static_cast<size_t>(length) + 1) << "and what accumulates";
    EXPECT_EQ(std::set<Node*>(nodes.begin(), nodes.end()).size(), nodes.size());
    EXPECT_EQ(std::count(nodes.begin(), nodes.end(), NodeOf(before)), 0);
    CheckUsedParameters(nodes, {parameter});
    EXPECT_THROW(CheckUsedParameters(nodes, {before}), StageRuleError);
  }
}

}  // namespace
}  // namespace stowage
