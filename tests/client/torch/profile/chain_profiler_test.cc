#include "client/torch/profile/chain_profiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/torch.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "client/torch/base/autograd_node.h"
#include "client/torch/execute/plain_step.h"
#include "client/torch/model/model_state.h"
#include "client/torch/model/state_digest.h"
#include "client/torch/offload/execution_device.h"
#include "client/torch/profile/graph_profiler.h"
#include "tests/client/device/training_devices.h"
#include "tests/client/torch/test_networks.h"

namespace stowage {
namespace {

namespace nn = torch::nn;
using testing::HasSubstr;

class ChainProfilerTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { SKIP_IF_MISSING(device_); }
  ~ChainProfilerTest() override { device_.ClearLimit(); }

  ProfileOptions Options() const {
    ProfileOptions options;
    options.device = device_.execution;
    return options;
  }
  ProfileOptions BytesOnly() const {
    ProfileOptions options = Options();
    options.bytes_only = true;
    return options;
  }

  TestNetwork Network(const std::string& name) const { return MakeTestNetwork(name, device_); }

  TestNetwork TwoLayers() const {
    ChainModel model("two");
    model.AddStage("fc", "linear", nn::Linear(4, 8));
    model.AddFunction("relu", "relu", [](const at::Tensor& x) { return x.relu(); });
    model.AddFunction("drop", "dropout",
                      [](const at::Tensor& x) { return at::dropout(x, 0.5, true); });
    model.SetLoss("sum", [](const at::Tensor& y, const at::Tensor&) { return y.sum(); });
    MoveTo(device_.device, model);
    return {std::move(model), torch::randn({2, 4}).to(device_.device),
            torch::zeros({1}).to(device_.device)};
  }

  // What the device gives for it.
  Bytes Block(int64_t bytes) const {
    const int64_t unit =
        device_.execution == nullptr ? 1 : device_.execution->granularity().value();
    return Bytes((bytes + unit - 1) / unit * unit);
  }

  absl::Status ProfileError(const ChainModel& model, const at::Tensor& input) const {
    return ProfileChain(model, input, torch::zeros({1}).to(device_.device), BytesOnly()).status();
  }

