#include "tests/client/models/network_model.h"

#include <torch/torch.h>

#include <algorithm>
#include <memory>
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

// What an op needs beside its inputs.
struct OpTensors {
  at::Tensor weight;
  at::Tensor bias;
  std::vector<at::Tensor> statistics;  // running mean and variance
};

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

OpTensors MakeTensors(const NetworkOp& op) {
  OpTensors tensors;
  if (op.parameters.empty()) return tensors;
  tensors.weight = torch::full(WeightShape(op), 0.01).requires_grad_();
  if (op.parameters.size() > 1) tensors.bias = torch::zeros({op.parameters[1]}).requires_grad_();
  if (op.kind == OpKind::kBatchNorm) {
    tensors.statistics = {torch::zeros({op.shape[1]}), torch::ones({op.shape[1]})};
  }
  return tensors;
}

// Between [batch, length, width] and a matrix per head.
at::Tensor SplitOrJoinHeads(const at::Tensor& x, const Shape& shape) {
  if (shape[0] > x.size(0)) {
    const int64_t heads = shape[0] / x.size(0);
    const at::Tensor split = x.view({x.size(0), x.size(1), heads, shape[2]}).transpose(1, 2);
    return split.contiguous().view(shape);
  }
  const int64_t heads = x.size(0) / shape[0];
  return x.view({shape[0], heads, x.size(1), x.size(2)}).transpose(1, 2).reshape(shape);
}

class StageOps {
 public:
  StageOps(const Network& network, const NetworkStage& stage, Convolutions convolutions)
      : convolutions_(convolutions), first_(stage.first_op) {
    for (size_t i = stage.first_op; i < stage.end_op; ++i) {
      ops_.push_back(network.ops[i]);
      tensors_.push_back(MakeTensors(network.ops[i]));
    }
    last_reader_.resize(ops_.size() + 1, ops_.size());
    for (size_t k = 0; k < ops_.size(); ++k) {
      for (const size_t input : ops_[k].inputs) last_reader_[Slot(input)] = k;
    }
  }

  std::vector<at::Tensor> parameters() const {
    std::vector<at::Tensor> parameters;
    for (const OpTensors& tensors : tensors_) {
      if (tensors.weight.defined()) parameters.push_back(tensors.weight);
      if (tensors.bias.defined()) parameters.push_back(tensors.bias);
    }
    return parameters;
  }

  std::vector<at::Tensor> buffers() const {
    std::vector<at::Tensor> buffers;
    for (const OpTensors& tensors : tensors_) {
      buffers.insert(buffers.end(), tensors.statistics.begin(), tensors.statistics.end());
    }
    return buffers;
  }

  at::Tensor Forward(const at::Tensor& input) const {
    std::vector<at::Tensor> values(ops_.size() + 1);
    values[0] = input;
    for (size_t k = 0; k < ops_.size(); ++k) {
      values[k + 1] = Run(k, values);
      for (const size_t read : ops_[k].inputs) {
        if (last_reader_[Slot(read)] == k) values[Slot(read)].reset();
      }
    }
    return values.back();
  }

 private:
  // Of values: the stage's input, then its ops.
  size_t Slot(size_t op) const { return op + 1 - first_; }

  at::Tensor Convolve(const NetworkOp& op, const at::Tensor& x, const OpTensors& tensors) const {
    if (convolutions_ == Convolutions::kHollow) {
      const at::Tensor bias = tensors.bias.defined() ? tensors.bias : at::empty({0});
      return HollowConvolution::apply(x, tensors.weight, bias, op.shape);
    }
    const Window& window = op.window;
    return at::conv2d(x, tensors.weight, tensors.bias, {window.stride_height, window.stride_width},
                      {window.pad_height, window.pad_width}, window.dilation,
                      /*groups=*/x.size(1) / tensors.weight.size(1));
  }

