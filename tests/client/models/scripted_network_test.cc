// Networks of the user's own: what they take, which loss fits them, that they train as the module does, and
// what is said where they cannot.
#include "client/models/scripted_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/torch.h>

#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "client/torch/execute/executor.h"
#include "client/torch/execute/plain_step.h"
#include "client/torch/model/model_state.h"
#include "client/torch/model/state_digest.h"
#include "client/torch/profile/graph_profiler.h"
#include "solvers/schedule/instance.h"
#include "tests/client/torch/autocast.h"
#include "tests/support/temporary_folder.h"

namespace stowage {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(InputSpec, IsReadAsItIsWritten) {
  const std::vector<InputSpec> inputs = *ParseInputs("8x3x16x16,4:bfloat16,2x7:int64<50,1:float64");
  ASSERT_EQ(inputs.size(), 4u);
  EXPECT_THAT(inputs[0].sizes, ElementsAre(8, 3, 16, 16));
  EXPECT_EQ(inputs[0].type, torch::kFloat);
  EXPECT_EQ(inputs[1].type, torch::kBFloat16);
  EXPECT_EQ(inputs[2].type, torch::kLong);
  EXPECT_EQ(inputs[2].below, 50);
  EXPECT_EQ(inputs[3].type, torch::kDouble);
  for (const InputSpec& input : inputs) {
    const at::Tensor drawn = DrawInput(input);
    EXPECT_EQ(drawn.sizes().vec(), input.sizes);
    EXPECT_EQ(drawn.scalar_type(), input.type);
  }
  const at::Tensor ids = DrawInput(inputs[2]);
  EXPECT_GE(ids.min().item<int64_t>(), 0);
  EXPECT_LT(ids.max().item<int64_t>(), 50);
  EXPECT_GT(ids.max().item<int64_t>(), ids.min().item<int64_t>());
}

TEST(InputSpec, WhatIsWrongIsSaid) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "input = \"\": must be sizes >= 1"},
      {"8x3,", "input = \"\": must be sizes"},
      {"8x0x3", "must be sizes >= 1 with x between"},
      {"8x-3", "must be sizes >= 1"},
      {"8X3", "input = \"8X3\""},
      {"8x3:half", "must be one of float32, float64, bfloat16, float16, int64, int32"},
      {"8x3:int64", "integers need what they are below"},
      {"8x3:int64<0", "integers need"},
      {"8x3:int64<x", "integers need"},
      {"8x3:float32<7", "only integers have a range"},
      {"1048576x1048576x2", "at most 2^40"},
      {"9223372036854775807x9223372036854775807", "at most 2^40"},
      {"99999999999999999999", "must be sizes"}};
  for (const auto& [text, says] : cases) {
    const absl::Status status = ParseInputs(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(says)) << text;
  }
}

const TensorShape kScores{torch::kFloat, {8, 10}};
const TensorShape kMap{torch::kFloat, {8, 7, 4, 5}};
const TensorShape kRow{torch::kFloat, {8}};
const TensorShape kIds{torch::kLong, {8, 10}};

TEST(NetworkLoss, IsOfAllThatFloats) {
  const NetworkLoss loss = *NetworkLoss::For(LossKind::kCrossEntropy, {kIds, kScores, kScores});
  EXPECT_THAT(loss.trained(), ElementsAre(1, 2));
  EXPECT_EQ(loss.Describe(), "cross_entropy over 10 classes, of outputs 1 and 2 added up");
  const at::Tensor target = loss.DrawTarget();
  EXPECT_THAT(target.sizes().vec(), ElementsAre(8));
  EXPECT_LT(target.max().item<int64_t>(), 10);
  const at::Tensor a = torch::randn({8, 10}), b = torch::randn({8, 10});
  const auto alone = [&target](const at::Tensor& x) {
    return torch::nn::functional::cross_entropy(x, target).item<float>();
  };
  EXPECT_EQ(loss.Of({a, b}, target).item<float>(), alone(a) + alone(b));
}

TEST(NetworkLoss, OfPixelsHasAClassForEach) {
  const NetworkLoss loss = *NetworkLoss::For(LossKind::kCrossEntropy, {kMap});
  EXPECT_THAT(loss.DrawTarget().sizes().vec(), ElementsAre(8, 4, 5));
  EXPECT_EQ(loss.Describe(), "cross_entropy over 7 classes, of output 0");
}

TEST(NetworkLoss, OfHeadsOfSeveralSizesHasTheFewestClasses) {
  const TensorShape fewer{torch::kFloat, {8, 3}};
  const NetworkLoss loss = *NetworkLoss::For(LossKind::kCrossEntropy, {kScores, fewer});
  EXPECT_THAT(loss.Describe(), HasSubstr("over 3 classes"));
  EXPECT_LT(loss.DrawTarget().max().item<int64_t>(), 3);
}

