#include "tests/client/torch/test_networks.h"

#include <torch/torch.h>

#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "client/models/models.h"

namespace stowage {
namespace {

namespace nn = torch::nn;

nn::Conv2d Conv(int64_t in, int64_t out, int64_t stride = 1) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, 3).stride(stride).padding(1));
}

at::Tensor Relu(const at::Tensor& x) { return x.relu(); }
at::Tensor Flatten(const at::Tensor& x) { return x.flatten(1); }
at::Tensor Pool(const at::Tensor& x) { return at::max_pool2d(x, {2, 2}); }

at::Tensor CrossEntropy(const at::Tensor& output, const at::Tensor& target) {
  return nn::functional::cross_entropy(output, target);
}

TestNetwork WithImages(ChainModel model) {
  model.SetLoss("cross_entropy", CrossEntropy);
  return {std::move(model), torch::randn({3, 3, 16, 16}), torch::randint(10, {3}, torch::kLong)};
}

TestNetwork PlainCnn() {
  ChainModel model("plain_cnn");
  model.AddStage("conv1", "conv2d", Conv(3, 8));
  model.AddFunction("relu1", "relu", Relu);
  model.AddStage("conv2", "conv2d_relu", nn::Sequential(Conv(8, 16), nn::ReLU()));
  model.AddFunction("pool", "max_pool2d", Pool);
  model.AddStage("conv3", "conv2d_relu", nn::Sequential(Conv(16, 12, 2), nn::ReLU()));
  model.AddFunction("flatten", "flatten", Flatten);
  model.AddStage("fc", "linear", nn::Linear(12 * 4 * 4, 10));
  return WithImages(std::move(model));
}

struct ResidualImpl : nn::Module {
  explicit ResidualImpl(int64_t channels) {
    conv = register_module("conv", Conv(channels, channels));
    bn = register_module("bn", nn::BatchNorm2d(channels));
  }
  at::Tensor forward(const at::Tensor& x) {
    return at::dropout(bn(conv(x)).relu_(), 0.2, /*train=*/true) + x;
  }
  nn::Conv2d conv{nullptr};
  nn::BatchNorm2d bn{nullptr};
};

TestNetwork NormCnn() {
  const nn::ReLU relu(nn::ReLUOptions(/*inplace=*/true));
  ChainModel model("norm_cnn");
  model.AddStage("conv1", "conv2d", Conv(3, 8));
  model.AddStage("bn1relu", "batch_norm_relu", nn::Sequential(nn::BatchNorm2d(8), relu));
  model.AddStage("drop", "dropout", nn::Dropout(0.3));
  model.AddStage("residual1", "residual", std::make_shared<ResidualImpl>(8));
  model.AddStage("block", "conv_bn_relu",
                 nn::Sequential(Conv(8, 16, 2), nn::BatchNorm2d(16), relu, nn::Dropout2d(0.1)));
  model.AddStage("residual2", "residual", std::make_shared<ResidualImpl>(16));
  model.AddFunction("pool", "max_pool2d", Pool);
  model.AddStage("head", "linear", nn::Sequential(nn::Flatten(), nn::Linear(16 * 4 * 4, 10)));
  return WithImages(std::move(model));
}

constexpr int64_t kPositions = 256;

struct MixingImpl : nn::Module {
  explicit MixingImpl(int64_t channels) {
    fc = register_module("fc", nn::Linear(channels, channels));
    bn = register_module("bn", nn::BatchNorm1d(kPositions));
  }
  at::Tensor forward(const at::Tensor& x) {
    return at::dropout(bn(fc(x)).relu_(), 0.2, /*train=*/true) + x;
  }
  nn::Linear fc{nullptr};
  nn::BatchNorm1d bn{nullptr};
};

TestNetwork NormMlp() {
  const nn::ReLU relu(nn::ReLUOptions(/*inplace=*/true));
  ChainModel model("norm_mlp");
  model.AddStage("fc1", "linear", nn::Linear(3, 8));
  model.AddStage("bn1relu", "batch_norm_relu", nn::Sequential(nn::BatchNorm1d(kPositions), relu));
  model.AddStage("drop", "dropout", nn::Dropout(0.3));
  model.AddStage("residual1", "residual", std::make_shared<MixingImpl>(8));
  model.AddStage(
      "block", "linear_bn_relu",
      nn::Sequential(nn::Linear(8, 4), nn::BatchNorm1d(kPositions), relu, nn::Dropout(0.1)));
  model.AddStage("residual2", "residual", std::make_shared<MixingImpl>(4));
  model.AddFunction("pool", "max_pool2d", [](const at::Tensor& x) {
    return at::max_pool2d(x, {4, 1});
  });
  model.AddStage("head", "linear", nn::Sequential(nn::Flatten(), nn::Linear(kPositions, 10)));
  model.SetLoss("cross_entropy", CrossEntropy);
  return {std::move(model), torch::randn({3, kPositions, 3}),
          torch::randint(10, {3}, torch::kLong)};
}

