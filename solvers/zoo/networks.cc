#include "solvers/zoo/networks.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "solvers/model/field_error.h"
#include "solvers/zoo/network_builder.h"
#include "solvers/zoo/network_graph.h"
#include "solvers/zoo/roofline.h"

namespace stowage {
namespace {

NetworkBuilder Begin(const std::string& name, const NetworkOptions& options) {
  return NetworkBuilder(name, {options.batch, 3, options.image, options.image}, kFloatBytes);
}

void MaxPoolStage(NetworkBuilder* net, std::string name, const Window& window) {
  net->MaxPool(net->last(), window);
  net->EndStage(std::move(name), "max_pool2d");
}

void ConvReluStage(NetworkBuilder* net, std::string name, int64_t channels, const Window& window) {
  net->Relu(net->Conv2d(net->last(), channels, window, /*bias=*/true));
  net->EndStage(std::move(name), "conv2d_relu");
}

void NormReluStage(NetworkBuilder* net, std::string name) {
  net->Relu(net->BatchNorm(net->last()));
  net->EndStage(std::move(name), "batch_norm_relu");
}

absl::StatusOr<Network> BuildWithHead(NetworkBuilder net, int64_t classes) {
  net.Linear(net.Flatten(net.GlobalAvgPool(net.last())), classes);
  net.EndStage("head", "average_pool_linear");
  return std::move(net).Build();
}

// Krizhevsky 2014, "One weird trick for parallelizing convolutional neural networks", as
// torchvision builds it.

constexpr int64_t kHidden = 4096;  // of AlexNet and VGG

absl::StatusOr<Network> BuildAlexNet(const NetworkOptions& options) {
  NetworkBuilder net = Begin(options.name, options);
  ConvReluStage(&net, "conv1", 64, Window::Square(11, 4, 2));
  MaxPoolStage(&net, "pool1", Window::Square(3, 2));
  ConvReluStage(&net, "conv2", 192, Window::Square(5, 1, 2));
  MaxPoolStage(&net, "pool2", Window::Square(3, 2));
  ConvReluStage(&net, "conv3", 384, Window::Square(3, 1, 1));
  ConvReluStage(&net, "conv4", 256, Window::Square(3, 1, 1));
  ConvReluStage(&net, "conv5", 256, Window::Square(3, 1, 1));
  MaxPoolStage(&net, "pool5", Window::Square(3, 2));
  net.AdaptiveAvgPool(net.last(), 6);
  net.EndStage("avgpool", "adaptive_avg_pool2d");
  net.Relu(net.Linear(net.Dropout(net.Flatten(net.last())), kHidden));
  net.EndStage("fc1", "dropout_linear_relu");
  net.Relu(net.Linear(net.Dropout(net.last()), kHidden));
  net.EndStage("fc2", "dropout_linear_relu");
  net.Linear(net.last(), options.classes);
  net.EndStage("fc3", "linear");
  return std::move(net).Build();
}

// Simonyan & Zisserman 2015, "Very deep convolutional networks", without norms, as torchvision
// builds them.

struct VggSpec {
  const char* name;
  std::array<int, 5> convolutions;  // between the poolings
};

constexpr VggSpec kVggs[] = {{"vgg11", {1, 1, 2, 2, 2}},
                             {"vgg13", {2, 2, 2, 2, 2}},
                             {"vgg16", {2, 2, 3, 3, 3}},
                             {"vgg19", {2, 2, 4, 4, 4}}};

absl::StatusOr<Network> BuildVgg(const VggSpec& spec, const NetworkOptions& options) {
  NetworkBuilder net = Begin(spec.name, options);
  int64_t channels = 64;
  for (size_t group = 0; group < spec.convolutions.size(); ++group) {
    for (int i = 0; i < spec.convolutions[group]; ++i) {
      ConvReluStage(&net, absl::StrCat("conv", group + 1, "_", i + 1), channels,
                    Window::Square(3, 1, 1));
    }
    MaxPoolStage(&net, absl::StrCat("pool", group + 1), Window::Square(2, 2));
    if (channels < 512) channels *= 2;
  }
  net.AdaptiveAvgPool(net.last(), 7);
  net.EndStage("avgpool", "adaptive_avg_pool2d");
  net.Dropout(net.Relu(net.Linear(net.Flatten(net.last()), kHidden)));
  net.EndStage("fc1", "linear_relu_dropout");
  net.Dropout(net.Relu(net.Linear(net.last(), kHidden)));
  net.EndStage("fc2", "linear_relu_dropout");
  net.Linear(net.last(), options.classes);
  net.EndStage("fc3", "linear");
  return std::move(net).Build();
}

// He et al. 2016, "Deep residual learning" (18 to 152, as torchvision builds them) and "Identity
// mappings in deep residual networks" (200 and 1001, with the norm before the convolution).

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

struct ResNetSpec {
  const char* name;
  const char* description;
  size_t (*add_block)(NetworkBuilder* net, size_t x, int64_t width, int64_t stride);
  const char* block;
  std::array<int, 4> blocks;  // per group; each group after the first halves the image
};

constexpr ResNetSpec kResNets[] = {
    {"resnet18", "residual, basic blocks", BasicBlock, "basic_block", {2, 2, 2, 2}},
    {"resnet34", "residual, basic blocks", BasicBlock, "basic_block", {3, 4, 6, 3}},
    {"resnet50", "residual, bottlenecks", Bottleneck, "bottleneck", {3, 4, 6, 3}},
    {"resnet101", "residual, bottlenecks", Bottleneck, "bottleneck", {3, 4, 23, 3}},
    {"resnet152", "residual, bottlenecks", Bottleneck, "bottleneck", {3, 8, 36, 3}},
    {"resnet200",
     "residual, pre-activation bottlenecks",
     PreActivationBlock,
     "preactivation_bottleneck",
     {3, 24, 36, 3}},
    {"resnet1001",
     "residual, 3 groups of 111 pre-activation bottlenecks, no downsampling at the start",
     PreActivationBlock,
     "preactivation_bottleneck",
     {111, 111, 111, 0}},
};

absl::StatusOr<Network> BuildResNet(const ResNetSpec& spec, const NetworkOptions& options) {
  // Of three groups: a 3x3 convolution that keeps the image's size, and no pooling.
  const bool small_stem = spec.blocks.back() == 0;
  NetworkBuilder net = Begin(spec.name, options);
  net.Conv2d(net.last(), 64, small_stem ? Window::Square(3, 1, 1) : Window::Square(7, 2, 3));
  net.EndStage("conv1", "conv2d");
  NormReluStage(&net, "bn1relu");
  if (!small_stem) MaxPoolStage(&net, "maxpool", Window::Square(3, 2, 1));
  for (size_t group = 0; group < spec.blocks.size(); ++group) {
    for (int i = 0; i < spec.blocks[group]; ++i) {
      spec.add_block(&net, net.last(), int64_t{64} << group, group > 0 && i == 0 ? 2 : 1);
      net.EndStage(absl::StrCat("layer", group + 1, ".", i), spec.block);
    }
  }
  if (spec.add_block == PreActivationBlock) NormReluStage(&net, "bnrelu");
  return BuildWithHead(std::move(net), options.classes);
}

// Huang et al. 2017, "Densely connected convolutional networks", as torchvision builds them, cut
// into a chain: every dense layer is a stage that hands on its input with its own channels
// appended. The "_full_cat" ones are as torchvision runs them: every layer concatenates its block's
// tensors anew, so that a dense block is a stage.

constexpr int64_t kBottleneckFactor = 4;
constexpr char kFullCat[] = "_full_cat";

struct DenseNetSpec {
  const char* name;
  int64_t growth;
  std::array<int, 4> layers;  // per dense block
  int64_t stem_channels;
};

constexpr DenseNetSpec kDenseNets[] = {{"densenet121", 32, {6, 12, 24, 16}, 64},
                                       {"densenet161", 48, {6, 12, 36, 24}, 96},
                                       {"densenet169", 32, {6, 12, 32, 32}, 64},
                                       {"densenet201", 32, {6, 12, 48, 32}, 64}};

// The channels that a layer adds.
size_t DenseLayer(NetworkBuilder* net, size_t x, int64_t growth) {
  size_t y = net->Relu(net->BatchNorm(x));
  y = net->Conv2d(y, kBottleneckFactor * growth, Window::Square(1));
  return net->Conv2d(net->Relu(net->BatchNorm(y)), growth, Window::Square(3, 1, 1));
}

void AddLayerStages(NetworkBuilder* net, const std::string& block, int layers, int64_t growth) {
  for (int i = 0; i < layers; ++i) {
    const size_t x = net->last();
    net->Cat({x, DenseLayer(net, x, growth)});
    net->EndStage(absl::StrCat(block, ".", i), "dense_layer");
  }
}

void AddBlockStage(NetworkBuilder* net, const std::string& block, int layers, int64_t growth) {
  std::vector<size_t> parts = {net->last()};
  for (int i = 0; i < layers; ++i) parts.push_back(DenseLayer(net, net->Cat(parts), growth));
  net->Cat(parts);
  net->EndStage(block, "dense_block");
}

void AddTransition(NetworkBuilder* net) {
  const int64_t channels = net->channels(net->last()) / 2;
  const size_t y = net->Relu(net->BatchNorm(net->last()));
  net->AvgPool(net->Conv2d(y, channels, Window::Square(1)), Window::Square(2, 2));
}

absl::StatusOr<Network> BuildDenseNet(const DenseNetSpec& spec, const NetworkOptions& options,
                                      bool full_cat) {
  NetworkBuilder net = Begin(options.name, options);
  net.Conv2d(net.last(), spec.stem_channels, Window::Square(7, 2, 3));
  net.EndStage("conv0", "conv2d");
  NormReluStage(&net, "norm0relu");
  MaxPoolStage(&net, "pool0", Window::Square(3, 2, 1));
  for (size_t block = 0; block < spec.layers.size(); ++block) {
    const auto add = full_cat ? AddBlockStage : AddLayerStages;
    add(&net, absl::StrCat("block", block + 1), spec.layers[block], spec.growth);
    if (block + 1 == spec.layers.size()) continue;
    AddTransition(&net);
    net.EndStage(absl::StrCat("transition", block + 1), "dense_transition");
  }
  NormReluStage(&net, "norm5relu");
  return BuildWithHead(std::move(net), options.classes);
}

// Szegedy et al. 2016, "Rethinking the Inception architecture", version 3 as torchvision builds it,
// without the auxiliary classifier: a stage per block.

class InceptionBuilder {
 public:
  explicit InceptionBuilder(const NetworkOptions& options)
      : net_(Begin(options.name, options)), classes_(options.classes) {}

