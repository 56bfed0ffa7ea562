// Huang et al. 2017, "Densely connected convolutional networks", as torchvision builds them, cut
// into a chain: every dense layer is a stage that hands on its input with its own channels
// appended.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "solvers/networks/families.h"
#include "solvers/networks/network_builder.h"

namespace stowage {
namespace {

constexpr int64_t kBottleneckFactor = 4;

struct Architecture {
  const char* name;
  int64_t growth;
  std::vector<int> layers;  // per dense block
  int64_t stem_channels;
};

const std::vector<Architecture>& Architectures() {
  static const auto* const kArchitectures = new std::vector<Architecture>{
      {"densenet121", 32, {6, 12, 24, 16}, 64},
      {"densenet161", 48, {6, 12, 36, 24}, 96},
      {"densenet169", 32, {6, 12, 32, 32}, 64},
      {"densenet201", 32, {6, 12, 48, 32}, 64},
  };
  return *kArchitectures;
}

void AddDenseLayer(NetworkBuilder* net, int64_t growth) {
  const size_t x = net->last();
  size_t y = net->Relu(net->BatchNorm(x));
  y = net->Conv2d(y, kBottleneckFactor * growth, Window::Square(1));
  y = net->Conv2d(net->Relu(net->BatchNorm(y)), growth, Window::Square(3, 1, 1));
  net->Cat({x, y});
}

void AddTransition(NetworkBuilder* net) {
  const int64_t channels = net->channels(net->last()) / 2;
  const size_t y = net->Relu(net->BatchNorm(net->last()));
  net->AvgPool(net->Conv2d(y, channels, Window::Square(1)), Window::Square(2, 2));
}

absl::StatusOr<Network> Build(const Architecture& architecture, const NetworkOptions& options) {
  NetworkBuilder net(architecture.name, {options.batch, 3, options.image, options.image},
                     kFloatBytes);
  net.Conv2d(net.last(), architecture.stem_channels, Window::Square(7, 2, 3));
  net.EndStage("conv0", "conv2d");
  net.Relu(net.BatchNorm(net.last()));
  net.EndStage("norm0relu", "batch_norm_relu");
  net.MaxPool(net.last(), Window::Square(3, 2, 1));
  net.EndStage("pool0", "max_pool2d");
  for (size_t block = 0; block < architecture.layers.size(); ++block) {
    for (int i = 0; i < architecture.layers[block]; ++i) {
      AddDenseLayer(&net, architecture.growth);
      net.EndStage(absl::StrCat("block", block + 1, ".", i), "dense_layer");
    }
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
  for (const Architecture& architecture : Architectures()) {
    infos.push_back({architecture.name, "densely connected, a stage per dense layer"});
  }
  return infos;
}

absl::StatusOr<Network> MakeDenseNet(const NetworkOptions& options) {
  for (const Architecture& architecture : Architectures()) {
    if (options.name == architecture.name) return Build(architecture, options);
  }
  return absl::NotFoundError(options.name);
}

}  // namespace stowage