TestNetwork Mlp() {
  ChainModel model("mlp");
  model.AddStage("embed", "embedding", nn::Embedding(50, 16));
  model.AddFunction("flatten", "flatten", Flatten);
  model.AddStage("fc1", "linear", nn::Linear(6 * 16, 64));
  model.AddStage("bn", "batch_norm", nn::BatchNorm1d(64));
  model.AddStage("drop", "gelu_dropout", nn::Sequential(nn::GELU(), nn::Dropout(0.5)));
  nn::Linear frozen(64, 32);
  for (const at::Tensor& parameter : frozen->parameters()) parameter.set_requires_grad(false);
  model.AddStage("frozen", "linear", frozen);
  model.AddFunction("twice", "add", [](const at::Tensor& x) { return x + x; });
  model.AddStage("fc2", "linear_tanh", nn::Sequential(nn::Linear(32, 10), nn::Tanh()));
  model.SetLoss("cross_entropy", CrossEntropy);
  return {std::move(model), torch::randint(50, {5, 6}, torch::kLong),
          torch::randint(10, {5}, torch::kLong)};
}

// What comes after the hyperbolic tangent saves nothing of its own.
struct EarlyEndImpl : nn::Module {
  explicit EarlyEndImpl(int64_t features) {
    in = register_module("in", nn::Linear(features, 2 * features));
    out = register_module("out", nn::Linear(2 * features, features));
    mean = register_buffer("mean", torch::zeros({features}));
  }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor y = out(at::tanh(in(x)));
    const at::Tensor noisy = y + at::rand_like(y.detach());
    const at::NoGradGuard no_grad;
    mean.mul_(0.9).add_(noisy.detach().mean(0), 0.1);
    return noisy;
  }
  nn::Linear in{nullptr}, out{nullptr};
  at::Tensor mean;
};

TestNetwork EarlyEnds() {
  ChainModel model("early_ends");
  model.AddStage("wide", "linear_gelu_linear",
                 nn::Sequential(nn::Linear(12, 48), nn::GELU(), nn::Linear(48, 16)));
  model.AddStage("buffer", "early_end", std::make_shared<EarlyEndImpl>(16));
  model.AddStage("fc", "linear", nn::Linear(16, 16));
  model.AddFunction("residual", "residual", [](const at::Tensor& x) {
    return at::dropout(at::gelu(x), 0.3, /*train=*/true) + x;
  });
  model.AddFunction("in_place", "sigmoid_add", [](const at::Tensor& x) {
    at::Tensor y = x.exp().sigmoid() * 2;
    return y.add_(x).mul_(0.5);
  });
  model.AddFunction("views", "views", [](const at::Tensor& x) {
    return x.tanh().view({-1, 4, 4}).transpose(1, 2).reshape({-1, 16});
  });
  model.AddFunction("drop", "dropout", [](const at::Tensor& x) {
    return at::dropout(x.clone(), 0.4, /*train=*/true);
  });
  model.AddStage("head", "linear_tanh_linear",
                 nn::Sequential(nn::Linear(16, 32), nn::Tanh(), nn::Linear(32, 10)));
  model.SetLoss("cross_entropy", CrossEntropy);
  return {std::move(model), torch::randn({7, 12}), torch::randint(10, {7}, torch::kLong)};
}

TestNetwork FrozenPrefix() {
  ChainModel model("frozen_prefix");
  nn::Conv2d frozen = Conv(3, 8);
  for (const at::Tensor& parameter : frozen->parameters()) parameter.set_requires_grad(false);
  model.AddFunction("scale", "mul", [](const at::Tensor& x) { return x * 0.5; });
  model.AddStage("frozen", "conv2d", frozen);
  model.AddStage("drop", "dropout", nn::Dropout(0.3));
  model.AddStage("conv2", "conv2d_relu", nn::Sequential(Conv(8, 8, 2), nn::ReLU()));
  model.AddStage("head", "linear", nn::Sequential(nn::Flatten(), nn::Linear(8 * 8 * 8, 10)));
  return WithImages(std::move(model));
}

