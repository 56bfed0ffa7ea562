// Stages written by hand after torchvision's sources, held against the stages of the same name in
// solvers/zoo: that these are described as they are, not only that the rules fit.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "client/torch/profile/chain_profiler.h"
#include "solvers/zoo/networks.h"

namespace stowage {
namespace {

namespace nn = torch::nn;

nn::Conv2d Conv(int64_t in, int64_t out, torch::ExpandingArray<2> kernel,
                torch::ExpandingArray<2> stride = 1, torch::ExpandingArray<2> pad = 0) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(*pad).bias(false));
}

nn::ReLU InPlaceRelu() { return nn::ReLU(nn::ReLUOptions(/*inplace=*/true)); }

struct BasicConvImpl : nn::Module {
  explicit BasicConvImpl(const nn::Conv2d& convolution)
      : conv(register_module("conv", convolution)),
        bn(register_module("bn", nn::BatchNorm2d(convolution->options.out_channels()))) {}
  at::Tensor forward(const at::Tensor& x) { return bn(conv(x)).relu_(); }

  nn::Conv2d conv;
  nn::BatchNorm2d bn;
};
TORCH_MODULE(BasicConv);

struct DenseLayerImpl : nn::Module {
  DenseLayerImpl(int64_t in, int64_t growth) {
    layers = register_module(
        "layers", nn::Sequential(nn::BatchNorm2d(in), InPlaceRelu(), Conv(in, 4 * growth, 1),
                                 nn::BatchNorm2d(4 * growth), InPlaceRelu(),
                                 Conv(4 * growth, growth, 3, 1, 1)));
  }
  at::Tensor forward(const at::Tensor& x) { return at::cat({x, layers->forward(x)}, 1); }

  nn::Sequential layers{nullptr};
};

// Branches side by side.
struct BranchesImpl : nn::Module {
  explicit BranchesImpl(const std::vector<nn::Sequential>& parts) {
    for (size_t i = 0; i < parts.size(); ++i) {
      branches.push_back(register_module("branch" + std::to_string(i), parts[i]));
    }
  }
  at::Tensor forward(const at::Tensor& x) {
    std::vector<at::Tensor> outputs;
    for (nn::Sequential& branch : branches) outputs.push_back(branch->forward(x));
    return at::cat(outputs, 1);
  }

  std::vector<nn::Sequential> branches;
};

struct FlattenImpl : nn::Module {
  at::Tensor forward(const at::Tensor& x) { return x.flatten(1); }
};
TORCH_MODULE(Flatten);

nn::AvgPool2d SmoothingPool() {
  return nn::AvgPool2d(nn::AvgPool2dOptions(3).stride(1).padding(1));
}
nn::MaxPool2d HalvingPool() { return nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2)); }

// Runs the stage behind a convolution that makes its input and compares bytes with the stage `name`
// of the network.
template <class Module>
void ExpectStage(const NetworkOptions& options, const std::string& name, const Module& module) {
  SCOPED_TRACE(options.name + " " + name);
  const Network network = MakeNetwork(options).value();
  const Chain described = ChainOf(network, ModelledV100()).value();
  int l = 1;
  while (l <= described.length() && described.stage(l).name != name) ++l;
  ASSERT_LE(l, described.length()) << "no such stage";
  const Shape& input = network.ops[network.stages[static_cast<size_t>(l) - 1].first_op - 1].shape;

  ChainModel model(name);
  model.AddStage("stem", "conv2d", Conv(3, input[1], 1));
  model.AddStage(name, "stage", module);
  model.SetLoss("sum", [](const at::Tensor& y, const at::Tensor&) { return y.sum(); });
  ProfileOptions profile_options;
  profile_options.bytes_only = true;
  const auto profile = ProfileChain(model, torch::randn({input[0], 3, input[2], input[3]}),
                                    torch::zeros({1}), profile_options);
  ASSERT_TRUE(profile.ok()) << profile.status();
  const Chain& measured = std::get<Chain>(profile->problem);
  const Stage& a = measured.stage(2);
  const Stage& b = described.stage(l);
  EXPECT_EQ(measured.activation(1), described.activation(l - 1));
  EXPECT_EQ(measured.gradient(1), described.gradient(l - 1));
  EXPECT_EQ(a.output.value(), b.output.value());
  EXPECT_EQ(a.saved.value(), b.saved.value());
  EXPECT_EQ(a.random, b.random);
  EXPECT_EQ(a.stateful, b.stateful);
  // Convolutions take workspace beside what the shapes say.
  EXPECT_GE(a.forward_saving_overhead, b.forward_saving_overhead);
  EXPECT_GE(a.forward_overhead, b.forward_overhead);
  EXPECT_GE(a.backward_overhead, b.backward_overhead);
}

