#include "client/models/network_op.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "client/torch/base/torch_version.h"

namespace stowage {
namespace {

constexpr double kNormEpsilon = 1e-5;
constexpr double kStatisticsMomentum = 0.1;
constexpr double kDropped = 0.5;
constexpr double kEmbeddingDeviation = 0.02;

Shape WeightShape(const NetworkOp& op) {
  const int64_t elements = op.parameters.front();
  switch (op.kind) {
    case OpKind::kConv2d: {
      const int64_t in = elements / (op.shape[1] * op.window.height * op.window.width);
      return {op.shape[1], in, op.window.height, op.window.width};
    }
    case OpKind::kLinear:
      return {op.shape.back(), elements / op.shape.back()};
    case OpKind::kEmbedding:
      return {elements / op.shape.back(), op.shape.back()};
    default:
      return {elements};
  }
}

at::Tensor InitialWeight(const NetworkOp& op) {
  namespace init = torch::nn::init;
  const at::Tensor weight = torch::empty(WeightShape(op));
  switch (op.kind) {
    case OpKind::kConv2d:
      return init::kaiming_normal_(weight, 0, torch::kFanOut, torch::kReLU);
    case OpKind::kLinear:
      return init::kaiming_uniform_(weight, std::sqrt(5.0));
    case OpKind::kEmbedding:
      return init::normal_(weight, 0, kEmbeddingDeviation);
    default:
      return init::ones_(weight);
  }
}

at::Tensor InitialBias(const NetworkOp& op, const at::Tensor& weight) {
  const at::Tensor bias = torch::zeros({op.parameters[1]});
  if (op.kind != OpKind::kLinear) return bias;
  const double bound = 1 / std::sqrt(static_cast<double>(weight.size(1)));
  return torch::nn::init::uniform_(bias, -bound, bound);
}

// Scores of attention are what a softmax reads.
bool AreScores(const Network& network, size_t op) {
  return network.ops[op].kind == OpKind::kMatmul && op + 1 < network.ops.size() &&
         network.ops[op + 1].kind == OpKind::kSoftmax;
}

at::Tensor CausalMask(int64_t length) {
  return torch::full({length, length}, -std::numeric_limits<float>::infinity()).triu_(1);
}

// How a transpose between [batch, length, width] and a matrix per head goes.
int64_t HeadsOf(const Shape& from, const Shape& to) {
  return to[0] > from[0] ? to[0] / from[0] : -(from[0] / to[0]);
}

at::Tensor SplitOrJoinHeads(const at::Tensor& x, int64_t heads) {
  if (heads > 0) {
    const int64_t width = x.size(2) / heads;
    const at::Tensor split = x.view({x.size(0), x.size(1), heads, width}).transpose(1, 2);
    return split.contiguous().view({x.size(0) * heads, x.size(1), width});
  }
  const int64_t batch = x.size(0) / -heads;
  const at::Tensor split = x.view({batch, -heads, x.size(1), x.size(2)}).transpose(1, 2);
  return split.reshape({batch, x.size(1), -heads * x.size(2)});
}

at::Tensor Convolve(const NetworkOp& op, const OpState& state, const at::Tensor& x) {
  const Window& window = op.window;
  return at::conv2d(x, state.weight, state.bias, {window.stride_height, window.stride_width},
                    {window.pad_height, window.pad_width}, window.dilation,
                    /*groups=*/x.size(1) / state.weight.size(1));
}

at::Tensor Multiply(const OpState& state, const at::Tensor& x, const at::Tensor& y) {
  if (!state.mask.defined()) return at::bmm(x, y.size(1) == x.size(2) ? y : y.transpose(1, 2));
  const int64_t length = x.size(1);
  const at::Tensor mask = state.mask.slice(0, 0, length).slice(1, 0, length);
  return at::baddbmm(mask, x, y.transpose(1, 2), /*beta=*/1,
                     /*alpha=*/1 / std::sqrt(static_cast<double>(x.size(2))));
}

// The kernels take a batch of heads; masks are theirs.
at::Tensor Attend(const std::vector<at::Tensor>& inputs) {
  const at::Tensor queries = inputs[0].unsqueeze(0);
  const at::Tensor keys = inputs[1].unsqueeze(0);
  const at::Tensor values = inputs[2].unsqueeze(0);
#if STOWAGE_TORCH_AT_LEAST(2, 0)
  return at::scaled_dot_product_attention(queries, keys, values, /*attn_mask=*/{},
                                          /*dropout_p=*/0, /*is_causal=*/true)
      .squeeze(0);
#else
  return std::get<0>(at::_scaled_dot_product_attention(
                         queries, keys, values, /*attn_mask=*/{}, /*dropout_p=*/0,
                         /*need_attn_weights=*/false, /*is_causal=*/true))
      .squeeze(0);
#endif
}

at::Tensor Pool(const NetworkOp& op, const at::Tensor& x) {
  const Window& window = op.window;
  const std::vector<int64_t> kernel = {window.height, window.width};
  const std::vector<int64_t> stride = {window.stride_height, window.stride_width};
  const std::vector<int64_t> pad = {window.pad_height, window.pad_width};
  return op.kind == OpKind::kMaxPool ? at::max_pool2d(x, kernel, stride, pad)
                                     : at::avg_pool2d(x, kernel, stride, pad);
}

// A row of scores per prediction.
at::Tensor Rows(const at::Tensor& x) { return x.dim() > 2 ? x.flatten(0, -2) : x; }

}  // namespace

OpState MakeOpState(const Network& network, size_t op_index, c10::Device device) {
  const NetworkOp& op = network.ops[op_index];
  OpState state;
  if (op.kind == OpKind::kTranspose) {
    state.heads = HeadsOf(network.ops[op.inputs.front()].shape, op.shape);
  }
  if (AreScores(network, op_index)) state.mask = CausalMask(op.shape.back()).to(device);
  if (op.parameters.empty()) return state;
  state.weight = InitialWeight(op).to(device).requires_grad_();
  if (op.parameters.size() > 1) {
    state.bias = InitialBias(op, state.weight).to(device).requires_grad_();
  }
  if (op.kind == OpKind::kBatchNorm) {
    const at::TensorOptions there = at::TensorOptions().device(device);
    state.statistics = {torch::zeros({op.shape[1]}, there), torch::ones({op.shape[1]}, there)};
  }
  return state;
}

at::Tensor RunOp(const NetworkOp& op, const OpState& state, std::vector<at::Tensor> inputs) {
  at::Tensor& x = inputs.front();
  switch (op.kind) {
    case OpKind::kConv2d:
      return Convolve(op, state, x);
    case OpKind::kLinear:
      return at::linear(x, state.weight, state.bias);
    case OpKind::kMatmul:
      return Multiply(state, x, inputs[1]);
    case OpKind::kAttention:
      return Attend(inputs);
    case OpKind::kBatchNorm:
      return at::batch_norm(x, state.weight, state.bias, state.statistics[0], state.statistics[1],
                            /*training=*/true, kStatisticsMomentum, kNormEpsilon,
                            /*cudnn_enabled=*/true);
    case OpKind::kLayerNorm:
      return at::layer_norm(x, {op.shape.back()}, state.weight, state.bias);
    case OpKind::kRelu:
      return op.in_place ? x.relu_() : at::relu(x);
    case OpKind::kGelu:
      return at::gelu(x);
    case OpKind::kSoftmax:
      return at::softmax(x, -1);
    case OpKind::kMaxPool:
    case OpKind::kAvgPool:
      return Pool(op, x);
    case OpKind::kAdaptiveAvgPool:
      return at::adaptive_avg_pool2d(x, {op.shape[2], op.shape[3]});
    case OpKind::kGlobalAvgPool:
      return at::adaptive_avg_pool2d(x, {1, 1});
    case OpKind::kDropout:
      return at::dropout(x, kDropped, /*train=*/true);
    case OpKind::kAdd:
      return op.in_place ? x.add_(inputs[1]) : x.add(inputs[1]);
    case OpKind::kCat:
      return at::cat(inputs, 1);
    case OpKind::kFlatten:
      return x.flatten(1);
    case OpKind::kIdentity:
      return x;
    case OpKind::kSlice:
      return x.slice(2, 1).slice(3, 1);
    case OpKind::kTranspose:
      return SplitOrJoinHeads(x, state.heads);
    case OpKind::kEmbedding:
      return at::embedding(state.weight, x);
    case OpKind::kLogSoftmax:
      return at::log_softmax(Rows(x), -1);
    case OpKind::kNllLoss:
      return at::nll_loss(x, inputs[1].flatten());
    case OpKind::kInput:
      break;
  }
  TORCH_CHECK(false, NameOf(op.kind), " is not an op to run");
}

}  // namespace stowage
