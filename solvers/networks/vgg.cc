// Simonyan & Zisserman 2015, "Very deep convolutional networks", without norms, as torchvision
// builds them.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "solvers/networks/families.h"
#include "solvers/networks/network_builder.h"

namespace stowage {
namespace {

constexpr int64_t kPooledSide = 7;
constexpr int64_t kHidden = 4096;
constexpr int64_t kMaxChannels = 512;

struct VggSpec {
  const char* name;
  std::vector<int> convolutions;  // between the poolings
};

const std::vector<VggSpec>& VggSpecs() {
  static const auto* const kSpecs = new std::vector<VggSpec>{
      {"vgg11", {1, 1, 2, 2, 2}},
      {"vgg13", {2, 2, 2, 2, 2}},
      {"vgg16", {2, 2, 3, 3, 3}},
      {"vgg19", {2, 2, 4, 4, 4}},
  };
  return *kSpecs;
}

void AddFeatures(NetworkBuilder* net, const std::vector<int>& convolutions) {
  int64_t channels = 64;
  for (size_t group = 0; group < convolutions.size(); ++group) {
    for (int i = 0; i < convolutions[group]; ++i) {
      net->Relu(net->Conv2d(net->last(), channels, Window::Square(3, 1, 1), /*bias=*/true));
      net->EndStage(absl::StrCat("conv", group + 1, "_", i + 1), "conv2d_relu");
    }
    net->MaxPool(net->last(), Window::Square(2, 2));
    net->EndStage(absl::StrCat("pool", group + 1), "max_pool2d");
    if (channels < kMaxChannels) channels *= 2;
  }
}

absl::StatusOr<Network> BuildVgg(const VggSpec& architecture, const NetworkOptions& options) {
  NetworkBuilder net(architecture.name, {options.batch, 3, options.image, options.image},
                     kFloatBytes);
  AddFeatures(&net, architecture.convolutions);
  net.AdaptiveAvgPool(net.last(), kPooledSide);
  net.EndStage("avgpool", "adaptive_avg_pool2d");
  net.Dropout(net.Relu(net.Linear(net.Flatten(net.last()), kHidden)));
  net.EndStage("fc1", "linear_relu_dropout");
  net.Dropout(net.Relu(net.Linear(net.last(), kHidden)));
  net.EndStage("fc2", "linear_relu_dropout");
  net.Linear(net.last(), options.classes);
  net.EndStage("fc3", "linear");
  return std::move(net).Build();
}

}  // namespace

std::vector<NetworkInfo> Vggs() {
  std::vector<NetworkInfo> infos;
  for (const VggSpec& architecture : VggSpecs()) {
    infos.push_back({architecture.name, "plain convolutions, no norm"});
  }
  return infos;
}

absl::StatusOr<Network> MakeVgg(const NetworkOptions& options) {
  for (const VggSpec& architecture : VggSpecs()) {
    if (options.name == architecture.name) return BuildVgg(architecture, options);
  }
  return absl::NotFoundError(options.name);
}

}  // namespace stowage
