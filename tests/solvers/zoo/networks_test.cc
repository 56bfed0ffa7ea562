#include "solvers/zoo/networks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>

#include "solvers/zoo/roofline.h"

namespace stowage {
namespace {

using testing::HasSubstr;

NetworkOptions Options(const std::string& name, int64_t image = 224, int64_t batch = 1) {
  NetworkOptions options;
  options.name = name;
  options.image = image;
  options.batch = batch;
  return options;
}

Chain MustChain(const NetworkOptions& options) {
  absl::StatusOr<Chain> chain = NetworkChain(options, ModelledV100());
  EXPECT_TRUE(chain.ok()) << chain.status();
  return *std::move(chain);
}

int64_t ParametersOf(const Network& network) {
  int64_t parameters = 0;
  for (const NetworkOp& op : network.ops) parameters += op.parameter_bytes().value() / kFloatBytes;
  return parameters;
}

// Trained parameters as torchvision's documentation states them; Inception without its auxiliary
// classifier (27,161,264 with it).
TEST(NetworksTest, ParametersAreThePublishedNumbers) {
  const std::map<std::string, int64_t> published = {
      {"resnet18", 11689512},     {"resnet34", 21797672},    {"resnet50", 25557032},
      {"resnet101", 44549160},    {"resnet152", 60192808},   {"densenet121", 7978856},
      {"densenet161", 28681000},  {"densenet169", 14149480}, {"densenet201", 20013928},
      {"inception_v3", 23834568}, {"vgg11", 132863336},      {"vgg13", 133047848},
      {"vgg16", 138357544},       {"vgg19", 143667240},      {"alexnet", 61100840},
  };
  for (const auto& [name, parameters] : published) {
    EXPECT_EQ(ParametersOf(MakeNetwork(Options(name)).value()), parameters) << name;
  }
}

// In millions, as Liu et al. 2019 state them (Table 1). Their NASNet-A has fewer channels.
TEST(NetworksTest, CellNetworksAreAsLargeAsPublished) {
  for (const auto& [name, millions] : {std::pair("amoebanet_a", 3.2), std::pair("darts_v2", 3.3)}) {
    NetworkOptions options = Options(name, 32);
    options.classes = 10;
    const int64_t parameters = ParametersOf(MakeNetwork(options).value());
    EXPECT_NEAR(static_cast<double>(parameters) / 1e6, millions, 0.06) << name;
  }
}

// Concatenating differently trains the same.
TEST(NetworksTest, FullConcatenationsHaveTheSameParameters) {
  EXPECT_EQ(ParametersOf(MakeNetwork(Options("densenet169_full_cat")).value()),
            ParametersOf(MakeNetwork(Options("densenet169")).value()));
}

TEST(NetworksTest, CellNetworksNeedImagesThatHalveTwice) {
  const absl::Status odd = MakeNetwork(Options("nasnet_a", 33)).status();
  EXPECT_EQ(odd.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(odd.message()), HasSubstr("does not halve evenly"));
  EXPECT_TRUE(MakeNetwork(Options("nasnet_a", 36)).ok());
}

TEST(NetworksTest, EveryNetworkIsAChainAtEverySize) {
  for (const NetworkInfo& info : AllNetworks()) {
    for (const int64_t image : {224, 500, 1000}) {
      SCOPED_TRACE(info.name);
      const Chain chain = MustChain(Options(info.name, image, 2));
      EXPECT_EQ(chain.name(), info.name);
      EXPECT_EQ(chain.activation(0), Bytes(2 * 3 * image * image * 4));
      EXPECT_EQ(chain.stage(chain.length()).output, Bytes(2 * 1000 * 4));
      for (int l = 1; l <= chain.length(); ++l) {
        EXPECT_GT(chain.stage(l).forward_time, Nanos(0)) << l;
        EXPECT_GT(chain.stage(l).backward_time, Nanos(0)) << l;
        EXPECT_EQ(chain.stage(l).output_gradient, chain.stage(l).output) << l;
      }
    }
  }
}

// A bottleneck by hand: widths 64, 64 and 256 on 56 x 56 pixels, 256 channels in.
TEST(NetworksTest, ABottleneckSavesWhatItsOpsSave) {
  const Chain chain = MustChain(Options("resnet50"));
  const Stage& block = chain.stage(5);
  ASSERT_EQ(block.name, "layer1.1");
  const int64_t narrow = 64 * 56 * 56 * 4;
  const int64_t wide = 256 * 56 * 56 * 4;
  const int64_t statistics = 2 * (64 + 64 + 256) * 4;
  EXPECT_EQ(block.output, Bytes(wide));
  // Three convolutions' outputs, two activations, the block's output.
  EXPECT_EQ(block.saved, Bytes(4 * narrow + 2 * wide + statistics));
  // The output of a convolution, mean and deviation of its normalisation, then the activation.
  const Bytes few(64 * 4), many(256 * 4);
  const std::vector<Bytes> tensors = {Bytes(narrow), few,  few, Bytes(narrow),
                                      Bytes(narrow), few,  few, Bytes(narrow),
                                      Bytes(wide),   many, many};
  EXPECT_EQ(block.saved_tensors, tensors);
  EXPECT_TRUE(block.stateful);
  EXPECT_FALSE(block.random);
}

// "225 GiB" and "1.1 images/s" are what Beaumont et al. 2019 estimate for it, storing everything.
// Every byte that a stage saves beside its output belongs to one tensor.
TEST(NetworksTest, SavedTensorsAreAllThatIsSaved) {
  int stages = 0;
  for (const NetworkInfo& info : AllNetworks()) {
    const Chain chain = MustChain(Options(info.name));
    for (int l = 1; l <= chain.length() + 1; ++l) {
      const Stage& stage = chain.stage(l);
      Bytes sum;
      for (const Bytes bytes : stage.saved_tensors) sum += bytes;
      EXPECT_EQ(sum, stage.saved - stage.output) << info.name << " " << stage.name;
      stages += stage.saved_tensors.empty() ? 0 : 1;
    }
  }
  EXPECT_GT(stages, 100);
}

TEST(NetworksTest, DecodersHaveNames) {
  // Radford et al. 2019, table 2, counts 117, 345, 762 and 1,542 million, with an embedding of 1,024 positions.
  const std::map<std::string, int64_t> millions = {
      {"gpt2", 124}, {"gpt2_medium", 354}, {"gpt2_large", 773}, {"gpt2_xl", 1556}};
  ASSERT_EQ(AllDecoders().size(), millions.size());
  for (const NetworkInfo& info : AllDecoders()) {
    SCOPED_TRACE(info.name);
    EXPECT_TRUE(IsDecoder(info.name));
    NetworkOptions options;
    options.name = info.name;
    options.batch = 2;
    options.length = 128;
    const DecoderOptions decoder = NamedDecoder(options).value();
    EXPECT_EQ(decoder.width, 64 * decoder.heads);
    const Network network = MakeNetwork(options).value();
    EXPECT_EQ(network.name, info.name);
    EXPECT_EQ(network.stages.size(), static_cast<size_t>(decoder.layers) + 3);
    EXPECT_EQ(network.ops[0].shape, (Shape{2, 128}));
    const ModelBytes bytes = BytesOfModel(network);
    const Bytes embedding(decoder.vocabulary * decoder.width * 4);
    EXPECT_EQ(bytes.tied, embedding);
    EXPECT_EQ(BytesOfModel(MakeDecoder(decoder).value()).parameters, bytes.parameters + embedding);
    EXPECT_NEAR(static_cast<double>(bytes.parameters.value()) / 4e6,
                static_cast<double>(millions.at(info.name)), 2);
  }
  EXPECT_FALSE(IsDecoder("resnet50"));
  NetworkOptions none;
  none.name = "gpt2";
  none.length = 0;
  EXPECT_EQ(MakeNetwork(none).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(NetworksTest, ResNet1001IsThatOfTheCheckpointingLiterature) {
  const Chain chain = MustChain(Options("resnet1001", 224, 8));
  Bytes saved = chain.activation(0);
  for (const Stage& stage : chain.spec().stages) saved += stage.saved;
  EXPECT_NEAR(static_cast<double>(saved.value()) / (int64_t{1} << 30), 225, 5);
  const double images_per_second = 8e9 / static_cast<double>(chain.ideal_time().value());
  EXPECT_NEAR(images_per_second, 1.1, 0.05);
}

TEST(NetworksTest, DropoutIsRandom) {
  const Chain chain = MustChain(Options("vgg16"));
  const Stage& hidden = chain.stage(chain.length() - 1);
  EXPECT_EQ(hidden.op_kind, "linear_relu_dropout");
  EXPECT_TRUE(hidden.random);
  EXPECT_FALSE(hidden.stateful);
}

TEST(NetworksTest, BytesGrowWithTheBatch) {
  const Chain one = MustChain(Options("densenet121", 224, 1));
  const Chain four = MustChain(Options("densenet121", 224, 4));
  for (int l = 1; l <= one.length(); ++l) {
    EXPECT_EQ(four.stage(l).output.value(), 4 * one.stage(l).output.value());
    EXPECT_GT(four.stage(l).saved.value(), 3 * one.stage(l).saved.value());
    EXPECT_LE(four.stage(l).saved.value(), 4 * one.stage(l).saved.value());
  }
}

// Of each head a row of sums in place of the scores and their softmax, each a matrix.
TEST(NetworksTest, AttentionInOneKernelKeepsNoMatrixOfScores) {
  DecoderOptions options;
  options.layers = 2;
  options.length = 64;
  options.batch = 2;
  const Network op_by_op = MakeDecoder(options).value();
  options.fused_attention = true;
  const Network fused = MakeDecoder(options).value();
  EXPECT_EQ(ParametersOf(fused), ParametersOf(op_by_op));
  const Chain before = ChainOf(op_by_op, ModelledV100()).value();
  const Chain after = ChainOf(fused, ModelledV100()).value();
  const int64_t rows = options.batch * options.heads * options.length;
  const int64_t mixed = options.batch * options.length * options.width;
  EXPECT_EQ(before.stage(2).saved - after.stage(2).saved,
            Bytes(kFloatBytes * (rows * options.length - rows - mixed)));
  EXPECT_LT(after.stage(2).forward_time, before.stage(2).forward_time);
}

TEST(NetworksTest, DecoderLayersAreAllAlike) {
  DecoderOptions options;
  options.layers = 12;
  const Chain chain = ChainOf(MakeDecoder(options).value(), ModelledV100()).value();
  ASSERT_EQ(chain.length(), 14);
  for (int l = 3; l <= 13; ++l) {
    EXPECT_EQ(chain.stage(l).saved, chain.stage(2).saved);
    EXPECT_EQ(chain.stage(l).backward_overhead, chain.stage(2).backward_overhead);
    EXPECT_EQ(chain.stage(l).forward_time, chain.stage(2).forward_time);
  }
}

TEST(NetworksTest, AFasterDeviceIsFaster) {
  DeviceModel fast = ModelledV100();
  fast.peak_flops_per_second *= 2;
  fast.peak_bytes_per_second *= 2;
  const Chain slow_chain = MustChain(Options("resnet18", 224, 8));
  const Chain fast_chain = NetworkChain(Options("resnet18", 224, 8), fast).value();
  EXPECT_LT(fast_chain.ideal_time(), slow_chain.ideal_time());
  // Kernels' fixed cost does not shrink.
  EXPECT_GT(2 * fast_chain.ideal_time().value(), slow_chain.ideal_time().value());
}

TEST(NetworksTest, AProfileSaysThatItsTimesAreModelled) {
  const Profile profile = ModelledProfile(MustChain(Options("resnet18")), ModelledV100());
  EXPECT_EQ(profile.cost_source, CostSource::kModelled);
  EXPECT_EQ(profile.name, "resnet18");
  EXPECT_THAT(profile.device.model, HasSubstr("modelled"));
  EXPECT_TRUE(ValidateDevice(profile.device).ok());
}

absl::Status ErrorOf(const NetworkOptions& options) {
  return NetworkChain(options, ModelledV100()).status();
}

TEST(NetworksTest, BadOptionsAreRefused) {
  const absl::Status unknown = ErrorOf(Options("resnet19"));
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("'resnet19'; there are resnet18, "));
  EXPECT_EQ(ErrorOf(Options("resnet18", 0)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf(Options("resnet18", 224, -1)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf(Options("resnet18", 224, -1)).message(), "batch = -1: must be >= 1");
  const absl::Status small = ErrorOf(Options("inception_v3", 32));
  EXPECT_EQ(small.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(small.message()), HasSubstr("too small for a window"));
  const absl::Status large = ErrorOf(Options("vgg11", int64_t{1} << 40, int64_t{1} << 40));
  EXPECT_EQ(large.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(large.message()), HasSubstr("the product <= 2^48"));
  DecoderOptions decoder;
  decoder.heads = 7;
  EXPECT_THAT(std::string(MakeDecoder(decoder).status().message()),
              HasSubstr("heads (7) must divide the width (1600)"));
  decoder.heads = 0;
  EXPECT_EQ(MakeDecoder(decoder).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(NetworksTest, BadDevicesAreRefused) {
  const auto refused = [](const DeviceModel& device, const char* field) {
    const absl::Status status = NetworkChain(Options("resnet18"), device).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(field));
  };
  refused(DeviceModel(), "device.peak_flops_per_second = 0");
  DeviceModel device = ModelledV100();
  device.peak_bytes_per_second = -1;
  refused(device, "device.peak_bytes_per_second");
  device = ModelledV100();
  device.bandwidth_efficiency = 1.5;
  refused(device, "device.bandwidth_efficiency = 1.5");
  device = ModelledV100();
  device.kernel_overhead = Nanos(-1);
  refused(device, "device.kernel_overhead_ns = -1");
  device = ModelledV100();
  device.peak_flops_per_second = 1e-9;
  refused(device, "forward_time_ns");
}

}  // namespace
}  // namespace stowage