TEST(NetworkLoss, MseAndSumTakeAnyShape) {
  const NetworkLoss mse = *NetworkLoss::For(LossKind::kMse, {kMap});
  EXPECT_THAT(mse.DrawTarget().sizes().vec(), ElementsAre(8, 7, 4, 5));
  const at::Tensor half = torch::randn({8, 7, 4, 5}).to(torch::kBFloat16);
  EXPECT_EQ(mse.Of({half}, mse.DrawTarget()).scalar_type(), torch::kFloat);
  const NetworkLoss sum = *NetworkLoss::For(LossKind::kSum, {kRow, kMap});
  EXPECT_FALSE(sum.DrawTarget().defined());
  EXPECT_EQ(sum.Of({torch::ones({8}), torch::ones({2, 2})}, {}).item<float>(), 12.0F);
}

TEST(NetworkLoss, WhatDoesNotFitIsSaid) {
  const auto error = [](LossKind kind, const std::vector<TensorShape>& outputs) {
    return std::string(NetworkLoss::For(kind, outputs).status().message());
  };
  EXPECT_THAT(error(LossKind::kCrossEntropy, {kRow}),
              HasSubstr("loss = cross_entropy: wants [N, C, ...] with C classes, output 0 is 8 "
                        "float32; mse and sum take any shape"));
  EXPECT_THAT(error(LossKind::kCrossEntropy, {kScores, kMap}),
              HasSubstr("output 1 is 8x7x4x5 float32, yet output 0 is 8x10 float32; sum takes"));
  EXPECT_THAT(error(LossKind::kMse, {kScores, kRow}), HasSubstr("against one target"));
  EXPECT_THAT(error(LossKind::kSum, {kIds}), HasSubstr("of floating type; forward returns 8x10"));
  EXPECT_THAT(error(LossKind::kSum, {}), HasSubstr("of floating type"));
  EXPECT_THAT(std::string(ParseLoss("hinge").status().message()),
              HasSubstr("loss = \"hinge\": must be cross_entropy, mse or sum"));
  EXPECT_EQ(*ParseLoss("mse"), LossKind::kMse);
}

// A module with a convolution, a head, a table of ids and a buffer, and the forward of the source.
torch::jit::Module ModuleOf(const std::string& source) {
  torch::manual_seed(1);
  torch::jit::Module module("__torch__.Own");
  const auto trained = [](const at::Tensor& values) { return at::Tensor(values).requires_grad_(); };
  module.register_attribute("training", c10::BoolType::get(), true);
  module.register_parameter("conv", trained(torch::randn({8, 3, 3, 3}) * 0.2), false);
  module.register_parameter("head", trained(torch::randn({5, 8})), false);
  module.register_parameter("table", trained(torch::randn({20, 8})), false);
  module.register_buffer("seen", torch::zeros({1}));
  module.define(source);
  return module;
}

constexpr char kImages[] = R"(
def forward(self, x):
    y = torch.relu_(torch.conv2d(x, self.conv, None, [1, 1], [1, 1]))
    self.seen.add_(1)
    y = torch.dropout(torch.tanh(y), 0.3, self.training).mean([2, 3])
    return torch.linear(y, self.head)
)";
// Two inputs, three outputs, one of them of integers.
constexpr char kTokens[] = R"(
def forward(self, ids, gain):
    y = torch.embedding(self.table, ids) * gain
    z = torch.linear(torch.tanh(y).mean(1), self.head)
    early = torch.linear(y.mean(1), self.head)
    return z, torch.argmax(z, 1), [early]
)";

class ScriptedNetworkTest : public testing::Test {
 protected:
  ScriptedOptions Saved(const torch::jit::Module& module, const std::string& inputs,
                        LossKind loss = LossKind::kCrossEntropy) {
    const std::string path = folder_ / "own.pt";
    module.save(path);
    return {path, ParseInputs(inputs).value(), loss, 3, c10::kCPU};
  }
  ScriptedOptions Saved(const std::string& source, const std::string& inputs,
                        LossKind loss = LossKind::kCrossEntropy) {
    return Saved(ModuleOf(source), inputs, loss);
  }
  static std::string ErrorOf(const ScriptedOptions& options) {
    const absl::Status status = ScriptedNetwork::Load(options).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    const std::string message(status.message());
    EXPECT_THAT(message, Not(HasSubstr("\n")));
    return message;
  }

  const TemporaryFolder folder_;
};

// What a step leaves behind.
struct Outcome {
  double loss;
  std::string gradients, buffers;
  RandomState random;
};