  const TrainingDevice& device_ = TrainingDeviceNamed(GetParam());
};

Chain ProfiledChain(const TestNetwork& network, const ProfileOptions& options) {
  auto profile = ProfileChain(network.model, network.input, network.target, options);
  EXPECT_TRUE(profile.ok()) << profile.status();
  return std::get<Chain>(profile.value().problem);
}

TEST_P(ChainProfilerTest, BytesAreWhatTheLayersKeep) {
  const Chain chain = ProfiledChain(TwoLayers(), BytesOnly());
  ASSERT_EQ(chain.length(), 3);
  EXPECT_EQ(chain.activation(0), Bytes(2 * 4 * 4));  // the caller's, as it is
  EXPECT_EQ(chain.gradient(0), Bytes(0));
  const Bytes output = Block(2 * 8 * 4);
  for (int l = 1; l <= 3; ++l) {
    EXPECT_EQ(chain.stage(l).output, output) << l;
    // The gradient of the sum is one number spread out; autograd writes it down in full.
    EXPECT_EQ(chain.stage(l).output_gradient, output) << l;
  }
  EXPECT_EQ(chain.stage(1).saved, output);
  EXPECT_EQ(chain.stage(2).saved, output);
  // Output and mask.
  EXPECT_GT(chain.stage(3).saved, output);
  EXPECT_EQ(chain.stage(4).output, Block(4));
  EXPECT_EQ(chain.stage(4).saved, Block(4));
  EXPECT_EQ(chain.stage(4).output_gradient, Bytes(0));
  // The seed gradient and the gradient of the loss' input.
  EXPECT_GE(chain.stage(4).backward_overhead, Block(4) + output);
}

TEST_P(ChainProfilerTest, FlagsAreSeen) {
  const Chain chain = ProfiledChain(Network("norm_cnn"), BytesOnly());
  std::vector<std::string> random;
  std::vector<std::string> stateful;
  for (const Stage& stage : chain.spec().stages) {
    if (stage.random) random.push_back(stage.name);
    if (stage.stateful) stateful.push_back(stage.name);
  }
  EXPECT_THAT(random, testing::ElementsAre("drop", "residual1", "block", "residual2"));
  EXPECT_THAT(stateful, testing::ElementsAre("bn1relu", "residual1", "block", "residual2"));
}

TEST_P(ChainProfilerTest, AStageBeforeAnyParameterHasNoGradient) {
  const Chain chain = ProfiledChain(Network("frozen_prefix"), BytesOnly());
  EXPECT_EQ(chain.stage(3).output_gradient, Bytes(0));
  EXPECT_EQ(chain.stage(3).backward_overhead, Bytes(0));
  EXPECT_GT(chain.stage(4).output_gradient, Bytes(0));
}

bool SameBytes(const Stage& a, const Stage& b) {
  return a.output == b.output && a.saved == b.saved && a.output_gradient == b.output_gradient &&
         a.forward_saving_overhead == b.forward_saving_overhead &&
         a.forward_overhead == b.forward_overhead && a.backward_overhead == b.backward_overhead &&
         a.random == b.random && a.stateful == b.stateful;
}

TEST_P(ChainProfilerTest, ProfilingAgainGivesTheSameBytes) {
  for (const std::string& name : TestNetworkNames()) {
    if (!device_.exact && name == "resnet18") continue;  // it takes long there
    SCOPED_TRACE(name);
    const TestNetwork network = Network(name);
    ProfileOptions timed = Options();
    timed.repeats = 2;
    const Chain first = ProfiledChain(network, BytesOnly());
    const Chain second = ProfiledChain(network, timed);
    ASSERT_EQ(first.length(), second.length());
    for (int l = 1; l <= first.length() + 1; ++l) {
      EXPECT_TRUE(SameBytes(first.stage(l), second.stage(l))) << network.model.Describe(l);
      EXPECT_EQ(first.stage(l).forward_time, Nanos(0));
      EXPECT_GT(second.stage(l).forward_time, Nanos(0));
      EXPECT_GT(second.stage(l).backward_time, Nanos(0));
    }
  }
}

TEST_P(ChainProfilerTest, WhatAnotherThreadFreesMeanwhileChangesNoBytes) {
  if (!device_.exact) GTEST_SKIP() << "its memory is counted for all threads at once";
  std::vector<at::Tensor> of_another;
  ChainModel model("three");
  model.AddStage("fc", "linear", nn::Linear(4, 8));
  model.AddFunction("frees", "relu", [&of_another](const at::Tensor& x) {
    if (!of_another.empty()) std::thread([&] { of_another.pop_back(); }).join();
    return x.relu();
  });
  model.AddStage("fc", "linear", nn::Linear(8, 8));
  model.SetLoss("sum", [](const at::Tensor& y, const at::Tensor&) { return y.sum(); });
  const TestNetwork network{std::move(model), torch::randn({2, 4}), torch::zeros({1})};
  const Chain alone = ProfiledChain(network, BytesOnly());
  for (int i = 0; i < 50; ++i) of_another.push_back(torch::empty({1000}));
  const Chain beside = ProfiledChain(network, BytesOnly());
  EXPECT_LT(of_another.size(), 49u);
  EXPECT_FALSE(of_another.empty());
  for (int l = 1; l <= alone.length() + 1; ++l) {
    EXPECT_TRUE(SameBytes(alone.stage(l), beside.stage(l))) << network.model.Describe(l);
  }
}

TEST_P(ChainProfilerTest, LeavesTheModelAsItWas) {
  const TestNetwork network = Network("norm_cnn");
  for (const at::Tensor& parameter : network.model.parameters()) parameter.mutable_grad().fill_(3);
  network.model.parameters()[0].mutable_grad().reset();
  const Digest parameters = ParameterDigest(network.model);
  const Digest gradients = GradientDigest(network.model);
  const Digest buffers = BufferDigest(network.model);
  const RandomState random = RandomState::Capture(device_.device);
  const Bytes live = device_.meter()->current();
  ProfiledChain(network, BytesOnly());
  EXPECT_EQ(device_.meter()->current(), live);
  EXPECT_EQ(ParameterDigest(network.model), parameters);
  EXPECT_EQ(GradientDigest(network.model), gradients);
  EXPECT_EQ(BufferDigest(network.model), buffers);
  EXPECT_TRUE(RandomState::Capture(device_.device) == random);
}

TEST_P(ChainProfilerTest, DescribesDeviceAndSource) {
  const TestNetwork network = TwoLayers();
  const Profile bytes =
      ProfileChain(network.model, network.input, network.target, BytesOnly()).value();
  EXPECT_EQ(bytes.cost_source, CostSource::kBytesOnly);
  EXPECT_EQ(bytes.name, "two");
  EXPECT_EQ(bytes.device.model, DeviceOrInstalled(device_.execution).value()->Hardware().model);
  EXPECT_THAT(bytes.device.framework, HasSubstr("libtorch "));
  EXPECT_THAT(
      bytes.device.math_settings,
      HasSubstr(device_.device.is_cpu() ? "threads=1 deterministic=0 mkldnn=" : "deterministic=0"));
  EXPECT_EQ(bytes.device.allocation_granularity, Block(1));
  EXPECT_TRUE(ValidateDevice(bytes.device).ok());
  const Profile timed =
      ProfileChain(network.model, network.input, network.target, Options()).value();
  EXPECT_EQ(timed.cost_source, CostSource::kMeasured);
}

TEST_P(ChainProfilerTest, ReportsProgress) {
  std::vector<double> shares;
  ProfileOptions options = Options();
  options.warmup = 1;
  options.repeats = 2;
  options.progress = [&](double share) { shares.push_back(share); };
  ProfiledChain(TwoLayers(), options);
  ASSERT_EQ(shares.size(), 3U * 2U * 4U);
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_DOUBLE_EQ(shares.back(), 1.0);
}

TEST_P(ChainProfilerTest, AWrongShapeNamesTheStage) {
  const TestNetwork network = TwoLayers();
  const absl::Status status = ProfileError(network.model, torch::randn({2, 5}).to(device_.device));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  // What LibTorch says after it depends on its version.
  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(testing::StartsWith("stage 1 (fc, linear): "),
                             HasSubstr("mat1 and mat2 shapes cannot be multiplied")));
}

