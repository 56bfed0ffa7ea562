// The structure that shapes alone tell of the reference networks, against the measured one.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <vector>

#include "client/models/models.h"
#include "client/torch/profile/chain_profiler.h"
#include "client/torch/profile/graph_profiler.h"
#include "client/torch/shapes/shape_profiler.h"
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

INSTANTIATE_TEST_SUITE_P(Networks, NetworkShapesTest, testing::ValuesIn(Families()),
                         [](const auto& network) { return network.param.name; });

TEST(DecoderShapesTest, HasTheMeasuredKey) {
  DecoderOptions options;
  options.layers = 2;
  options.width = 32;
  options.heads = 4;
  options.length = 16;
  options.vocabulary = 50;
  options.batch = 3;
  const Sample sample = MakeTokenSample(3, 16, 50, 1).value();
  for (const bool autocast : {false, true}) {
    for (const bool tied : {false, true}) {
      SCOPED_TRACE(testing::Message() << "autocast " << autocast << ", tied " << tied);
      const ScopedAutocast scope(autocast);
      ExpectShapesTell(MakeDecoderModel(options, tied).value(), sample);
    }
  }
}

}  // namespace
}  // namespace stowage