  absl::StatusOr<Network> Build() && {
    AddStem();
    AddBlockA("mixed_5b", 32);
    AddBlockA("mixed_5c", 64);
    AddBlockA("mixed_5d", 64);
    AddBlockB("mixed_6a");
    AddBlockC("mixed_6b", 128);
    AddBlockC("mixed_6c", 160);
    AddBlockC("mixed_6d", 160);
    AddBlockC("mixed_6e", 192);
    AddBlockD("mixed_7a");
    AddBlockE("mixed_7b");
    AddBlockE("mixed_7c");
    const size_t pooled = net_.GlobalAvgPool(net_.last());
    net_.Linear(net_.Flatten(net_.Dropout(pooled)), classes_);
    net_.EndStage("head", "average_pool_dropout_linear");
    return std::move(net_).Build();
  }

 private:
  size_t Convolve(size_t x, int64_t channels, const Window& window) {
    return net_.Relu(net_.BatchNorm(net_.Conv2d(x, channels, window)));
  }
  size_t One(size_t x, int64_t channels) { return Convolve(x, channels, Window::Square(1)); }
  // Keeps the image's size.
  size_t Three(size_t x, int64_t channels) {
    return Convolve(x, channels, Window::Square(3, 1, 1));
  }
  size_t Halve(size_t x, int64_t channels) { return Convolve(x, channels, Window::Square(3, 2)); }
  size_t Row(size_t x, int64_t channels, int64_t width) {
    return Convolve(x, channels, {1, width, 1, 1, 0, width / 2});
  }
  size_t Column(size_t x, int64_t channels, int64_t height) {
    return Convolve(x, channels, {height, 1, 1, 1, height / 2, 0});
  }
  size_t PooledBranch(size_t x, int64_t channels) {
    return One(net_.AvgPool(x, Window::Square(3, 1, 1)), channels);
  }

