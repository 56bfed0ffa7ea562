#include "client/models/models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>
#include <vector>

#include "client/torch/execute/executor.h"
#include "client/torch/execute/plain_step.h"
#include "client/torch/model/model_state.h"
#include "client/torch/model/state_digest.h"
#include "client/torch/profile/chain_profiler.h"
#include "solvers/planner.h"
#include "tests/client/device/training_devices.h"
#include "tests/client/torch/training_outcome.h"

namespace stowage {
namespace {

using testing::Contains;

struct Figures {
  const char* name;
  int64_t parameters;
  int stages;
};

// The parameter counts are those that torchvision documents.
constexpr Figures kFigures[] = {{"resnet18", 11689512, 12},
                                {"resnet34", 21797672, 20},
                                {"resnet50", 25557032, 20},
                                {"resnet101", 44549160, 37},
                                {"resnet152", 60192808, 54}};

TEST(ModelsTest, ParameterAndStageCounts) {
  for (const Figures& figures : kFigures) {
    SCOPED_TRACE(figures.name);
    EXPECT_THAT(ModelNames(), Contains(figures.name));
    auto model = MakeModel(figures.name);
    ASSERT_TRUE(model.ok()) << model.status();
    int64_t parameters = 0;
    for (const at::Tensor& parameter : model->parameters()) parameters += parameter.numel();
    EXPECT_EQ(parameters, figures.parameters);
    EXPECT_EQ(model->length(), figures.stages);
    EXPECT_EQ(model->name(), figures.name);
  }
}

TEST(ModelsTest, StagesOfResNet50) {
  const ChainModel model = MakeModel("resnet50").value();
  EXPECT_EQ(model.stage(1).name, "conv1");
  EXPECT_EQ(model.stage(2).name, "bn1relu");
  EXPECT_EQ(model.stage(3).name, "maxpool");
  EXPECT_EQ(model.stage(4).name, "layer1.0");
  EXPECT_EQ(model.stage(19).name, "layer4.2");
  EXPECT_EQ(model.stage(20).name, "head");
  EXPECT_EQ(model.loss_op_kind(), "cross_entropy");
}

TEST(ModelsTest, ShapesOfResNet50) {
  const ChainModel model = MakeModel("resnet50").value();
  const torch::NoGradGuard no_grad;
  at::Tensor x = MakeImageSample(1, 64, 1000, 1)->input;
  std::vector<std::vector<int64_t>> shapes;
  for (int l = 1; l <= model.length(); ++l) {
    x = model.stage(l).forward(x);
    if (l <= 4 || l == 7 || l == 11 || l == 17 || l == 20) shapes.push_back(x.sizes().vec());
  }
  const std::vector<std::vector<int64_t>> expected = {
      {1, 64, 32, 32}, {1, 64, 32, 32}, {1, 64, 16, 16}, {1, 256, 16, 16},
      {1, 512, 8, 8},  {1, 1024, 4, 4}, {1, 2048, 2, 2}, {1, 1000}};
  EXPECT_EQ(shapes, expected);
}

TEST(ModelsTest, ConvolutionsStartWithKaimingFanOut) {
  const ChainModel model = MakeModel("resnet18").value();
  const at::Tensor conv1 = model.stage(1).parameters[0];
  // sqrt(2 / (64 * 7 * 7))
  EXPECT_NEAR(conv1.std().item<double>(), 0.02525, 0.001);
  EXPECT_NEAR(conv1.mean().item<double>(), 0, 0.001);
  const std::vector<at::Tensor>& norm = model.stage(2).parameters;
  EXPECT_TRUE(norm[0].eq(1).all().item<bool>());
  EXPECT_TRUE(norm[1].eq(0).all().item<bool>());
}

TEST(ModelsTest, TheSeedDecidesAndTheCallersRandomStateStays) {
  const RandomState before = RandomState::Capture();
  ModelOptions options;
  options.classes = 10;
  options.seed = 1;
  const Digest one = ParameterDigest(MakeModel("resnet18", options).value());
  EXPECT_EQ(ParameterDigest(MakeModel("resnet18", options).value()), one);
  options.seed = 2;
  EXPECT_NE(ParameterDigest(MakeModel("resnet18", options).value()), one);
  EXPECT_TRUE(MakeImageSample(2, 8, 10, 3)->input.equal(MakeImageSample(2, 8, 10, 3)->input));
  EXPECT_TRUE(RandomState::Capture() == before);
}

void ExpectGradients(const ChainModel& model, const Sample& sample) {
  SCOPED_TRACE(model.name());
  const auto step = PlainStep(model, sample.input, sample.target);
  ASSERT_TRUE(step.ok()) << step.status();
  for (int l = 1; l <= model.length(); ++l) {
    for (const at::Tensor& parameter : model.stage(l).parameters) {
      EXPECT_TRUE(parameter.grad().ne(0).any().item<bool>()) << model.Describe(l);
    }
  }
}

TEST(ModelsTest, EveryParameterGetsAGradient) {
  const std::pair<const char*, int64_t> networks[] = {
      {"alexnet", 64},      {"vgg11", 32},    {"resnet50", 32},    {"densenet121", 32},
      {"inception_v3", 80}, {"nasnet_a", 16}, {"amoebanet_a", 16}, {"darts_v2", 16}};
  for (const auto& [name, side] : networks) {
    ModelOptions options;
    options.classes = 10;
    options.image = side;
    const auto model = MakeModel(name, options);
    ASSERT_TRUE(model.ok()) << model.status();
    ExpectGradients(*model, MakeImageSample(4, side, options.classes, 4).value());
  }
}

DecoderOptions SmallDecoder() {
  DecoderOptions options;
  options.layers = 2;
  options.width = 16;
  options.heads = 4;
  options.length = 12;
  options.vocabulary = 30;
  options.batch = 1;
  return options;
}

at::Tensor Scores(const ChainModel& model, at::Tensor x) {
  const torch::NoGradGuard no_grad;
  for (int l = 1; l <= model.length(); ++l) x = model.stage(l).forward(x);
  return x;
}

TEST(DecoderModelTest, APositionSeesThoseBeforeItAndNoOther) {
  const ChainModel model = MakeDecoderModel(SmallDecoder()).value();
  at::Tensor tokens = MakeTokenSample(2, 12, 30, 1)->input;
  const at::Tensor before = Scores(model, tokens);
  EXPECT_EQ(before.sizes().vec(), (std::vector<int64_t>{2, 12, 30}));
  tokens[0][7] = (tokens[0][7] + 1) % 30;
  const at::Tensor changed = Scores(model, tokens).ne(before).any(-1);
  for (int position = 0; position < 12; ++position) {
    EXPECT_EQ(changed[0][position].item<bool>(), position >= 7) << position;
    EXPECT_FALSE(changed[1][position].item<bool>()) << position;
  }
}

TEST(DecoderModelTest, AttentionInOneKernelIsTheSame) {
  DecoderOptions options = SmallDecoder();
  const ChainModel op_by_op = MakeDecoderModel(options).value();
  options.fused_attention = true;
  const ChainModel fused = MakeDecoderModel(options).value();
  const Sample sample = MakeTokenSample(2, 12, 30, 1).value();
  EXPECT_TRUE(Scores(fused, sample.input).allclose(Scores(op_by_op, sample.input), 1e-4, 1e-5));
  ExpectGradients(fused, sample);
}

TEST(DecoderModelTest, TakesOtherBatchesAndShorterSequences) {
  const ChainModel model = MakeDecoderModel(SmallDecoder()).value();
  const at::Tensor tokens = MakeTokenSample(3, 12, 30, 1)->input;
  const at::Tensor whole = Scores(model, tokens);
  const at::Tensor part = Scores(model, tokens.slice(1, 0, 5));
  EXPECT_TRUE(part.allclose(whole.slice(1, 0, 5), 1e-4, 1e-5));
}

TEST(DecoderModelTest, AHeadMayBeTiedToTheEmbedding) {
  const ChainModel loose = MakeDecoderModel(SmallDecoder()).value();
  const ChainModel tied = MakeDecoderModel(SmallDecoder(), /*tied_embedding=*/true).value();
  EXPECT_EQ(tied.parameters().size() + 1, loose.parameters().size());
  EXPECT_TRUE(tied.stage(1).parameters[0].is_same(tied.stage(4).parameters[2]));
  for (const ChainModel* model : {&loose, &tied}) {
    ExpectGradients(*model, MakeTokenSample(2, 12, 30, 1).value());
  }
}

// Made on a device, trained there plain and by a plan that recomputes.
void ExpectTrainsOn(const TrainingDevice& where, const ChainModel& model, const Sample& sample) {
  SCOPED_TRACE(model.name());
  for (const at::Tensor& parameter : model.parameters()) {
    EXPECT_EQ(parameter.device().type(), where.device.type());
  }
  EXPECT_EQ(sample.input.device().type(), where.device.type());
  EXPECT_EQ(sample.target.device().type(), where.device.type());
  model.EnsureGradients();
  const Rewinder start(model, where.device);
  const auto plain = PlainStep(model, sample.input, sample.target, where.meter());
  ASSERT_TRUE(plain.ok()) << plain.status();
  ExpectGradients(model);
  const Outcome as_plain = Outcome::Of(model, plain->loss, where.device);

  const Chain chain = ChainWithTimes(model, sample.input, sample.target, where.execution);
  const Plan plan = MakePlan(chain, LeastBudget{}, {}).value();
  ASSERT_GT(plan.prediction.recomputed_forwards, 0);
  auto executor = Executor::Create(&model, chain, plan.schedule, where.execution);
  ASSERT_TRUE(executor.ok()) << executor.status();
  start.Rewind();
  const auto planned = (*executor)->Step(sample.input, sample.target);
  ASSERT_TRUE(planned.ok()) << planned.status();
  ExpectEqual(as_plain, Outcome::Of(model, planned->loss, where.device));
  EXPECT_LE(planned->peak, plan.prediction.peak);
}

TEST(ModelsTest, TrainOnTheDeviceThatTheyAreMadeOn) {
  const TrainingDevice& where = TrainingDeviceNamed("test");
  ModelOptions options;
  options.classes = 10;
  options.image = 32;
  const ChainModel here = MakeModel("resnet18", options).value();
  options.device = where.device;
  const ChainModel resnet = MakeModel("resnet18", options).value();
  EXPECT_EQ(ParameterDigest(resnet), ParameterDigest(here));
  ExpectTrainsOn(where, resnet, MakeImageSample(4, 32, 10, 1, where.device).value());

  DecoderOptions sizes = SmallDecoder();
  sizes.layers = 4;
  const ChainModel decoder =
      MakeDecoderModel(sizes, /*tied_embedding=*/true, 1, where.device).value();
  ExpectTrainsOn(where, decoder, MakeTokenSample(2, 12, 30, 1, where.device).value());
}

TEST(ModelsTest, BadArgumentsAreRefused) {
  const absl::Status unknown = MakeModel("resnet51").status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.message()), testing::HasSubstr("resnet34"));
  ModelOptions options;
  options.classes = 0;
  EXPECT_EQ(MakeModel("resnet18", options).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MakeImageSample(0, 8, 10, 3).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MakeTokenSample(2, 0, 10, 3).status().code(), absl::StatusCode::kInvalidArgument);
  DecoderOptions decoder = SmallDecoder();
  decoder.heads = 3;
  EXPECT_EQ(MakeDecoderModel(decoder).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace stowage
