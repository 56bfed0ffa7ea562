// He et al. 2016, "Deep residual learning" (18 to 152, as torchvision builds them) and "Identity
// mappings in deep residual networks" (200 and 1001, with the norm before the convolution).
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "solvers/networks/families.h"
#include "solvers/networks/network_builder.h"

namespace stowage {
namespace {

enum class Block { kBasic, kBottleneck, kPreActivation };

struct ResNetSpec {
  const char* name;
  const char* description;
  Block block;
  std::vector<int> blocks;  // per group; each group after the first halves the image
  bool small_stem;          // a 3x3 convolution that keeps the image's size, and no pooling
};

const std::vector<ResNetSpec>& ResNetSpecs() {
  static const auto* const kSpecs = new std::vector<ResNetSpec>{
      {"resnet18", "residual, basic blocks", Block::kBasic, {2, 2, 2, 2}, false},
      {"resnet34", "residual, basic blocks", Block::kBasic, {3, 4, 6, 3}, false},
      {"resnet50", "residual, bottlenecks", Block::kBottleneck, {3, 4, 6, 3}, false},
      {"resnet101", "residual, bottlenecks", Block::kBottleneck, {3, 4, 23, 3}, false},
      {"resnet152", "residual, bottlenecks", Block::kBottleneck, {3, 8, 36, 3}, false},
      {"resnet200",
       "residual, pre-activation bottlenecks",
       Block::kPreActivation,
       {3, 24, 36, 3},
       false},
      {"resnet1001",
       "residual, 3 groups of 111 pre-activation bottlenecks, no downsampling at the start",
       Block::kPreActivation,
       {111, 111, 111},
       true},
  };
  return *kSpecs;
}

size_t BasicBlock(NetworkBuilder* net, size_t x, int64_t width, int64_t stride) {
  size_t y = net->Conv2d(x, width, Window::Square(3, stride, 1));
  y = net->Relu(net->BatchNorm(y));
  y = net->BatchNorm(net->Conv2d(y, width, Window::Square(3, 1, 1)));
  if (stride > 1 || net->channels(x) != width) {
    x = net->BatchNorm(net->Conv2d(x, width, Window::Square(1, stride)));
  }
  return net->Relu(net->AddInPlace(y, x));
}

size_t Bottleneck(NetworkBuilder* net, size_t x, int64_t width, int64_t stride) {
  const int64_t out = 4 * width;
  size_t y = net->Relu(net->BatchNorm(net->Conv2d(x, width, Window::Square(1))));
  y = net->Relu(net->BatchNorm(net->Conv2d(y, width, Window::Square(3, stride, 1))));
  y = net->BatchNorm(net->Conv2d(y, out, Window::Square(1)));
  if (stride > 1 || net->channels(x) != out) {
    x = net->BatchNorm(net->Conv2d(x, out, Window::Square(1, stride)));
  }
  return net->Relu(net->AddInPlace(y, x));
}

// The shortcut of the first block of a group starts behind the first norm.
size_t PreActivationBlock(NetworkBuilder* net, size_t x, int64_t width, int64_t stride) {
  const int64_t out = 4 * width;
  const size_t active = net->Relu(net->BatchNorm(x));
  size_t y = net->Conv2d(active, width, Window::Square(1));
  y = net->Conv2d(net->Relu(net->BatchNorm(y)), width, Window::Square(3, stride, 1));
  y = net->Conv2d(net->Relu(net->BatchNorm(y)), out, Window::Square(1));
  if (stride > 1 || net->channels(x) != out) {
    x = net->Conv2d(active, out, Window::Square(1, stride));
  }
  return net->AddInPlace(y, x);
}

void AddBlock(NetworkBuilder* net, Block block, int64_t width, int64_t stride) {
  switch (block) {
    case Block::kBasic:
      BasicBlock(net, net->last(), width, stride);
      break;
    case Block::kBottleneck:
      Bottleneck(net, net->last(), width, stride);
      break;
    case Block::kPreActivation:
      PreActivationBlock(net, net->last(), width, stride);
      break;
  }
}

const char* OpKindOf(Block block) {
  switch (block) {
    case Block::kBasic:
      return "basic_block";
    case Block::kBottleneck:
      return "bottleneck";
    case Block::kPreActivation:
      return "preactivation_bottleneck";
  }
  return "";
}

void AddStem(NetworkBuilder* net, bool small) {
  net->Conv2d(net->last(), 64, small ? Window::Square(3, 1, 1) : Window::Square(7, 2, 3));
  net->EndStage("conv1", "conv2d");
  net->Relu(net->BatchNorm(net->last()));
  net->EndStage("bn1relu", "batch_norm_relu");
  if (small) return;
  net->MaxPool(net->last(), Window::Square(3, 2, 1));
  net->EndStage("maxpool", "max_pool2d");
}

absl::StatusOr<Network> BuildResNet(const ResNetSpec& architecture, const NetworkOptions& options) {
  NetworkBuilder net(architecture.name, {options.batch, 3, options.image, options.image},
                     kFloatBytes);
  AddStem(&net, architecture.small_stem);
  for (size_t group = 0; group < architecture.blocks.size(); ++group) {
    for (int i = 0; i < architecture.blocks[group]; ++i) {
      const int64_t stride = group > 0 && i == 0 ? 2 : 1;
      AddBlock(&net, architecture.block, int64_t{64} << group, stride);
      net.EndStage(absl::StrCat("layer", group + 1, ".", i), OpKindOf(architecture.block));
    }
  }
  if (architecture.block == Block::kPreActivation) {
    net.Relu(net.BatchNorm(net.last()));
    net.EndStage("bnrelu", "batch_norm_relu");
  }
  net.Linear(net.Flatten(net.GlobalAvgPool(net.last())), options.classes);
  net.EndStage("head", "average_pool_linear");
  return std::move(net).Build();
}

}  // namespace

std::vector<NetworkInfo> ResNets() {
  std::vector<NetworkInfo> infos;
  for (const ResNetSpec& architecture : ResNetSpecs()) {
    infos.push_back({architecture.name, architecture.description});
  }
  return infos;
}

absl::StatusOr<Network> MakeResNet(const NetworkOptions& options) {
  for (const ResNetSpec& architecture : ResNetSpecs()) {
    if (options.name == architecture.name) return BuildResNet(architecture, options);
  }
  return absl::NotFoundError(options.name);
}

}  // namespace stowage
