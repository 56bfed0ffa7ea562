#include "solvers/zoo/roofline.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "solvers/zoo/networks.h"

namespace stowage {
namespace {

Network Make(const std::string& name, int64_t image) {
  NetworkOptions options;
  options.name = name;
  options.image = image;
  return MakeNetwork(options).value();
}

// A multiplication and an addition are two: the nanoseconds of a device that takes one for each, and
// none for traffic and kernels.
std::vector<OpTimes> FlopsOf(const Network& network) {
  DeviceModel device;
  device.peak_flops_per_second = 1e9;
  device.peak_bytes_per_second = std::numeric_limits<double>::infinity();
  return ModelledTimes(network, device);
}

// 10^9 multiplications with additions of one image, as torchvision's documentation states them.
TEST(RooflineTest, FlopsAreThePublishedNumbers) {
  const std::map<std::string, double> published = {
      {"alexnet", 0.71},    {"vgg16", 15.47},      {"resnet18", 1.81},    {"resnet50", 4.09},
      {"resnet152", 11.51}, {"densenet121", 2.83}, {"densenet201", 4.29},
  };
  for (const auto& [name, giga_products] : published) {
    double forward = 0, backward = 0;
    for (const OpTimes& flops : FlopsOf(Make(name, 224))) {
      forward += static_cast<double>(flops.forward.value());
      backward += static_cast<double>(flops.backward.value());
    }
    EXPECT_NEAR(forward / 2e9, giga_products, 0.006) << name;
    EXPECT_LT(backward, 2 * forward) << name;  // the input has no gradient
    EXPECT_GT(backward, 1.8 * forward) << name;
  }
}

// Each output is a sum over one channel's window; the convolution after it, over all channels.
TEST(RooflineTest, DepthwiseConvolutionsCountOneChannel) {
  const Network network = Make("darts_v2", 32);
  const std::vector<OpTimes> flops = FlopsOf(network);
  size_t depthwise = 0;
  while (network.ops[depthwise].parameters != std::vector<int64_t>{36 * 3 * 3}) ++depthwise;
  EXPECT_EQ(flops[depthwise].forward, Nanos(2 * 36 * 32 * 32 * 3 * 3));
  EXPECT_EQ(flops[depthwise].backward, flops[depthwise].forward + flops[depthwise].forward);
  EXPECT_EQ(flops[depthwise + 1].forward, Nanos(2 * 36 * 32 * 32 * 36));
}

// An addition's own backward is nothing; who reads a tensor first adds the gradients up.
TEST(RooflineTest, TheFirstReaderAddsGradientsUp) {
  const Network network = Make("resnet18", 224);
  const std::vector<OpTimes> times = ModelledTimes(network, ModelledV100());
  // Of the first block: the pooling is read by a convolution and by the addition.
  size_t pool = 0;
  while (network.ops[pool].kind != OpKind::kMaxPool) ++pool;
  size_t add = pool;
  while (network.ops[add].kind != OpKind::kAdd) ++add;
  EXPECT_EQ(times[add].backward, Nanos(0));
  size_t second = pool + 4;  // the block's second convolution, equal but for its input's readers
  ASSERT_EQ(network.ops[second].kind, OpKind::kConv2d);
  EXPECT_EQ(times[pool + 1].forward, times[second].forward);
  EXPECT_GT(times[pool + 1].backward, times[second].backward);
}

}  // namespace
}  // namespace stowage