  void AddStem() {
    Halve(net_.last(), 32);
    net_.EndStage("conv_1a", "conv2d_bn_relu");
    Convolve(net_.last(), 32, Window::Square(3));
    net_.EndStage("conv_2a", "conv2d_bn_relu");
    Three(net_.last(), 64);
    net_.EndStage("conv_2b", "conv2d_bn_relu");
    MaxPoolStage(&net_, "maxpool1", Window::Square(3, 2));
    One(net_.last(), 80);
    net_.EndStage("conv_3b", "conv2d_bn_relu");
    Convolve(net_.last(), 192, Window::Square(3));
    net_.EndStage("conv_4a", "conv2d_bn_relu");
    MaxPoolStage(&net_, "maxpool2", Window::Square(3, 2));
  }

  void AddBlockA(const char* name, int64_t pool_channels) {
    const size_t x = net_.last();
    const size_t one = One(x, 64);
    const size_t five = Convolve(One(x, 48), 64, Window::Square(5, 1, 2));
    const size_t three = Three(Three(One(x, 64), 96), 96);
    net_.Cat({one, five, three, PooledBranch(x, pool_channels)});
    net_.EndStage(name, "inception_a");
  }

  void AddBlockB(const char* name) {
    const size_t x = net_.last();
    const size_t three = Halve(x, 384);
    const size_t twice = Halve(Three(One(x, 64), 96), 96);
    net_.Cat({three, twice, net_.MaxPool(x, Window::Square(3, 2))});
    net_.EndStage(name, "inception_b");
  }