Outcome After(const ScriptedNetwork& network,
              const std::function<absl::StatusOr<StepReport>(std::vector<at::Tensor>)>& step) {
  const StateGuard restore(network.model().buffers());
  network.model().ZeroGradients();
  torch::manual_seed(9);
  std::vector<at::Tensor> inputs;
  for (const at::Tensor& input : network.inputs()) inputs.push_back(input.clone());
  const absl::StatusOr<StepReport> report = step(std::move(inputs));
  EXPECT_TRUE(report.ok()) << report.status();
  return {report.ok() ? report->loss.Get() : 0, GradientDigest(network.model()).ToHex(),
          BufferDigest(network.model()).ToHex(), RandomState::Capture()};
}

void ExpectEqual(const Outcome& a, const Outcome& b) {
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_EQ(a.gradients, b.gradients);
  EXPECT_EQ(a.buffers, b.buffers);
  EXPECT_TRUE(a.random == b.random);
}

// The module's own step, that of the graph, and one by a schedule are the same.
void ExpectTrainsAsItsModule(const ScriptedNetwork& network) {
  const GraphModel& model = network.model();
  const Outcome own = After(network, [&](std::vector<at::Tensor> inputs) {
    return network.PlainStep(std::move(inputs), network.target());
  });
  ExpectEqual(own, After(network, [&](std::vector<at::Tensor> inputs) {
                return PlainGraphStep(model, std::move(inputs), network.target());
              }));
  const absl::StatusOr<Profile> profile =
      ProfileGraph(model, network.inputs(), network.target(), {});
  ASSERT_TRUE(profile.ok()) << profile.status();
  const Graph& graph = std::get<Graph>(profile->problem);
  ExpectEqual(own, After(network, [&](std::vector<at::Tensor> inputs) {
                auto executor = Executor::Create(&model, graph, StoreAllSchedule(graph));
                return (*executor)->Step(std::move(inputs), network.target());
              }));
}

TEST_F(ScriptedNetworkTest, TrainsAsTheModuleDoesByEveryLoss) {
  for (const LossKind loss : {LossKind::kCrossEntropy, LossKind::kMse, LossKind::kSum}) {
    const testing::ScopedTrace trace(__FILE__, __LINE__, ToString(loss));
    const auto images = ScriptedNetwork::Load(Saved(kImages, "4x3x9x9", loss));
    ASSERT_TRUE(images.ok()) << images.status();
    ExpectTrainsAsItsModule(*images);
    const auto tokens = ScriptedNetwork::Load(Saved(kTokens, "4x6:int64<20,8", loss));
    ASSERT_TRUE(tokens.ok()) << tokens.status();
    ExpectTrainsAsItsModule(*tokens);
  }
}

TEST_F(ScriptedNetworkTest, TrainsInOtherTypes) {
  LeaveOutOneDnnWhereItHasNoBfloat16();
  for (const auto& [type, name] :
       {std::pair(torch::kDouble, "float64"), std::pair(torch::kBFloat16, "bfloat16")}) {
    const testing::ScopedTrace trace(__FILE__, __LINE__, name);
    torch::jit::Module module = ModuleOf(kImages);
    module.to(type);
    const auto network =
        ScriptedNetwork::Load(Saved(module, std::string("4x3x9x9:") + name, LossKind::kMse));
    ASSERT_TRUE(network.ok()) << network.status();
    EXPECT_EQ(network->model().parameters()[0].scalar_type(), type);
    ExpectTrainsAsItsModule(*network);
  }
}

TEST_F(ScriptedNetworkTest, SaysWhatItIs) {
  const auto network = ScriptedNetwork::Load(Saved(kTokens, "4x6:int64<20,8"));
  ASSERT_TRUE(network.ok()) << network.status();
  EXPECT_THAT(network->description(),
              ElementsAre(AllOf(HasSubstr("nodes, trains 2 parameters of 200 numbers, 800 B"),
                                HasSubstr("0 buffers")),
                          "input 0 (ids): 4x6 int64", "input 1 (gain): 8 float32",
                          "output 0: 4x5 float32", "output 1: 4 int64", "output 2: 4x5 float32",
                          "loss: cross_entropy over 5 classes, of outputs 0 and 2 added up"));
  torch::jit::Module module = ModuleOf(kImages);
  module.eval();
  const auto resting = ScriptedNetwork::Load(Saved(module, "4x3x9x9"));
  ASSERT_TRUE(resting.ok()) << resting.status();
  EXPECT_THAT(resting->description(), Contains(HasSubstr("evaluation mode")));
}

