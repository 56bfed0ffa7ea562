// Stages that would train wrongly without a word: the profiler names each of them, or keeps the
// planner from recomputing it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "client/torch/profile/chain_profiler.h"
#include "tests/client/device/training_devices.h"

namespace stowage {
namespace {

namespace nn = torch::nn;
using testing::HasSubstr;

class StageRulesTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { SKIP_IF_MISSING(device_); }

  absl::StatusOr<Profile> ProfileOf(ChainModel model) {
    if (!model.loss()) {
      model.SetLoss("sum", [](const at::Tensor& y, const at::Tensor&) { return y.sum(); });
    }
    ProfileOptions options;
    options.bytes_only = true;
    options.device = device_.execution;
    const auto there = [&](const at::Tensor& tensor) { return tensor.to(device_.device); };
    return ProfileChain(model, there(torch::randn({2, 4})), there(torch::zeros({1})), options);
  }

  void ExpectRefused(ChainModel model, const std::string& message) {
    const absl::Status status = ProfileOf(std::move(model)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }

  at::Tensor Zero() const { return torch::zeros({1}).to(device_.device); }

  nn::Linear Layer() const {
    nn::Linear layer(4, 4);
    MoveTo(device_.device, layer->parameters());
    return layer;
  }

  ChainModel OneLayer() const {
    ChainModel model("rules");
    model.AddStage("fc", "linear", Layer());
    return model;
  }

  const TrainingDevice& device_ = TrainingDeviceNamed(GetParam());
};

ModelStage Counting(const at::Tensor& count) {
  ModelStage stage;
  stage.name = "count";
  stage.op_kind = "count";
  stage.forward = [count](const at::Tensor& x) {
    count.add_(1);
    return x * 2;
  };
  return stage;
}

TEST_P(StageRulesTest, AnOutputThatTheStageKeepsIsRefused) {
  ChainModel constant = OneLayer();
  const at::Tensor kept = torch::randn({2, 4}).to(device_.device);
  constant.AddFunction("constant", "none", [kept](const at::Tensor&) { return kept; });
  ExpectRefused(std::move(constant),
                "stage 2 (constant, none): it returns a tensor that it keeps between calls");

  ChainModel cached = OneLayer();
  const auto cache = std::make_shared<at::Tensor>();
  cached.AddFunction("cached", "none", [cache](const at::Tensor& x) {
    if (!cache->defined()) *cache = at::zeros_like(x);
    return cache->narrow(0, 0, 1);
  });
  ExpectRefused(std::move(cached),
                "stage 2 (cached, none): it returns a tensor that it keeps between calls");
}

TEST_P(StageRulesTest, UnlistedParametersAreRefused) {
  ChainModel model("rules");
  const nn::Linear hidden = Layer();
  model.AddFunction("hidden", "linear",
                    [hidden](const at::Tensor& x) { return nn::Linear(hidden)->forward(x); });
  model.AddStage("fc", "linear", Layer());
  ExpectRefused(std::move(model),
                "stage 1 (hidden, linear): it trains parameters that it does not list");
}

TEST_P(StageRulesTest, UnlistedParametersOfTheLossAreRefused) {
  ChainModel model("rules");
  model.AddFunction("twice", "mul", [](const at::Tensor& x) { return x * 2; });
  const at::Tensor weight = torch::ones({4}).to(device_.device).requires_grad_();
  model.SetLoss("weighted",
                [weight](const at::Tensor& y, const at::Tensor&) { return (y * weight).sum(); });
  ExpectRefused(std::move(model), "the loss (weighted): it trains parameters");
}

TEST_P(StageRulesTest, AStageWithHiddenStateIsNeverRecomputed) {
  const auto stage_two = [&](ModelStage stage) {
    ChainModel model = OneLayer();
    model.AddStage(std::move(stage));
    return std::get<Chain>(ProfileOf(std::move(model)).value().problem).stage(2);
  };
  const at::Tensor count = Zero();
  ModelStage hidden = Counting(count);
  EXPECT_FALSE(stage_two(hidden).must_keep);
  hidden.stateful = true;
  EXPECT_TRUE(stage_two(hidden).must_keep);
  hidden.buffers = {count};
  const Stage listed = stage_two(hidden);
  EXPECT_TRUE(listed.stateful);
  EXPECT_FALSE(listed.must_keep);
}

ModelStage Owner(const at::Tensor& buffer) {
  ModelStage owner;
  owner.name = "owner";
  owner.op_kind = "mul";
  owner.buffers = {buffer};
  owner.forward = [](const at::Tensor& x) { return x * 3; };
  return owner;
}

TEST_P(StageRulesTest, WritingTheBuffersOfALaterStageIsRefused) {
  const at::Tensor count = Zero();
  ChainModel model = OneLayer();
  model.AddStage(Counting(count));
  model.AddStage(Owner(count));
  ExpectRefused(std::move(model),
                "stage 3 (owner, mul): its buffers are written by a part of the model that does "
                "not list them");
}

TEST_P(StageRulesTest, WritingTheBuffersOfAnEarlierStageIsRefused) {
  const at::Tensor count = Zero();
  ChainModel model = OneLayer();
  model.AddStage(Owner(count));
  model.AddStage(Counting(count));
  ExpectRefused(std::move(model),
                "stage 2 (owner, mul): its buffers are written by a part of the model that does "
                "not list them");
}

TEST_P(StageRulesTest, ABufferMayBeListedByTwoStages) {
  const at::Tensor count = Zero();
  ModelStage first = Counting(count);
  first.buffers = {count};
  ChainModel model = OneLayer();
  model.AddStage(first);
  model.AddStage(first);
  const absl::StatusOr<Profile> profile = ProfileOf(std::move(model));
  ASSERT_TRUE(profile.ok()) << profile.status();
  const Chain& chain = std::get<Chain>(profile->problem);
  EXPECT_TRUE(chain.stage(2).stateful);
  EXPECT_TRUE(chain.stage(3).stateful);
}

INSTANTIATE_TEST_SUITE_P(Devices, StageRulesTest, testing::Values("cpu", "test", "cuda"),
                         [](const auto& device) { return device.param; });

}  // namespace
}  // namespace stowage