TestNetwork OwnTensors() {
  ModelStage positions;
  positions.name = "positions";
  positions.op_kind = "narrow";
  const at::Tensor table = torch::randn({16, 8});
  positions.buffers = {table};
  positions.forward = [table](const at::Tensor& x) { return table.narrow(0, 0, x.size(0)); };
  ModelStage token;
  token.name = "token";
  token.op_kind = "expand";
  const at::Tensor weight = torch::randn({1, 8}).requires_grad_();
  token.parameters = {weight};
  token.forward = [weight](const at::Tensor& x) { return weight.expand({x.size(0), 8}); };
  ChainModel model("own_tensors");
  model.AddStage(std::move(positions));
  model.AddStage("fc1", "linear", nn::Linear(8, 8));
  model.AddStage(std::move(token));
  model.AddStage("fc2", "linear_tanh", nn::Sequential(nn::Linear(8, 10), nn::Tanh()));
  model.SetLoss("cross_entropy", CrossEntropy);
  return {std::move(model), torch::randn({5, 4}), torch::randint(10, {5}, torch::kLong)};
}

struct MovingScaleImpl : nn::Module {
  MovingScaleImpl() { scale = register_buffer("scale", torch::rand({32}) + 1); }
  at::Tensor forward(const at::Tensor& x) {
    // A copy: autograd refuses a backward through what was overwritten.
    at::Tensor y = x * scale.clone();
    scale.mul_(0.9);
    return y;
  }
  at::Tensor scale;
};

TestNetwork MovingScale() {
  ChainModel model("moving_scale");
  model.AddStage("fc1", "linear_tanh", nn::Sequential(nn::Linear(16, 32), nn::Tanh()));
  model.AddStage("scale1", "moving_scale", std::make_shared<MovingScaleImpl>());
  model.AddStage("fc2", "linear_tanh", nn::Sequential(nn::Linear(32, 32), nn::Tanh()));
  model.AddStage("scale2", "moving_scale", std::make_shared<MovingScaleImpl>());
  model.AddStage("fc3", "linear", nn::Linear(32, 10));
  model.SetLoss("cross_entropy", CrossEntropy);
  return {std::move(model), torch::randn({5, 16}), torch::randint(10, {5}, torch::kLong)};
}

struct RecurrentImpl : nn::Module {
  explicit RecurrentImpl(int64_t width) {
    lstm = register_module("lstm", nn::LSTM(nn::LSTMOptions(width, width).batch_first(true)));
  }
  at::Tensor forward(const at::Tensor& x) { return std::get<0>(lstm(x)); }
  nn::LSTM lstm{nullptr};
};

struct AttendingImpl : nn::Module {
  explicit AttendingImpl(int64_t width) {
    attention = register_module("attention", nn::MultiheadAttention(width, 2));
  }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor by_time = x.transpose(0, 1);
    return std::get<0>(attention(by_time, by_time, by_time)).transpose(0, 1).contiguous();
  }
  nn::MultiheadAttention attention{nullptr};
};

// The same value but for its rounding.
at::Tensor ByGradMode(const at::Tensor& x) {
  return at::GradMode::is_enabled() && x.requires_grad() ? (x / 3) * 0.7 : x * (0.7 / 3);
}

struct EncodingImpl : nn::Module {
  explicit EncodingImpl(int64_t width) {
    layer = register_module(
        "layer",
        nn::TransformerEncoderLayer(
            nn::TransformerEncoderLayerOptions(width, 2).dim_feedforward(24).dropout(0.1)));
  }
  at::Tensor forward(const at::Tensor& x) { return layer(x); }
  nn::TransformerEncoderLayer layer{nullptr};
};

// As those that shard parameters put between blocks: what comes out is what came in, and a node in the graph.
struct IdentityFunction : torch::autograd::Function<IdentityFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) { return x; }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list& gradients) {
    return gradients;
  }
};

at::Tensor Identity(const at::Tensor& x) { return IdentityFunction::apply(x); }

