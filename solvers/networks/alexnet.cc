// Krizhevsky 2014, "One weird trick for parallelizing convolutional neural networks", as
// torchvision builds it.
#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/networks/families.h"
#include "solvers/networks/network_builder.h"

namespace stowage {
namespace {

constexpr char kAlexNet[] = "alexnet";
constexpr int64_t kAlexPooledSide = 6;
constexpr int64_t kAlexHidden = 4096;

void Convolve(NetworkBuilder* net, int number, int64_t channels, const Window& window) {
  net->Relu(net->Conv2d(net->last(), channels, window, /*bias=*/true));
  net->EndStage(absl::StrCat("conv", number), "conv2d_relu");
}

void Pool(NetworkBuilder* net, int number) {
  net->MaxPool(net->last(), Window::Square(3, 2));
  net->EndStage(absl::StrCat("pool", number), "max_pool2d");
}

}  // namespace

std::vector<NetworkInfo> AlexNets() { return {{kAlexNet, "five plain convolutions, no norm"}}; }

absl::StatusOr<Network> MakeAlexNet(const NetworkOptions& options) {
  if (options.name != kAlexNet) return absl::NotFoundError(options.name);
  NetworkBuilder net(kAlexNet, {options.batch, 3, options.image, options.image}, kFloatBytes);
  Convolve(&net, 1, 64, Window::Square(11, 4, 2));
  Pool(&net, 1);
  Convolve(&net, 2, 192, Window::Square(5, 1, 2));
  Pool(&net, 2);
  Convolve(&net, 3, 384, Window::Square(3, 1, 1));
  Convolve(&net, 4, 256, Window::Square(3, 1, 1));
  Convolve(&net, 5, 256, Window::Square(3, 1, 1));
  Pool(&net, 5);
  net.AdaptiveAvgPool(net.last(), kAlexPooledSide);
  net.EndStage("avgpool", "adaptive_avg_pool2d");
  net.Relu(net.Linear(net.Dropout(net.Flatten(net.last())), kAlexHidden));
  net.EndStage("fc1", "dropout_linear_relu");
  net.Relu(net.Linear(net.Dropout(net.last()), kAlexHidden));
  net.EndStage("fc2", "dropout_linear_relu");
  net.Linear(net.last(), options.classes);
  net.EndStage("fc3", "linear");
  return std::move(net).Build();
}

}  // namespace stowage