TEST_P(ChainProfilerTest, AnEmptyModelAndBadOptionsAreRefused) {
  EXPECT_EQ(ProfileError(ChainModel("empty"), torch::zeros({1}).to(device_.device)).message(),
            "the model has no stage");
  ChainModel lossless("lossless");
  lossless.AddFunction("id", "copy", [](const at::Tensor& x) { return x.clone(); });
  EXPECT_EQ(ProfileError(lossless, torch::zeros({1}).to(device_.device)).message(),
            "the model has no loss");
  const TestNetwork network = TwoLayers();
  EXPECT_EQ(ProfileError(network.model, at::Tensor()).code(), absl::StatusCode::kInvalidArgument);
  ProfileOptions options = Options();
  options.repeats = 0;
  EXPECT_EQ(ProfileChain(network.model, network.input, network.target, options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_P(ChainProfilerTest, AStageThatWritesOverItsInputIsRefused) {
  TestNetwork network = TwoLayers();
  network.model.AddFunction("in place", "relu", [](const at::Tensor& x) { return x.relu_(); });
  const absl::Status status = ProfileError(network.model, network.input);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("stage 4 (in place, relu): it writes over its input"));
}

TEST_P(ChainProfilerTest, ALossThatIsNoScalarIsRefused) {
  TestNetwork network = TwoLayers();
  network.model.SetLoss("none", [](const at::Tensor& y, const at::Tensor&) { return y * 2; });
  const absl::Status status = ProfileError(network.model, network.input);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the loss must be a scalar"));
}

// What it saves for that backward is not there where a forward must save nothing.
TEST_P(ChainProfilerTest, AStageWithABackwardOfItsOwnMustBeKept) {
  for (const bool must_keep : {false, true}) {
    TestNetwork network = TwoLayers();
    ModelStage stage;
    stage.name = "inner";
    stage.op_kind = "grad";
    stage.must_keep = must_keep;
    stage.forward = [](const at::Tensor& x) {
      const at::Tensor y = x.pow(2).sum();
      return x * torch::autograd::grad({y}, {x}, {}, /*retain_graph=*/true)[0].detach();
    };
    network.model.AddStage(std::move(stage));
    const auto profile = ProfileChain(network.model, network.input, network.target, Options());
    EXPECT_EQ(profile.ok(), must_keep) << profile.status();
    if (must_keep) continue;
    EXPECT_EQ(profile.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(profile.status().message()),
                HasSubstr("its forward runs a backward of its own"));
  }
}

TEST_P(ChainProfilerTest, SizesThatChangeFromRunToRunAreRefused) {
  TestNetwork network = TwoLayers();
  int64_t calls = 0;
  network.model.AddFunction("grow", "cat", [&calls](const at::Tensor& x) {
    // Two forwards of a pass see the same call count. By more than a block of any device.
    return x.repeat({1, 1 + 100 * (calls++ / 2)});
  });
  ProfileOptions options = Options();
  options.warmup = 0;
  options.repeats = 2;
  const absl::Status status =
      ProfileChain(network.model, network.input, network.target, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("stage 4 (grow, cat)"));
}

TEST_P(ChainProfilerTest, OutOfMemoryIsResourceExhausted) {
  if (!device_.limits_memory()) GTEST_SKIP() << "its memory has no limit to the byte";
  const TestNetwork network = Network("plain_cnn");
  // Room for the second set of gradients, not for the activations.
  device_.LimitMemory(Bytes(60000));
  const absl::Status status = ProfileError(network.model, network.input);
  device_.ClearLimit();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("stage "));
}

TEST_P(ChainProfilerTest, OutOfMemoryBeforeTheFirstPassLosesNoGradient) {
  if (!device_.limits_memory()) GTEST_SKIP() << "its memory has no limit to the byte";
  const TestNetwork network = Network("plain_cnn");
  for (const at::Tensor& parameter : network.model.parameters()) parameter.mutable_grad().fill_(3);
  const Digest gradients = GradientDigest(network.model);
  device_.LimitMemory(Bytes(1));
  const absl::Status status =
      ProfileChain(network.model, network.input, network.target, BytesOnly()).status();
  device_.ClearLimit();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(GradientDigest(network.model), gradients);
}

class CountingHook : public torch::autograd::FunctionPostHook {
 public:
  explicit CountingHook(int* calls) : calls_(calls) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    ++*calls_;
    return outputs;
  }

 private:
  int* const calls_;
};