TestNetwork Transformer() {
  ChainModel model("transformer");
  model.AddStage("fc", "linear", nn::Linear(12, 16));
  model.AddFunction("identity1", "identity", Identity);
  model.AddStage("encoder1", "encoder_layer", std::make_shared<EncodingImpl>(16));
  model.AddFunction("identity2", "identity", Identity);
  model.AddStage("encoder2", "encoder_layer", std::make_shared<EncodingImpl>(16));
  model.AddFunction("mean", "mean", [](const at::Tensor& x) { return x.mean(0); });
  model.AddFunction("identity3", "identity", Identity);
  model.AddStage("head", "linear", nn::Linear(16, 10));
  model.SetLoss("cross_entropy", CrossEntropy);
  return {std::move(model), torch::randn({7, 3, 12}), torch::randint(10, {3}, torch::kLong)};
}

TestNetwork GradKernels() {
  ChainModel model("grad_kernels");
  model.AddStage("fc1", "linear", nn::Linear(12, 16));
  model.AddFunction("by_grad_mode1", "scale", ByGradMode);
  model.AddStage("recurrent", "lstm", std::make_shared<RecurrentImpl>(16));
  model.AddStage("attending", "attention", std::make_shared<AttendingImpl>(16));
  model.AddFunction("by_grad_mode2", "scale", ByGradMode);
  model.AddStage("fc2", "linear_tanh", nn::Sequential(nn::Linear(16, 16), nn::Tanh()));
  model.AddStage("head", "linear", nn::Sequential(nn::Flatten(), nn::Linear(7 * 16, 10)));
  model.SetLoss("cross_entropy", CrossEntropy);
  return {std::move(model), torch::randn({5, 7, 12}), torch::randint(10, {5}, torch::kLong)};
}

TestNetwork Tied() {
  const nn::Conv2d shared = Conv(8, 8);
  ChainModel model("tied");
  model.AddStage("conv1", "conv2d", Conv(3, 8));
  model.AddStage("shared1", "conv2d", shared);
  model.AddFunction("relu1", "relu", Relu);
  model.AddStage("drop", "dropout", nn::Dropout(0.2));
  model.AddStage("shared2", "conv2d_relu_conv2d", nn::Sequential(shared, nn::ReLU(), shared));
  model.AddFunction("pool", "max_pool2d", Pool);
  model.AddStage("shared3", "conv2d_tanh", nn::Sequential(shared, nn::Tanh()));
  model.AddStage("head", "linear", nn::Sequential(nn::Flatten(), nn::Linear(8 * 8 * 8, 10)));
  return WithImages(std::move(model));
}

TestNetwork ResNet18() {
  ModelOptions options;
  options.classes = 10;
  ChainModel model = MakeModel("resnet18", options).value();
  Sample sample = MakeImageSample(/*batch=*/2, /*side=*/32, options.classes, /*seed=*/7).value();
  return {std::move(model), sample.input, sample.target};
}

}  // namespace

TestNetwork MakeTestNetwork(const std::string& name, const TrainingDevice& device) {
  TestNetwork network = MakeTestNetwork(name);
  MoveTo(device.device, network.model);
  network.input = network.input.to(device.device);
  network.target = network.target.to(device.device);
  return network;
}

const std::vector<std::string>& TestNetworkNames() {
  static const auto* const names = new std::vector<std::string>{
      "plain_cnn",    "norm_cnn", "mlp",        "frozen_prefix", "own_tensors",
      "moving_scale", "tied",     "early_ends", "resnet18"};
  return *names;
}

bool AllocatesAlikeEverywhere(const std::string& name) {
  static const auto* const names = new std::set<std::string>{
      "decoder", "early_ends", "mlp", "moving_scale", "norm_mlp", "own_tensors"};
  return names->count(name) > 0;
}

Bytes TiedSums(const ModelTensors& model) {
  Bytes sums;
  for (const at::Tensor& parameter : model.tied_parameters()) {
    if (parameter.requires_grad()) sums += Bytes(static_cast<int64_t>(parameter.nbytes()));
  }
  return sums;
}

TestNetwork MakeTestNetwork(const std::string& name) {
  torch::manual_seed(1234);
  if (name == "plain_cnn") return PlainCnn();
  if (name == "norm_cnn") return NormCnn();
  if (name == "norm_mlp") return NormMlp();
  if (name == "mlp") return Mlp();
  if (name == "frozen_prefix") return FrozenPrefix();
  if (name == "early_ends") return EarlyEnds();
  if (name == "own_tensors") return OwnTensors();
  if (name == "moving_scale") return MovingScale();
  if (name == "grad_kernels") return GradKernels();
  if (name == "tied") return Tied();
  if (name == "transformer") return Transformer();
  TORCH_CHECK(name == "resnet18", "there is no test network ", name);
  return ResNet18();
}

}  // namespace stowage
