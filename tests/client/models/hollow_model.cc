#include "tests/client/models/hollow_model.h"

#include <torch/torch.h>

#include <utility>
#include <vector>

namespace stowage {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// `bias` has no elements where there is none.
struct HollowConvolution : torch::autograd::Function<HollowConvolution> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const at::Tensor& weight, const at::Tensor& bias,
                            const std::vector<int64_t>& shape) {
    context->save_for_backward({input, weight});
    context->saved_data["has_bias"] = bias.numel() > 0;
    return at::zeros(shape);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor dense = gradients[0].contiguous();
    variable_list result(4);
    if (context->needs_input_grad(0)) result[0] = at::zeros_like(saved[0]);
    result[1] = at::zeros_like(saved[1]);
    if (context->saved_data["has_bias"].toBool()) result[2] = at::zeros({dense.size(1)});
    return result;
  }
};

}  // namespace

at::Tensor RunHollow(const NetworkOp& op, const OpState& state, std::vector<at::Tensor> inputs) {
  if (op.kind != OpKind::kConv2d) return RunOp(op, state, std::move(inputs));
  const at::Tensor bias = state.bias.defined() ? state.bias : at::empty({0});
  return HollowConvolution::apply(inputs.front(), state.weight, bias, op.shape);
}

ChainModel HollowModelOf(const Network& network) {
  NetworkModelOptions options;
  options.run_op = RunHollow;
  return ChainModelOf(network, options);
}

at::Tensor InputOf(const Network& network) {
  const Shape& shape = network.ops.front().shape;
  if (network.ops[1].kind != OpKind::kEmbedding) return torch::randn(shape);
  return torch::randint(network.ops[1].parameters.front() / network.ops[1].shape.back(), shape,
                        torch::kLong);
}

at::Tensor TargetOf(const Network& network) {
  const NetworkOp& scores = network.ops[network.ops.size() - 2];
  const int64_t classes = scores.shape.back();
  return torch::randint(classes, {scores.elements() / classes}, torch::kLong);
}

}  // namespace stowage
