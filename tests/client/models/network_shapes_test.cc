// The structure that shapes alone tell of the reference networks, against the measured one.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <vector>

#include "client/models/models.h"
#include "client/torch/offload/cuda_kernels.h"
#include "client/torch/profile/chain_profiler.h"
#include "client/torch/profile/graph_profiler.h"
#include "client/torch/shapes/shape_profiler.h"
#include "tests/client/device/other_kernels.h"
#include "tests/client/device/training_devices.h"
#include "tests/client/torch/autocast.h"
#include "tests/client/torch/same_structure.h"

namespace stowage {
namespace {

ProfileOptions BytesOnly() {
  ProfileOptions options;
  options.bytes_only = true;
  options.warmup = 0;
  return options;
}

struct Case {
  std::string name;
  int64_t side;  // about the smallest that all stages can take
};

// One of each family: the others have the same ops, more often.
std::vector<Case> Families() {
  return {{"alexnet", 64},      {"vgg11", 32},       {"resnet18", 32},
          {"resnet50", 32},     {"densenet121", 32}, {"densenet121_full_cat", 32},
          {"inception_v3", 80}, {"nasnet_a", 16},    {"amoebanet_a", 16},
          {"darts_v2", 16}};
}

void ExpectShapesTell(const ChainModel& model, const Sample& sample) {
  const auto told = ChainFromShapes(model, sample.input, sample.target);
  ASSERT_TRUE(told.ok()) << told.status();
  const auto measured = ProfileChain(model, sample.input, sample.target, BytesOnly());
  ASSERT_TRUE(measured.ok()) << measured.status();
  ExpectSameStructure(*told, *measured);
}

void ExpectShapesTell(const GraphModel& model, const Sample& sample) {
  const auto told = GraphFromShapes(model, {sample.input}, sample.target);
  ASSERT_TRUE(told.ok()) << told.status();
  const auto measured = ProfileGraph(model, {sample.input}, sample.target, BytesOnly());
  ASSERT_TRUE(measured.ok()) << measured.status();
  ExpectSameStructure(*told, *measured);
}

class NetworkShapesTest : public testing::TestWithParam<Case> {
 protected:
  NetworkShapesTest() {
    options_.classes = 10;
    options_.image = GetParam().side;
    sample_ = MakeImageSample(/*batch=*/2, options_.image, options_.classes, 1).value();
  }

  ModelOptions options_;
  Sample sample_;
};

TEST_P(NetworkShapesTest, ChainHasTheMeasuredKey) {
  ExpectShapesTell(MakeModel(GetParam().name, options_).value(), sample_);
}

TEST_P(NetworkShapesTest, GraphHasTheMeasuredKey) {
  ExpectShapesTell(MakeGraphModel(GetParam().name, options_).value(), sample_);
}

// What CUDA's rules tell of a network on a GPU, against what the rules of the CPU's kernels do: with channels first and in
// single precision, no operation of these networks keeps another number of bytes there. No tensor is CUDA's, so it is
// LibTorch's own batch norm and dropout; cuDNN's are held by cuda_shape_rules_test.
class CudaNetworkShapesTest : public NetworkShapesTest {
 protected:
  CudaNetworkShapesTest() {
    options_.device = device_.device;
    sample_.input = sample_.input.to(device_.device);
    sample_.target = sample_.target.to(device_.device);
  }

  const TrainingDevice& device_ = TrainingDeviceNamed("test");
  OtherKernels cuda_{device_.execution, CudaKernels{90100, /*convolves_bfloat16=*/true}};
};

TEST_P(CudaNetworkShapesTest, ChainIsTold) {
  const ChainModel model = MakeModel(GetParam().name, options_).value();
  const auto told = ChainFromShapes(model, sample_.input, sample_.target, StepMeters(&cuda_));
  ASSERT_TRUE(told.ok()) << told.status();
  const auto of_cpu =
      ChainFromShapes(model, sample_.input, sample_.target, StepMeters(device_.execution));
  ASSERT_TRUE(of_cpu.ok()) << of_cpu.status();
  ExpectSameStructure(*told, *of_cpu);
}

TEST_P(CudaNetworkShapesTest, GraphIsTold) {
  const GraphModel model = MakeGraphModel(GetParam().name, options_).value();
  const auto told = GraphFromShapes(model, {sample_.input}, sample_.target, StepMeters(&cuda_));
  ASSERT_TRUE(told.ok()) << told.status();
  const auto of_cpu =
      GraphFromShapes(model, {sample_.input}, sample_.target, StepMeters(device_.execution));
  ASSERT_TRUE(of_cpu.ok()) << of_cpu.status();
  ExpectSameStructure(*told, *of_cpu);
}

INSTANTIATE_TEST_SUITE_P(Networks, CudaNetworkShapesTest, testing::ValuesIn(Families()),
                         [](const auto& network) { return network.param.name; });

INSTANTIATE_TEST_SUITE_P(Networks, NetworkShapesTest, testing::ValuesIn(Families()),
                         [](const auto& network) { return network.param.name; });

DecoderOptions SmallDecoder() {
  DecoderOptions options;
  options.layers = 2;
  options.width = 32;
  options.heads = 4;
  options.length = 16;
  options.vocabulary = 50;
  options.batch = 3;
  return options;
}

TEST(DecoderShapesTest, HasTheMeasuredKey) {
  const DecoderOptions options = SmallDecoder();
  const Sample sample = MakeTokenSample(3, 16, 50, 1).value();
  for (const bool autocast : {false, true}) {
    for (const bool tied : {false, true}) {
      SCOPED_TRACE(testing::Message() << "autocast " << autocast << ", tied " << tied);
      const ScopedAutocast scope(autocast);
      ExpectShapesTell(MakeDecoderModel(options, tied).value(), sample);
    }
  }
}

TEST(DecoderShapesTest, IsToldOnCuda) {
  const TrainingDevice& device = TrainingDeviceNamed("test");
  OtherKernels cuda(device.execution, CudaKernels{90100, /*convolves_bfloat16=*/true});
  const ChainModel model =
      MakeDecoderModel(SmallDecoder(), /*tied_embedding=*/true, /*seed=*/0, device.device).value();
  const Sample sample = MakeTokenSample(3, 16, 50, 1, device.device).value();
  const auto told = ChainFromShapes(model, sample.input, sample.target, StepMeters(&cuda));
  ASSERT_TRUE(told.ok()) << told.status();
  const auto of_cpu =
      ChainFromShapes(model, sample.input, sample.target, StepMeters(device.execution));
  ASSERT_TRUE(of_cpu.ok()) << of_cpu.status();
  ExpectSameStructure(*told, *of_cpu);
}

}  // namespace
}  // namespace stowage