  void AddBlockC(const char* name, int64_t width) {
    const size_t x = net_.last();
    const size_t one = One(x, 192);
    const size_t seven = Column(Row(One(x, width), width, 7), 192, 7);
    size_t twice = Row(Column(One(x, width), width, 7), width, 7);
    twice = Row(Column(twice, width, 7), 192, 7);
    net_.Cat({one, seven, twice, PooledBranch(x, 192)});
    net_.EndStage(name, "inception_c");
  }

  void AddBlockD(const char* name) {
    const size_t x = net_.last();
    const size_t three = Halve(One(x, 192), 320);
    const size_t seven = Halve(Column(Row(One(x, 192), 192, 7), 192, 7), 192);
    net_.Cat({three, seven, net_.MaxPool(x, Window::Square(3, 2))});
    net_.EndStage(name, "inception_d");
  }

  size_t Fork(size_t x) {
    const size_t row = Row(x, 384, 3);
    return net_.Cat({row, Column(x, 384, 3)});
  }

  void AddBlockE(const char* name) {
    const size_t x = net_.last();
    const size_t one = One(x, 320);
    const size_t three = Fork(One(x, 384));
    const size_t twice = Fork(Three(One(x, 448), 384));
    net_.Cat({one, three, twice, PooledBranch(x, 192)});
    net_.EndStage(name, "inception_e");
  }