TEST_F(ScriptedNetworkTest, EqualSeedsAreEqualBatches) {
  ScriptedOptions options = Saved(kImages, "4x3x9x9");
  torch::manual_seed(5);
  const RandomState before = RandomState::Capture();
  const auto a = ScriptedNetwork::Load(options);
  const auto b = ScriptedNetwork::Load(options);
  EXPECT_TRUE(RandomState::Capture() == before);
  EXPECT_TRUE(a->inputs()[0].equal(b->inputs()[0]));
  EXPECT_TRUE(a->target().equal(b->target()));
  // What found the shapes ran nothing that stays.
  EXPECT_EQ(a->model().buffers()[0].item<float>(), 0.0F);
  ++options.seed;
  EXPECT_FALSE(a->inputs()[0].equal(ScriptedNetwork::Load(options)->inputs()[0]));
}

TEST_F(ScriptedNetworkTest, AFileThatIsNoScriptIsSaidToBeNone) {
  const auto error = [this](const std::string& path) {
    ScriptedOptions options = Saved(kImages, "4x3x9x9");
    options.path = path;
    return ErrorOf(options);
  };
  EXPECT_THAT(error("/nonexistent/net.pt"),
              HasSubstr("script = \"/nonexistent/net.pt\": cannot be read: No such file"));
  EXPECT_THAT(error(folder_.path()), HasSubstr("is a folder"));
  std::ofstream(folder_ / "text.pt") << "import torch\n";
  EXPECT_THAT(error(folder_ / "text.pt"), HasSubstr("text.pt\": is no TorchScript, as"));
  std::ofstream(folder_ / "empty.pt").flush();
  EXPECT_THAT(error(folder_ / "empty.pt"), HasSubstr("is no TorchScript"));
  torch::save(torch::ones({3}), folder_ / "tensor.pt");
  EXPECT_THAT(error(folder_ / "tensor.pt"), StartsWith("script = "));
}

TEST_F(ScriptedNetworkTest, WhatCannotBeCutIsNamed) {
  const char* by_data =
      "def forward(self, x):\n  y = x * self.head.sum()\n  if bool(y.sum() > 0):\n    y = -y\n"
      "  return y\n";
  EXPECT_THAT(ErrorOf(Saved(by_data, "4x5")),
              AllOf(HasSubstr("own.pt\": cannot be cut into ops: prim::If at <string>:3:"),
                    HasSubstr("what a tensor holds decides it")));
  EXPECT_THAT(
      ErrorOf(Saved("def forward(self, x, n: int):\n  return x * self.head.sum() * n\n", "4x5,1")),
      HasSubstr("input 1 (n.1) is a int: inputs must be tensors"));
  EXPECT_THAT(ErrorOf(Saved("def forward(self, x):\n  return torch.relu(x)\n", "4x5")),
              HasSubstr("has nothing to train: forward uses no parameter with requires_grad"));
}

TEST_F(ScriptedNetworkTest, InputsThatTheNetworkRefusesAreNamed) {
  EXPECT_THAT(ErrorOf(Saved(kImages, "4x3x9x9,4")),
              HasSubstr("input = \"4x3x9x9 float32, 4 float32\": forward takes 1 (x), here are 2: "
                        "one shape for each"));
  EXPECT_THAT(ErrorOf(Saved(kTokens, "4x6:int64<20")),
              HasSubstr("forward takes 2 (ids, gain), here is 1"));
  EXPECT_THAT(
      ErrorOf(Saved(kImages, "4x4x9x9")),
      AllOf(HasSubstr("input = \"4x4x9x9 float32\": the network refuses it: at conv (conv2d"),
            HasSubstr("expected input[4, 4, 9, 9] to have 3 channels, but got 4")));
  EXPECT_THAT(ErrorOf(Saved(kImages, "4x3x9x9:float64")), HasSubstr("the network refuses it"));
  // An id that the table has not.
  EXPECT_THAT(
      ErrorOf(Saved(kTokens, "4x6:int64<3000,8")),
      AllOf(HasSubstr("the network refuses it: at table (embedding"), HasSubstr("out of range")));
}

TEST_F(ScriptedNetworkTest, ALossThatDoesNotFitIsRefused) {
  EXPECT_THAT(
      ErrorOf(Saved("def forward(self, x):\n  return torch.linear(x, self.head).sum(1)\n", "4x8")),
      HasSubstr("loss = cross_entropy: wants [N, C, ...]"));
}

TEST_F(ScriptedNetworkTest, PlainStepsCheckTheirBatch) {
  const auto network = ScriptedNetwork::Load(Saved(kTokens, "4x6:int64<20,8"));
  ASSERT_TRUE(network.ok()) << network.status();
  EXPECT_TRUE(absl::IsInvalidArgument(network->PlainStep({}, network->target()).status()));
}

}  // namespace
}  // namespace stowage
