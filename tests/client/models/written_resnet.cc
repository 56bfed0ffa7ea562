#include "tests/client/models/written_resnet.h"

#include <torch/torch.h>

#include <array>
#include <memory>

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

namespace nn = torch::nn;

struct Architecture {
  const char* name;
  bool bottleneck;
  std::array<int, 4> blocks;  // per layer
};

constexpr Architecture kArchitectures[] = {
    {"resnet18", false, {2, 2, 2, 2}},  {"resnet34", false, {3, 4, 6, 3}},
    {"resnet50", true, {3, 4, 6, 3}},   {"resnet101", true, {3, 4, 23, 3}},
    {"resnet152", true, {3, 8, 36, 3}},
};

nn::Conv2d Convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride) {
  nn::Conv2d conv(
      nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
  nn::init::kaiming_normal_(conv->weight, 0, torch::kFanOut, torch::kReLU);
  return conv;
}

// conv1 and bn1relu are stages of their own: their outputs are the largest of the network.
struct NormReluImpl : nn::Module {
  explicit NormReluImpl(int64_t channels) { bn = register_module("bn", nn::BatchNorm2d(channels)); }
  at::Tensor forward(const at::Tensor& x) { return bn(x).relu_(); }

  nn::BatchNorm2d bn{nullptr};
};

// A residual block: a branch of convolutions, each followed by a norm, beside a shortcut.
struct BlockImpl : nn::Module {
  struct Layer {
    nn::Conv2d conv;
    nn::BatchNorm2d bn;
  };

  void AddLayer(const std::string& index, int64_t in, int64_t out, int64_t kernel, int64_t stride) {
    branch.push_back({register_module("conv" + index, Convolution(in, out, kernel, stride)),
                      register_module("bn" + index, nn::BatchNorm2d(out))});
  }

  void AddShortcut(int64_t in, int64_t out, int64_t stride) {
    if (stride == 1 && in == out) return;
    shortcut = register_module(
        "downsample", nn::Sequential(Convolution(in, out, 1, stride), nn::BatchNorm2d(out)));
  }

  at::Tensor forward(const at::Tensor& x) {
    at::Tensor y = x;
    for (size_t i = 0; i < branch.size(); ++i) {
      y = branch[i].bn(branch[i].conv(y));
      if (i + 1 < branch.size()) y.relu_();
    }
    y += shortcut ? shortcut->forward(x) : x;
    return y.relu_();
  }

  std::vector<Layer> branch;
  nn::Sequential shortcut{nullptr};
};

struct HeadImpl : nn::Module {
  HeadImpl(int64_t in, int64_t classes) { fc = register_module("fc", nn::Linear(in, classes)); }
  at::Tensor forward(const at::Tensor& x) {
    return fc(at::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
  }

  nn::Linear fc{nullptr};
};

std::shared_ptr<BlockImpl> BasicBlock(int64_t in, int64_t width, int64_t stride) {
  auto block = std::make_shared<BlockImpl>();
  block->AddLayer("1", in, width, 3, stride);
  block->AddLayer("2", width, width, 3, 1);
  block->AddShortcut(in, width, stride);
  return block;
}

std::shared_ptr<BlockImpl> Bottleneck(int64_t in, int64_t width, int64_t stride) {
  const int64_t out = 4 * width;
  auto block = std::make_shared<BlockImpl>();
  block->AddLayer("1", in, width, 1, 1);
  block->AddLayer("2", width, width, 3, stride);
  block->AddLayer("3", width, out, 1, 1);
  block->AddShortcut(in, out, stride);
  return block;
}

ChainModel Build(const Architecture& architecture, int64_t classes) {
  const bool bottleneck = architecture.bottleneck;
  ChainModel model(architecture.name);
  nn::Conv2d conv1 = Convolution(3, 64, 7, 2);
  model.AddStage("conv1", "conv2d", conv1);
  model.AddStage("bn1relu", "batch_norm_relu", std::make_shared<NormReluImpl>(64));
  model.AddFunction("maxpool", "max_pool2d", [](const at::Tensor& x) {
    return at::max_pool2d(x, {3, 3}, {2, 2}, {1, 1});
  });
  int64_t channels = 64;
  for (int layer = 0; layer < 4; ++layer) {
    const int64_t width = int64_t{64} << layer;
    for (int i = 0; i < architecture.blocks[static_cast<size_t>(layer)]; ++i) {
      const int64_t stride = layer > 0 && i == 0 ? 2 : 1;
      model.AddStage(
          absl::StrCat("layer", layer + 1, ".", i), bottleneck ? "bottleneck" : "basic_block",
          bottleneck ? Bottleneck(channels, width, stride) : BasicBlock(channels, width, stride));
      channels = bottleneck ? 4 * width : width;
    }
  }
  model.AddStage("head", "average_pool_linear", std::make_shared<HeadImpl>(channels, classes));
  model.SetLoss("cross_entropy", [](const at::Tensor& output, const at::Tensor& target) {
    return nn::functional::cross_entropy(output, target);
  });
  return model;
}

}  // namespace

ChainModel WrittenResNet(const std::string& name, int64_t classes) {
  for (const Architecture& architecture : kArchitectures) {
    if (name == architecture.name) return Build(architecture, classes);
  }
  TORCH_CHECK(false, "there is no ResNet '", name, "'");
}

}  // namespace stowage