// Those that c10d's Reducer has on gradient accumulators: what is measured is no step of other ranks.
TEST_P(ChainProfilerTest, HooksOnAccumulatorsAreCalledInStepsAlone) {
  const TestNetwork network = Network("tied");
  std::vector<NodePtr> accumulators;
  int calls = 0;
  for (const at::Tensor& parameter : network.model.parameters()) {
    accumulators.push_back(torch::autograd::impl::grad_accumulator(parameter));
    accumulators.back()->add_post_hook(std::make_unique<CountingHook>(&calls));
  }
  const auto step = [&] {
    const auto report = PlainStep(network.model, network.input, network.target,
                                  StepMeters(device_.meter(), device_.execution));
    EXPECT_TRUE(report.ok()) << report.status();
    return std::exchange(calls, 0);
  };
  EXPECT_EQ(step(), static_cast<int>(accumulators.size()));
  ProfileOptions timed = Options();
  timed.repeats = 3;
  ProfiledChain(network, timed);
  const auto graph =
      ProfileGraph(network.model.InLine(), {network.input}, network.target, BytesOnly());
  EXPECT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(step(), static_cast<int>(accumulators.size()));
}

INSTANTIATE_TEST_SUITE_P(Devices, ChainProfilerTest, testing::Values("cpu", "test", "cuda"),
                         [](const auto& device) { return device.param; });

}  // namespace
}  // namespace stowage