  NetworkBuilder net_;
  int64_t classes_;
};

// Networks of cells that a search has found, for images of 32 x 32 pixels: NASNet-A (Zoph et al.
// 2018, "Learning transferable architectures"), AmoebaNet-A (Real et al. 2019, "Regularized
// evolution") and DARTS, second order (Liu et al. 2019, "DARTS: differentiable architecture
// search"), all three as the last of these evaluates them: 20 cells of 36 channels, the 7th and the
// 14th of which halve the image; no auxiliary classifier, no dropped paths.

constexpr int kCells = 20;
constexpr int64_t kChannels = 36;
constexpr int64_t kStemFactor = 3;

enum class CellOp { kAvg3, kMax3, kSkip, kSep3, kSep5, kSep7, kDil3, kSevenByOne };

// Of a cell's tensors: its two inputs are 0 and 1, what its nodes make follows.
struct CellEdge {
  CellOp op;
  size_t input;
};

struct Cell {
  std::vector<std::pair<CellEdge, CellEdge>> nodes;  // each adds two edges up
  std::vector<size_t> output;                        // concatenated
};

struct CellNetworkSpec {
  const char* name;
  const char* description;
  Cell normal;
  Cell reduction;
};

CellNetworkSpec NasNet() {
  using Op = CellOp;
  return {"nasnet_a",
          "20 cells of NASNet-A",
          {{{{Op::kSep5, 1}, {Op::kSep3, 0}},
            {{Op::kSep5, 0}, {Op::kSep3, 0}},
            {{Op::kAvg3, 1}, {Op::kSkip, 0}},
            {{Op::kAvg3, 0}, {Op::kAvg3, 0}},
            {{Op::kSep3, 1}, {Op::kSkip, 1}}},
           {2, 3, 4, 5, 6}},
          {{{{Op::kSep5, 1}, {Op::kSep7, 0}},
            {{Op::kMax3, 1}, {Op::kSep7, 0}},
            {{Op::kAvg3, 1}, {Op::kSep5, 0}},
            {{Op::kSkip, 3}, {Op::kAvg3, 2}},
            {{Op::kSep3, 2}, {Op::kMax3, 1}}},
           {4, 5, 6}}};
}

CellNetworkSpec AmoebaNet() {
  using Op = CellOp;
  return {"amoebanet_a",
          "20 cells of AmoebaNet-A",
          {{{{Op::kAvg3, 0}, {Op::kMax3, 1}},
            {{Op::kSep3, 0}, {Op::kSep5, 2}},
            {{Op::kSep3, 0}, {Op::kAvg3, 3}},
            {{Op::kSep3, 1}, {Op::kSkip, 1}},
            {{Op::kSkip, 0}, {Op::kAvg3, 1}}},
           {4, 5, 6}},
          {{{{Op::kAvg3, 0}, {Op::kSep3, 1}},
            {{Op::kMax3, 0}, {Op::kSep7, 2}},
            {{Op::kSep7, 0}, {Op::kAvg3, 1}},
            {{Op::kMax3, 0}, {Op::kMax3, 1}},
            {{Op::kSevenByOne, 0}, {Op::kSep3, 5}}},
           {3, 4, 6}}};
}

CellNetworkSpec Darts() {
  using Op = CellOp;
  return {"darts_v2",
          "20 cells of DARTS, second order",
          {{{{Op::kSep3, 0}, {Op::kSep3, 1}},
            {{Op::kSep3, 0}, {Op::kSep3, 1}},
            {{Op::kSep3, 1}, {Op::kSkip, 0}},
            {{Op::kSkip, 0}, {Op::kDil3, 2}}},
           {2, 3, 4, 5}},
          {{{{Op::kMax3, 0}, {Op::kMax3, 1}},
            {{Op::kSkip, 2}, {Op::kMax3, 1}},
            {{Op::kMax3, 0}, {Op::kSkip, 2}},
            {{Op::kSkip, 2}, {Op::kMax3, 1}}},
           {2, 3, 4, 5}}};
}

class CellNetworkBuilder {
 public:
  CellNetworkBuilder(const CellNetworkSpec& spec, const NetworkOptions& options)
      : spec_(spec), classes_(options.classes), net_(Begin(spec.name, options)) {}

  absl::StatusOr<Network> Build() && {
    net_.BatchNorm(net_.Conv2d(net_.last(), kStemFactor * kChannels, Window::Square(3, 1, 1)));
    net_.EndStage("stem", "conv2d_bn");
    AddCells();
    net_.EndStage("cells", "cells");
    return BuildWithHead(std::move(net_), classes_);
  }

 private:
  void AddCells() {
    size_t before_last = net_.last();
    size_t last = net_.last();
    int64_t channels = kChannels;
    bool last_reduces = false;
    for (int i = 0; i < kCells; ++i) {
      const bool reduces = i == kCells / 3 || i == 2 * kCells / 3;
      if (reduces) channels *= 2;
      before_last =
          last_reduces ? Halve(before_last, channels) : ReluConvNorm(before_last, channels);
      const size_t input = ReluConvNorm(last, channels);
      const Cell& cell = reduces ? spec_.reduction : spec_.normal;
      const size_t output = AddCell(cell, {before_last, input}, reduces ? 2 : 1);
      before_last = std::exchange(last, output);
      last_reduces = reduces;
    }
  }

  size_t AddCell(const Cell& cell, std::vector<size_t> tensors, int64_t stride) {
    for (const auto& [left, right] : cell.nodes) {
      const size_t a = AddEdge(left, tensors, stride);
      const size_t b = AddEdge(right, tensors, stride);
      tensors.push_back(net_.Add(a, b));
    }
    std::vector<size_t> parts;
    for (const size_t part : cell.output) parts.push_back(tensors[part]);
    return net_.Cat(parts);
  }