  at::Tensor Run(size_t k, const std::vector<at::Tensor>& values) const {
    const NetworkOp& op = ops_[k];
    const OpTensors& own = tensors_[k];
    const at::Tensor& x = values[Slot(op.inputs.front())];
    const at::Tensor& y = values[Slot(op.inputs.back())];
    const Window& window = op.window;
    const std::vector<int64_t> kernel = {window.height, window.width};
    const std::vector<int64_t> stride = {window.stride_height, window.stride_width};
    const std::vector<int64_t> pad = {window.pad_height, window.pad_width};
    switch (op.kind) {
      case OpKind::kConv2d:
        return Convolve(op, x, own);
      case OpKind::kLinear:
        return at::linear(x, own.weight, own.bias);
      case OpKind::kMatmul:
        return at::bmm(x, y.size(1) == x.size(2) ? y : y.transpose(1, 2));
      case OpKind::kBatchNorm:
        return at::batch_norm(x, own.weight, own.bias, own.statistics[0], own.statistics[1],
                              /*training=*/true, 0.1, 1e-5, /*cudnn_enabled=*/true);
      case OpKind::kLayerNorm:
        return at::layer_norm(x, {op.shape.back()}, own.weight, own.bias);
      case OpKind::kRelu:
        return op.in_place ? at::relu_(const_cast<at::Tensor&>(x)) : at::relu(x);
      case OpKind::kGelu:
        return at::gelu(x);
      case OpKind::kSoftmax:
        return at::softmax(x, -1);
      case OpKind::kMaxPool:
        return at::max_pool2d(x, kernel, stride, pad);
      case OpKind::kAvgPool:
        return at::avg_pool2d(x, kernel, stride, pad);
      case OpKind::kAdaptiveAvgPool:
        return at::adaptive_avg_pool2d(x, {op.shape[2], op.shape[3]});
      case OpKind::kGlobalAvgPool:
        return at::adaptive_avg_pool2d(x, {1, 1});
      case OpKind::kDropout:
        return at::dropout(x, 0.5, /*train=*/true);
      case OpKind::kAdd:
        return op.in_place ? const_cast<at::Tensor&>(x).add_(y) : x.add(y);
      case OpKind::kCat:
        return Concatenate(op, values);
      case OpKind::kFlatten:
        return x.flatten(1);
      case OpKind::kIdentity:
        return x;
      case OpKind::kSlice:
        return x.slice(2, 1).slice(3, 1);
      case OpKind::kTranspose:
        return SplitOrJoinHeads(x, op.shape);
      case OpKind::kEmbedding:
        return at::embedding(own.weight, x);
      default:
        TORCH_CHECK(false, "no op of a stage");
    }
  }

  at::Tensor Concatenate(const NetworkOp& op, const std::vector<at::Tensor>& values) const {
    std::vector<at::Tensor> parts;
    for (const size_t input : op.inputs) parts.push_back(values[Slot(input)]);
    return at::cat(parts, 1);
  }

  Convolutions convolutions_;
  size_t first_;
  std::vector<NetworkOp> ops_;
  std::vector<OpTensors> tensors_;
  std::vector<size_t> last_reader_;  // by slot
};

}  // namespace

ChainModel ModelOf(const Network& network, Convolutions convolutions) {
  ChainModel model(network.name);
  for (size_t i = 0; i + 1 < network.stages.size(); ++i) {
    const auto ops = std::make_shared<StageOps>(network, network.stages[i], convolutions);
    ModelStage stage;
    stage.name = network.stages[i].name;
    stage.op_kind = network.stages[i].op_kind;
    stage.parameters = ops->parameters();
    stage.buffers = ops->buffers();
    stage.forward = [ops](const at::Tensor& input) { return ops->Forward(input); };
    model.AddStage(std::move(stage));
  }
  model.SetLoss("cross_entropy", [](const at::Tensor& output, const at::Tensor& target) {
    const at::Tensor rows = output.dim() > 2 ? output.flatten(0, -2) : output;
    return torch::nn::functional::cross_entropy(rows, target);
  });
  return model;
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