NetworkOptions Options(const std::string& name, int64_t image) {
  NetworkOptions options;
  options.name = name;
  options.image = image;
  options.batch = 2;
  options.classes = 10;
  return options;
}

TEST(WrittenStagesTest, DenseNet) {
  const NetworkOptions options = Options("densenet121", 64);
  ExpectStage(options, "block1.0", std::make_shared<DenseLayerImpl>(64, 32));
  ExpectStage(options, "block2.3", std::make_shared<DenseLayerImpl>(224, 32));
  ExpectStage(options, "transition1",
              nn::Sequential(nn::BatchNorm2d(256), InPlaceRelu(), Conv(256, 128, 1),
                             nn::AvgPool2d(nn::AvgPool2dOptions(2).stride(2))));
  ExpectStage(options, "norm5relu", nn::Sequential(nn::BatchNorm2d(1024), InPlaceRelu()));
  ExpectStage(options, "head",
              nn::Sequential(nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions({1, 1})), Flatten(),
                             nn::Linear(1024, 10)));
}

TEST(WrittenStagesTest, Inception) {
  const NetworkOptions options = Options("inception_v3", 107);
  ExpectStage(options, "mixed_5b",
              std::make_shared<BranchesImpl>(std::vector<nn::Sequential>{
                  nn::Sequential(BasicConv(Conv(192, 64, 1))),
                  nn::Sequential(BasicConv(Conv(192, 48, 1)), BasicConv(Conv(48, 64, 5, 1, 2))),
                  nn::Sequential(BasicConv(Conv(192, 64, 1)), BasicConv(Conv(64, 96, 3, 1, 1)),
                                 BasicConv(Conv(96, 96, 3, 1, 1))),
                  nn::Sequential(SmoothingPool(), BasicConv(Conv(192, 32, 1)))}));
  ExpectStage(options, "mixed_6a",
              std::make_shared<BranchesImpl>(std::vector<nn::Sequential>{
                  nn::Sequential(BasicConv(Conv(288, 384, 3, 2))),
                  nn::Sequential(BasicConv(Conv(288, 64, 1)), BasicConv(Conv(64, 96, 3, 1, 1)),
                                 BasicConv(Conv(96, 96, 3, 2))),
                  nn::Sequential(HalvingPool())}));
  ExpectStage(
      options, "mixed_6c",
      std::make_shared<BranchesImpl>(std::vector<nn::Sequential>{
          nn::Sequential(BasicConv(Conv(768, 192, 1))),
          nn::Sequential(BasicConv(Conv(768, 160, 1)), BasicConv(Conv(160, 160, {1, 7}, 1, {0, 3})),
                         BasicConv(Conv(160, 192, {7, 1}, 1, {3, 0}))),
          nn::Sequential(BasicConv(Conv(768, 160, 1)), BasicConv(Conv(160, 160, {7, 1}, 1, {3, 0})),
                         BasicConv(Conv(160, 160, {1, 7}, 1, {0, 3})),
                         BasicConv(Conv(160, 160, {7, 1}, 1, {3, 0})),
                         BasicConv(Conv(160, 192, {1, 7}, 1, {0, 3}))),
          nn::Sequential(SmoothingPool(), BasicConv(Conv(768, 192, 1)))}));
  const auto fork = [] {
    return std::make_shared<BranchesImpl>(
        std::vector<nn::Sequential>{nn::Sequential(BasicConv(Conv(384, 384, {1, 3}, 1, {0, 1}))),
                                    nn::Sequential(BasicConv(Conv(384, 384, {3, 1}, 1, {1, 0})))});
  };
  ExpectStage(
      options, "mixed_7c",
      std::make_shared<BranchesImpl>(std::vector<nn::Sequential>{
          nn::Sequential(BasicConv(Conv(2048, 320, 1))),
          nn::Sequential(BasicConv(Conv(2048, 384, 1)), fork()),
          nn::Sequential(BasicConv(Conv(2048, 448, 1)), BasicConv(Conv(448, 384, 3, 1, 1)), fork()),
          nn::Sequential(SmoothingPool(), BasicConv(Conv(2048, 192, 1)))}));
}

TEST(WrittenStagesTest, Vgg) {
  const NetworkOptions options = Options("vgg16", 64);
  ExpectStage(options, "conv3_2",
              nn::Sequential(nn::Conv2d(nn::Conv2dOptions(256, 256, 3).padding(1)), InPlaceRelu()));
  ExpectStage(options, "pool3", nn::Sequential(nn::MaxPool2d(nn::MaxPool2dOptions(2).stride(2))));
  ExpectStage(
      options, "fc1",
      nn::Sequential(Flatten(), nn::Linear(512 * 7 * 7, 4096), InPlaceRelu(), nn::Dropout(0.5)));
}

}  // namespace
}  // namespace stowage