  // Only what reads an input of the cell has its stride.
  size_t AddEdge(const CellEdge& edge, const std::vector<size_t>& tensors, int64_t cell_stride) {
    const size_t x = tensors[edge.input];
    const int64_t stride = edge.input < 2 ? cell_stride : 1;
    switch (edge.op) {
      case CellOp::kAvg3:
        return net_.AvgPool(x, Window::Square(3, stride, 1));
      case CellOp::kMax3:
        return net_.MaxPool(x, Window::Square(3, stride, 1));
      case CellOp::kSkip:
        return stride == 1 ? net_.Identity(x) : Halve(x, net_.channels(x));
      case CellOp::kSep3:
        return SeparableTwice(x, 3, stride);
      case CellOp::kSep5:
        return SeparableTwice(x, 5, stride);
      case CellOp::kSep7:
        return SeparableTwice(x, 7, stride);
      case CellOp::kDil3:
        return Separable(x, {3, 3, stride, stride, 2, 2, /*dilation=*/2});
      case CellOp::kSevenByOne:
        return SevenByOne(x, stride);
    }
    return x;
  }

  size_t ReluConvNorm(size_t x, int64_t channels) {
    return net_.BatchNorm(net_.Conv2d(net_.ReluCopy(x), channels, Window::Square(1)));
  }

  size_t Separable(size_t x, const Window& window) {
    const size_t y = net_.DepthwiseConv2d(net_.ReluCopy(x), window);
    return net_.BatchNorm(net_.Conv2d(y, net_.channels(x), Window::Square(1)));
  }

  size_t SeparableTwice(size_t x, int64_t side, int64_t stride) {
    const size_t y = Separable(x, Window::Square(side, stride, side / 2));
    return Separable(y, Window::Square(side, 1, side / 2));
  }

  size_t SevenByOne(size_t x, int64_t stride) {
    const int64_t channels = net_.channels(x);
    const size_t y = net_.Conv2d(net_.ReluCopy(x), channels, {1, 7, 1, stride, 0, 3});
    return net_.BatchNorm(net_.Conv2d(y, channels, {7, 1, stride, 1, 3, 0}));
  }

  // Half of the channels from the even pixels, half from the odd ones.
  size_t Halve(size_t x, int64_t channels) {
    const size_t y = net_.ReluCopy(x);
    const size_t even = net_.Conv2d(y, channels / 2, Window::Square(1, 2));
    const size_t odd = net_.Conv2d(net_.Slice(y), channels / 2, Window::Square(1, 2));
    return net_.BatchNorm(net_.Cat({even, odd}));
  }

