#include "client/torch/shapes/shape_profiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "client/torch/execute/plain_step.h"
#include "client/torch/memory/tracking_allocator.h"
#include "client/torch/model/model_state.h"
#include "client/torch/model/state_digest.h"
#include "client/torch/profile/chain_profiler.h"
#include "client/torch/profile/graph_profiler.h"
#include "client/torch/shapes/shape_scope.h"
#include "tests/client/device/other_kernels.h"
#include "tests/client/device/training_devices.h"
#include "tests/client/torch/autocast.h"
#include "tests/client/torch/error_of.h"
#include "tests/client/torch/same_structure.h"
#include "tests/client/torch/test_graphs.h"
#include "tests/client/torch/test_networks.h"

namespace stowage {
namespace {

namespace nn = torch::nn;
using testing::HasSubstr;

ProfileOptions BytesOnly(ExecutionDevice* device = nullptr) {
  ProfileOptions options;
  options.device = device;
  options.bytes_only = true;
  options.warmup = 0;
  return options;
}

void ExpectShapesTell(const TestNetwork& network, ExecutionDevice* device = nullptr) {
  const auto told =
      ChainFromShapes(network.model, network.input, network.target, StepMeters(device));
  ASSERT_TRUE(told.ok()) << told.status();
  const auto measured =
      ProfileChain(network.model, network.input, network.target, BytesOnly(device));
  ASSERT_TRUE(measured.ok()) << measured.status();
  ExpectSameStructure(*told, *measured);
}

void ExpectShapesTell(const TestGraph& graph, ExecutionDevice* device = nullptr) {
  const auto told = GraphFromShapes(graph.model, graph.inputs, graph.target, StepMeters(device));
  ASSERT_TRUE(told.ok()) << told.status();
  const auto measured = ProfileGraph(graph.model, graph.inputs, graph.target, BytesOnly(device));
  ASSERT_TRUE(measured.ok()) << measured.status();
  ExpectSameStructure(*told, *measured);
}

// A chain of one function, which is all that a test is about.
TestNetwork Around(StageFunction function, const at::Tensor& input = torch::randn({4, 6})) {
  ChainModel model("around");
  model.AddStage("fc", "linear", nn::Linear(6, 6));
  model.AddFunction("function", "function", std::move(function));
  model.SetLoss("sum", [](const at::Tensor& y, const at::Tensor&) { return y.sum(); });
  return {std::move(model), input, torch::zeros({1})};
}

TestGraph GraphOn(c10::Device device, const std::string& name) {
  TestGraph graph = MakeTestGraph(name);
  MoveTo(device, graph.model);
  for (at::Tensor& input : graph.inputs) input = input.to(device);
  for (at::Tensor& target : graph.target) target = target.to(device);
  return graph;
}

std::string RefusalOf(const TestNetwork& network, ExecutionDevice* device = nullptr) {
  const absl::Status status =
      ChainFromShapes(network.model, network.input, network.target, StepMeters(device)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  return std::string(status.message());
}

// Another device than the CPU. "test": work comes later, in blocks, by operations of its own, which are the CPU's kernels.
class DeviceShapesTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { SKIP_IF_MISSING(device_); }

  const TrainingDevice& device_ = TrainingDeviceNamed(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Devices, DeviceShapesTest, testing::Values("test", "cuda"),
                         [](const auto& device) { return device.param; });

TEST_P(DeviceShapesTest, StructureIsWhatIsMeasuredThere) {
  for (const std::string& name : TestNetworkNames()) {
    SCOPED_TRACE(name);
    const TestNetwork network = MakeTestNetwork(name, device_);
    if (name == "grad_kernels" && device_.device.is_cuda()) {
      EXPECT_THAT(RefusalOf(network, device_.execution), HasSubstr("cudnn_rnn"));
      continue;
    }
    ExpectShapesTell(network, device_.execution);
  }
  for (const char* const name : {"mixed", "resnet18"}) {
    SCOPED_TRACE(name);
    ExpectShapesTell(GraphOn(device_.device, name), device_.execution);
  }
}

TEST_P(DeviceShapesTest, TheModelIsLeftAsItWasAndNothingRuns) {
  const TestNetwork network = MakeTestNetwork("norm_cnn", device_);
  const Digest buffers = BufferDigest(network.model);
  const RandomState random = RandomState::Capture(device_.device);
  const Bytes live = device_.meter()->current();
  ASSERT_TRUE(
      ChainFromShapes(network.model, network.input, network.target, StepMeters(device_.execution))
          .ok());
  EXPECT_EQ(BufferDigest(network.model), buffers);
  EXPECT_TRUE(RandomState::Capture(device_.device) == random);
  EXPECT_EQ(device_.meter()->current(), live);
}

TEST_P(DeviceShapesTest, TensorsOfAnotherDeviceAreRefused) {
  RefusalOf(MakeTestNetwork("mlp", device_));
}

// What a GPU's kernels make and save, say, is not what the CPU's do.
TEST(OtherKernelsTest, OperationsThatOnlyRulesKnowAreRefusedByName) {
  const TrainingDevice& device = TrainingDeviceNamed("test");
  OtherKernels other(device.execution);
  const std::string only = " makes what shapes tell of the CPU alone";
  EXPECT_THAT(RefusalOf(MakeTestNetwork("norm_cnn", device), &other),
              HasSubstr("aten::convolution" + only));
  // The meta device composes it of others, and would tell another type of its statistics.
  ChainModel model("norm");
  model.AddStage("norm", "layer_norm", nn::LayerNorm(nn::LayerNormOptions({6})));
  model.SetLoss("sum", [](const at::Tensor& y, const at::Tensor&) { return y.sum(); });
  MoveTo(device.device, model);
  EXPECT_THAT(RefusalOf({std::move(model), torch::ones({4, 6}).to(device.device),
                         torch::zeros({1}).to(device.device)},
                        &other),
              HasSubstr("aten::native_layer_norm" + only));
}

// In single precision, and with channels first, CUDA's kernels make and save what the CPU's do. Only cuDNN's LSTM is not told;
// here it is the CPU's, as no tensor is CUDA's.
TEST(OtherKernelsTest, RulesOfGpusTellWhatTheCpusDo) {
  const TrainingDevice& device = TrainingDeviceNamed("test");
  OtherKernels cuda(device.execution, CudaKernels{90100, /*convolves_bfloat16=*/true});
  for (const std::string& name : TestNetworkNames()) {
    SCOPED_TRACE(name);
    const TestNetwork network = MakeTestNetwork(name, device);
    const auto told =
        ChainFromShapes(network.model, network.input, network.target, StepMeters(&cuda));
    ASSERT_TRUE(told.ok()) << told.status();
    const auto measured =
        ProfileChain(network.model, network.input, network.target, BytesOnly(device.execution));
    ASSERT_TRUE(measured.ok()) << measured.status();
    ExpectSameStructure(*told, *measured);
  }
}

TEST(ShapeProfilerTest, ChainsHaveTheStructureThatIsMeasured) {
  for (const bool autocast : {false, true}) {
    const ScopedAutocast scope(autocast);
    for (const std::string& name : TestNetworkNames()) {
      SCOPED_TRACE(name + (autocast ? " under autocast" : ""));
      ExpectShapesTell(MakeTestNetwork(name));
    }
  }
}

TEST(ShapeProfilerTest, GraphsHaveTheStructureThatIsMeasured) {
  for (const bool autocast : {false, true}) {
    const ScopedAutocast scope(autocast);
    for (const char* name : {"mixed", "decoder", "resnet18", "darts_v2"}) {
      SCOPED_TRACE(name + std::string(autocast ? " under autocast" : ""));
      ExpectShapesTell(MakeTestGraph(name));
    }
  }
}

TEST(ShapeProfilerTest, AnInputThatWantsAGradient) {
  TestNetwork network = MakeTestNetwork("plain_cnn");
  network.input.requires_grad_();
  ExpectShapesTell(network);
}

TEST(ShapeProfilerTest, MasksMadeOfNumbersAreComputed) {
  ExpectShapesTell(Around([](const at::Tensor& x) {
    const at::Tensor mask = torch::ones({6, 6}).tril();
    const int64_t ones = mask.sum().item<int64_t>();
    const at::Tensor scale = torch::tensor({1.0F, 2.0F}).repeat({3});
    return x.matmul(mask) * scale.data_ptr<float>()[1] + torch::zeros({ones / 21}) + scale;
  }));
}

TEST(ShapeProfilerTest, FlagsAreThoseThatAreMeasured) {
  // Random only where something is drawn; stateful only where statistics move.
  ExpectShapesTell(Around([](const at::Tensor& x) { return at::dropout(x, 0.5, false); }));
  ExpectShapesTell(Around([](const at::Tensor& x) { return x + torch::randn({4, 6}); }));
  ExpectShapesTell(Around([](const at::Tensor& x) { return x * at::bernoulli(x.sigmoid()); }));
  ExpectShapesTell(Around([](const at::Tensor& x) { return x + at::rand_like(x); }));
  TestNetwork evaluated = MakeTestNetwork("norm_cnn");
  nn::BatchNorm2d norm(3);
  norm->eval();
  ChainModel model("evaluated");
  model.AddStage("norm", "batch_norm", norm);
  model.SetLoss("sum", [](const at::Tensor& y, const at::Tensor&) { return y.sum(); });
  evaluated.model = std::move(model);
  ExpectShapesTell(evaluated);
}

// All that a pass must not change.
struct State {
  explicit State(const ModelTensors& model)
      : parameters(ParameterDigest(model).ToHex()),
        gradients(GradientDigest(model).ToHex()),
        buffers(BufferDigest(model).ToHex()) {}

  std::string parameters, gradients, buffers;
  RandomState random = RandomState::Capture();
  Bytes live = TrackingAllocator::Get()->current();
};

void ExpectSameState(const State& a, const State& b) {
  EXPECT_EQ(a.parameters, b.parameters);
  EXPECT_EQ(a.gradients, b.gradients);
  EXPECT_EQ(a.buffers, b.buffers);
  EXPECT_TRUE(a.random == b.random);
  EXPECT_EQ(a.live, b.live);
}

TEST(ShapeProfilerTest, LeavesTheModelAsItWas) {
  TestNetwork network = MakeTestNetwork("norm_cnn");
  for (const at::Tensor& parameter : network.model.parameters()) parameter.mutable_grad().fill_(3);
  network.model.parameters()[0].mutable_grad().reset();
  const State before(network.model);
  ASSERT_TRUE(ChainFromShapes(network.model, network.input, network.target).ok());
  ExpectSameState(State(network.model), before);
}

TEST(ShapeProfilerTest, ARefusalInAForwardLeavesTheModelAsItWas) {
  TestNetwork network = MakeTestNetwork("norm_cnn");
  network.model.AddFunction("masked", "masked_select",
                            [](const at::Tensor& x) { return x.masked_select(x > 0).sum(); });
  const State before(network.model);
  EXPECT_THAT(RefusalOf(network), HasSubstr("aten::masked_select has no known shape"));
  ExpectSameState(State(network.model), before);
}

// Looks at the gradient.
struct Suspicious : torch::autograd::Function<Suspicious> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) {
    return x * 2;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list gradients) {
    return {gradients[0] * (at::isfinite(gradients[0]).all().item<bool>() ? 2 : 0)};
  }
};

TEST(ShapeProfilerTest, ARefusalInABackwardLeavesTheModelAsItWas) {
  const TestNetwork network = Around([](const at::Tensor& x) { return Suspicious::apply(x); });
  const State before(network.model);
  EXPECT_THAT(RefusalOf(network), HasSubstr("stage 2 (function, function): "));
  ExpectSameState(State(network.model), before);
  const auto measured = ProfileChain(network.model, network.input, network.target, BytesOnly());
  EXPECT_TRUE(measured.ok()) << measured.status();
}

TEST(ShapeProfilerTest, StepsAfterwardsAreThoseOfBefore) {
  double losses[2];
  std::string gradients[2];
  for (const bool look : {false, true}) {
    const TestNetwork network = MakeTestNetwork("norm_cnn");
    if (look) {
      ASSERT_TRUE(ChainFromShapes(network.model, network.input, network.target).ok());
    }
    const auto report = PlainStep(network.model, network.input, network.target);
    ASSERT_TRUE(report.ok()) << report.status();
    losses[look ? 1 : 0] = report->loss;
    gradients[look ? 1 : 0] = GradientDigest(network.model).ToHex();
  }
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_EQ(gradients[0], gradients[1]);
}

TEST(ShapeProfilerTest, WhatDependsOnDataIsRefusedByName) {
  EXPECT_THAT(
      RefusalOf(Around([](const at::Tensor& x) { return x.sum().item<double>() > 0 ? x : x * 2; })),
      HasSubstr("stage 2 (function, function): aten::_local_scalar_dense"));
  EXPECT_THAT(RefusalOf(Around([](const at::Tensor& x) { return x.index({x > 0}).sum(); })),
              HasSubstr("stage 2 (function, function)"));
  EXPECT_THAT(RefusalOf(Around([](const at::Tensor& x) { return x.nonzero().to(at::kFloat); })),
              HasSubstr("aten::nonzero"));
}

// What cuDNN saves beside its results (an LSTM's reserve, say) depends on its version and the GPU.
TEST(ShapeProfilerTest, WhatCuDnnMakesIsRefusedByName) {
  const at::Tensor image = torch::randn({2, 3, 5, 5});
  const at::Tensor weight = torch::randn({3, 3, 3, 3}), scale = torch::ones({3});
  const std::pair<const char*, StageFunction> ops[] = {
      {"aten::cudnn_convolution",
       [&](const at::Tensor& x) {
         return at::cudnn_convolution(x, weight, {1, 1}, {1, 1}, {1, 1}, /*groups=*/1,
                                      /*benchmark=*/false, /*deterministic=*/true,
                                      /*allow_tf32=*/false);
       }},
      {"aten::cudnn_batch_norm",
       [&](const at::Tensor& x) {
         return std::get<0>(at::cudnn_batch_norm(x, scale, scale, scale, scale, /*training=*/true,
                                                 /*exponential_average_factor=*/0.1,
                                                 /*epsilon=*/1e-5));
       }},
      {"aten::cudnn_grid_sampler",
       [&](const at::Tensor& x) { return at::cudnn_grid_sampler(x, x.narrow(1, 0, 2)); }},
      {"aten::_cudnn_rnn", [&](const at::Tensor& x) {
         const at::Tensor steps = x.flatten(0, 1).narrow(2, 0, 3);
         return std::get<0>(at::_cudnn_rnn(steps, {weight[0][0]}, 1, {}, scale.view({1, 1, 3}), {},
                                           /*mode=*/2, /*hidden_size=*/3, /*proj_size=*/0,
                                           /*num_layers=*/1, /*batch_first=*/false, /*dropout=*/0,
                                           /*train=*/true, /*bidirectional=*/false, {}, {}));
       }}};
  for (const auto& [name, op] : ops) {
    ChainModel model("cudnn");
    model.AddStage("conv", "conv", nn::Conv2d(nn::Conv2dOptions(3, 3, 1)));
    model.AddFunction("op", "op", op);
    model.SetLoss("sum", [](const at::Tensor& y, const at::Tensor&) { return y.sum(); });
    // PyTorch 2 says of the last one that it draws at times, which is refused before its shape is asked for.
    EXPECT_THAT(RefusalOf({std::move(model), image, torch::zeros({1})}),
                testing::AnyOf(HasSubstr(std::string(name) + " has no known shape without data"),
                               HasSubstr(std::string(name) + " may draw random numbers or not")));
  }
}

TEST(ShapeProfilerTest, ReadingByPointerIsRefused) {
  EXPECT_THAT(RefusalOf(Around([](const at::Tensor& x) {
                const at::Tensor y = x * 2;
                return y * y.data_ptr<float>()[0];
              })),
              HasSubstr("reads tensors by their pointers"));
}

TEST(ShapeProfilerTest, ModelsThatCannotRunAreRefused) {
  TestNetwork network = MakeTestNetwork("plain_cnn");
  network.input = torch::randn({3, 4, 16});
  RefusalOf(network);
  EXPECT_THAT(RefusalOf({ChainModel("empty"), network.input, network.target}),
              HasSubstr("the model has no stage"));
}

TEST(ShapeProfilerTest, ATensorThatIsKeptIsRefusedAndNobodyComputesWithIt) {
  const auto kept = std::make_shared<at::Tensor>(torch::ones({4, 6}));
  const TestNetwork network = Around([kept](const at::Tensor& x) {
    *kept = x.detach() * 2;
    return x + *kept;
  });
  EXPECT_THAT(RefusalOf(network), HasSubstr("keeps tensors between calls"));
  EXPECT_THAT(ErrorOf([&] { *kept + 1; }), HasSubstr("keeps tensors between calls"));
  *kept = torch::ones({4, 6});
  EXPECT_TRUE(ProfileChain(network.model, network.input, network.target, BytesOnly()).ok());
}

TEST(ShapeProfilerTest, TakesNoMemoryWhateverTheBatch) {
  TestNetwork network = MakeTestNetwork("resnet18");
  network.input = network.input.slice(0, 0, 1).expand({1 << 14, -1, -1, -1});
  network.target = network.target.slice(0, 0, 1).expand({1 << 14});
  TrackingAllocator* meter = TrackingAllocator::Get();
  meter->SetLimit(meter->current() + Bytes(1 << 20));
  const auto told = ChainFromShapes(network.model, network.input, network.target);
  meter->ClearLimit();
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_GE(std::get<Chain>(told->problem).stage(1).output, Bytes(int64_t{1} << 30));
}

}  // namespace
}  // namespace stowage
