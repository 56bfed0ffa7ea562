// Huang et al. 2017, "Densely connected convolutional networks", as torchvision builds them, cut
// into a chain: every dense layer is a stage that hands on its input with its own channels
// appended. The "_full_cat" ones are as torchvision runs them: every layer concatenates its block's
// tensors anew, so that a dense block is a stage.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "solvers/networks/families.h"
#include "solvers/networks/network_builder.h"

namespace stowage {
namespace {

constexpr int64_t kBottleneckFactor = 4;
constexpr char kFullCat[] = "_full_cat";

struct DenseNetSpec {
  const char* name;
  int64_t growth;
  std::vector<int> layers;  // per dense block
  int64_t stem_channels;
};

const std::vector<DenseNetSpec>& DenseNetSpecs() {
  static const auto* const kSpecs = new std::vector<DenseNetSpec>{
      {"densenet121", 32, {6, 12, 24, 16}, 64},
      {"densenet161", 48, {6, 12, 36, 24}, 96},
      {"densenet169", 32, {6, 12, 32, 32}, 64},
      {"densenet201", 32, {6, 12, 48, 32}, 64},
  };
  return *kSpecs;
}

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

absl::StatusOr<Network> BuildDenseNet(const DenseNetSpec& architecture,
                                      const NetworkOptions& options, bool full_cat) {
  NetworkBuilder net(options.name, {options.batch, 3, options.image, options.image}, kFloatBytes);
  net.Conv2d(net.last(), architecture.stem_channels, Window::Square(7, 2, 3));
  net.EndStage("conv0", "conv2d");
  net.Relu(net.BatchNorm(net.last()));
  net.EndStage("norm0relu", "batch_norm_relu");
  net.MaxPool(net.last(), Window::Square(3, 2, 1));
  net.EndStage("pool0", "max_pool2d");
  for (size_t block = 0; block < architecture.layers.size(); ++block) {
    const auto add = full_cat ? AddBlockStage : AddLayerStages;
    add(&net, absl::StrCat("block", block + 1), architecture.layers[block], architecture.growth);
    if (block + 1 == architecture.layers.size()) continue;
    AddTransition(&net);
    net.EndStage(absl::StrCat("transition", block + 1), "dense_transition");
  }
  net.Relu(net.BatchNorm(net.last()));
  net.EndStage("norm5relu", "batch_norm_relu");
  net.Linear(net.Flatten(net.GlobalAvgPool(net.last())), options.classes);
  net.EndStage("head", "average_pool_linear");
  return std::move(net).Build();
}

}  // namespace

std::vector<NetworkInfo> DenseNets() {
  std::vector<NetworkInfo> infos;
  for (const DenseNetSpec& architecture : DenseNetSpecs()) {
    infos.push_back({architecture.name, "densely connected, a stage per dense layer"});
  }
  for (const DenseNetSpec& architecture : DenseNetSpecs()) {
    infos.push_back({absl::StrCat(architecture.name, kFullCat),
                     "densely connected, a stage per dense block", /*chain=*/false});
  }
  return infos;
}

absl::StatusOr<Network> MakeDenseNet(const NetworkOptions& options) {
  for (const DenseNetSpec& architecture : DenseNetSpecs()) {
    if (absl::StripSuffix(options.name, kFullCat) != architecture.name) continue;
    return BuildDenseNet(architecture, options, /*full_cat=*/options.name != architecture.name);
  }
  return absl::NotFoundError(options.name);
}

}  // namespace stowage