  const CellNetworkSpec spec_;
  int64_t classes_;
  NetworkBuilder net_;
};

struct ImageNetwork {
  NetworkInfo info;
  // Of options whose name is the network's. Errors: see MakeNetwork (networks.h).
  std::function<absl::StatusOr<Network>(const NetworkOptions&)> make;
};

// In the order of AllNetworks.
const std::vector<ImageNetwork>& ImageNetworks() {
  static const auto* const kNetworks = [] {
    auto* networks = new std::vector<ImageNetwork>;
    const auto add = [networks](NetworkInfo info, auto make) {
      networks->push_back({std::move(info), std::move(make)});
    };
    using Options = const NetworkOptions&;
    for (const ResNetSpec& spec : kResNets) {
      add({spec.name, spec.description}, [&spec](Options o) { return BuildResNet(spec, o); });
    }
    for (const bool full_cat : {false, true}) {
      const char* description = full_cat ? "densely connected, a stage per dense block"
                                         : "densely connected, a stage per dense layer";
      for (const DenseNetSpec& spec : kDenseNets) {
        add({absl::StrCat(spec.name, full_cat ? kFullCat : ""), description, /*chain=*/!full_cat},
            [&spec, full_cat](Options o) { return BuildDenseNet(spec, o, full_cat); });
      }
    }
    add({"inception_v3", "parallel branches, a stage per block, no auxiliary classifier"},
        [](Options o) { return InceptionBuilder(o).Build(); });
    for (const VggSpec& spec : kVggs) {
      add({spec.name, "plain convolutions, no norm"},
          [&spec](Options o) { return BuildVgg(spec, o); });
    }
    add({"alexnet", "five plain convolutions, no norm"}, BuildAlexNet);
    for (const CellNetworkSpec& spec : {NasNet(), AmoebaNet(), Darts()}) {
      add({spec.name, spec.description, /*chain=*/false},
          [spec](Options o) { return CellNetworkBuilder(spec, o).Build(); });
    }
    return networks;
  }();
  return *kNetworks;
}

// Radford et al. 2019, "Language models are unsupervised multitask learners" (GPT-2): norms before
// attention and feed-forward part.

constexpr int64_t kFeedForwardFactor = 4;
constexpr int64_t kTokenBytes = 8;

struct NamedSize {
  const char* name;
  const char* description;
  int64_t layers;
  int64_t width;
  int64_t heads;
};

// Table 2 of the paper; heads of 64.
constexpr NamedSize kSizes[] = {
    {"gpt2", "GPT-2 small: 12 layers of width 768", 12, 768, 12},
    {"gpt2_medium", "GPT-2 medium: 24 layers of width 1024", 24, 1024, 16},
    {"gpt2_large", "GPT-2 large: 36 layers of width 1280", 36, 1280, 20},
    {"gpt2_xl", "GPT-2 XL: 48 layers of width 1600", 48, 1600, 25},
};

absl::Status CheckOptions(const DecoderOptions& options) {
  for (const int64_t value : {options.layers, options.width, options.heads, options.length,
                              options.vocabulary, options.batch}) {
    if (value < 1) return absl::InvalidArgumentError(absl::StrCat("must be >= 1, not ", value));
  }
  if (options.width % options.heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("heads (", options.heads, ") must divide the width (", options.width, ")"));
  }
  return absl::OkStatus();
}

// One of queries, keys and values, a matrix per head.
size_t Project(NetworkBuilder* net, size_t x, const DecoderOptions& options) {
  return net->Transpose(
      net->Linear(x, options.width),
      {options.batch * options.heads, options.length, options.width / options.heads});
}

size_t Attention(NetworkBuilder* net, size_t x, const DecoderOptions& options) {
  const size_t queries = Project(net, x, options);
  const size_t keys = Project(net, x, options);
  const size_t values = Project(net, x, options);
  const auto op_by_op = [&] {
    const size_t weights = net->Softmax(net->Matmul(queries, keys, options.length));
    return net->Matmul(weights, values, options.width / options.heads);
  };
  const size_t mixed = options.fused_attention ? net->Attention(queries, keys, values) : op_by_op();
  const size_t joined = net->Transpose(mixed, {options.batch, options.length, options.width});
  return net->Linear(joined, options.width);
}

void AddLayer(NetworkBuilder* net, const DecoderOptions& options) {
  const size_t x = net->last();
  const size_t y = net->Add(Attention(net, net->LayerNorm(x), options), x);
  const size_t wide = net->Gelu(net->Linear(net->LayerNorm(y), kFeedForwardFactor * options.width));
  net->Add(net->Linear(wide, options.width), y);
}

absl::Status UnknownName(const std::string& name) {
  const auto append_name = [](std::string* out, const NetworkInfo& info) {
    out->append(info.name);
  };
  return absl::InvalidArgumentError(absl::StrCat("there is no network '", name, "'; there are ",
                                                 absl::StrJoin(AllNetworks(), ", ", append_name),
                                                 ", ",
                                                 absl::StrJoin(AllDecoders(), ", ", append_name)));
}

bool HasOp(const Network& network, const NetworkStage& stage, OpKind kind) {
  const auto first = network.ops.begin() + static_cast<std::ptrdiff_t>(stage.first_op);
  const auto end = network.ops.begin() + static_cast<std::ptrdiff_t>(stage.end_op);
  return std::any_of(first, end, [&](const NetworkOp& op) { return op.kind == kind; });
}

Stage MakeStage(const Network& network, size_t index, const StageMemory& memory,
                const std::vector<OpTimes>& op_times) {
  const NetworkStage& described = network.stages[index];
  OpTimes times;
  for (size_t i = described.first_op; i < described.end_op; ++i) times += op_times[i];
  Stage stage;
  stage.name = described.name;
  stage.op_kind = described.op_kind;
  stage.forward_time = times.forward;
  stage.backward_time = times.backward;
  stage.output = memory.output;
  stage.saved = memory.saved;
  stage.saved_tensors = memory.saved_tensors;
  stage.forward_saving_overhead = memory.forward_saving_overhead;
  stage.forward_overhead = memory.forward_overhead;
  stage.backward_overhead = memory.backward_overhead;
  stage.random = HasOp(network, described, OpKind::kDropout);
  stage.stateful = HasOp(network, described, OpKind::kBatchNorm);
  return stage;
}

}  // namespace

const std::vector<NetworkInfo>& AllNetworks() {
  static const auto* const kNetworks = [] {
    auto* networks = new std::vector<NetworkInfo>;
    for (const ImageNetwork& network : ImageNetworks()) networks->push_back(network.info);
    return networks;
  }();
  return *kNetworks;
}

absl::StatusOr<Network> MakeNetwork(const NetworkOptions& options) {
  const std::pair<const char*, int64_t> sizes[] = {{"image", options.image},
                                                   {"batch", options.batch},
                                                   {"classes", options.classes},
                                                   {"length", options.length}};
  for (const auto& [name, size] : sizes) {
    if (size < 1) return FieldError(name, size, "must be >= 1");
  }
  for (const ImageNetwork& network : ImageNetworks()) {
    if (options.name == network.info.name) return network.make(options);
  }
  const absl::StatusOr<DecoderOptions> decoder = NamedDecoder(options);
  if (!decoder.ok()) return UnknownName(options.name);
  absl::StatusOr<Network> network = MakeDecoder(*decoder);
  if (!network.ok()) return network;
  network->name = options.name;
  network->tied_embedding = true;
  return network;
}

absl::StatusOr<Chain> ChainOf(const Network& network, const DeviceModel& device) {
  absl::Status status = ValidateDeviceModel(device);
  if (!status.ok()) return status;
  ChainSpec spec;
  spec.name = network.name;
  spec.input = network.ops.front().bytes;
  const std::vector<OpTimes> times = ModelledTimes(network, device);
  for (size_t i = 0; i < network.stages.size(); ++i) {
    const StageMemory memory = MemoryOfStage(network, i);
    if (i > 0) spec.stages[i - 1].output_gradient = memory.input_gradient;
    Stage stage = MakeStage(network, i, memory, times);
    if (i + 1 < network.stages.size()) {
      spec.stages.push_back(std::move(stage));
    } else {
      spec.loss = std::move(stage);
    }
  }
  return Chain::Create(std::move(spec));
}

absl::StatusOr<Chain> NetworkChain(const NetworkOptions& options, const DeviceModel& device) {
  absl::StatusOr<Network> network = MakeNetwork(options);
  if (!network.ok()) return network.status();
  return ChainOf(*network, device);
}

Profile ModelledProfile(Problem problem, const DeviceModel& device) {
  std::string name = std::visit([](const auto& kind) { return kind.name(); }, problem);
  return {std::move(name), DescribeModel(device), std::move(problem), CostSource::kModelled};
}

const std::vector<NetworkInfo>& AllDecoders() {
  static const auto* const kDecoders = [] {
    auto* decoders = new std::vector<NetworkInfo>;
    for (const NamedSize& size : kSizes) decoders->push_back({size.name, size.description});
    return decoders;
  }();
  return *kDecoders;
}

bool IsDecoder(const std::string& name) {
  return std::any_of(std::begin(kSizes), std::end(kSizes),
                     [&name](const NamedSize& size) { return name == size.name; });
}

absl::StatusOr<DecoderOptions> NamedDecoder(const NetworkOptions& options) {
  for (const NamedSize& size : kSizes) {
    if (options.name != size.name) continue;
    DecoderOptions decoder;
    decoder.layers = size.layers;
    decoder.width = size.width;
    decoder.heads = size.heads;
    decoder.length = options.length;
    decoder.batch = options.batch;
    return decoder;
  }
  return absl::NotFoundError(absl::StrCat("there is no decoder '", options.name, "'"));
}

absl::StatusOr<Network> MakeDecoder(const DecoderOptions& options) {
  const absl::Status status = CheckOptions(options);
  if (!status.ok()) return status;
  NetworkBuilder net(absl::StrCat("decoder", options.layers), {options.batch, options.length},
                     kTokenBytes);
  net.Embedding(net.last(), options.vocabulary, options.width);
  net.EndStage("embedding", "embedding");
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    AddLayer(&net, options);
    net.EndStage(absl::StrCat("layer", layer), "decoder_layer");
  }
  net.Linear(net.LayerNorm(net.last()), options.vocabulary);
  net.EndStage("head", "layer_norm_linear");
  return std::move(net).Build();
}

}  // namespace stowage
