#include "client/torch/profile/found_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/torch/execute/executor.h"
#include "client/torch/execute/plain_step.h"
#include "client/torch/model/model_state.h"
#include "client/torch/profile/chain_profiler.h"
#include "solvers/schedule/schedule.h"
#include "tests/client/device/training_devices.h"

namespace stowage {
namespace {

namespace nn = torch::nn;
using testing::HasSubstr;

struct Layers {
  explicit Layers(c10::Device device) {
    for (const auto& tensors :
         {conv->parameters(), norm->parameters(), norm->buffers(), head->parameters()}) {
      MoveTo(device, tensors);
    }
  }

  nn::Conv2d conv{nn::Conv2dOptions(3, 4, 3).padding(1)};
  nn::BatchNorm2d norm{4};
  nn::Linear head{4 * 6 * 6, 5};
};

// Nothing is listed.
ChainModel Unlisted(const Layers& layers) {
  ChainModel model("unlisted");
  model.AddFunction("conv", "",
                    [conv = layers.conv](const at::Tensor& x) mutable { return conv->forward(x); });
  model.AddFunction("norm", "", [norm = layers.norm](const at::Tensor& x) mutable {
    return at::dropout(norm->forward(x).relu(), 0.3, true);
  });
  model.AddFunction("head", "named", [head = layers.head](const at::Tensor& x) mutable {
    return head->forward(x.flatten(1));
  });
  model.SetLoss("", [](const at::Tensor& y, const at::Tensor& t) { return at::mse_loss(y, t); });
  return model;
}

std::vector<const void*> Places(const std::vector<at::Tensor>& tensors) {
  std::vector<const void*> places;
  for (const at::Tensor& tensor : tensors) places.push_back(tensor.unsafeGetTensorImpl());
  return places;
}

class FoundStateTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { SKIP_IF_MISSING(device_); }

  at::Tensor There(const at::Tensor& tensor) const { return tensor.to(device_.device); }
  at::Tensor Drawn(at::IntArrayRef sizes) const { return There(torch::randn(sizes)); }
  RandomState Random() const { return RandomState::Capture(device_.device); }

  const TrainingDevice& device_ = TrainingDeviceNamed(GetParam());
};

TEST_P(FoundStateTest, FindsWhatIsNotListed) {
  torch::manual_seed(1);
  const Layers layers(device_.device);
  ChainModel model = Unlisted(layers);
  const at::Tensor input = Drawn({2, 3, 6, 6}), target = Drawn({2, 5});
  const at::Tensor mean = layers.norm->running_mean.clone();
  const RandomState random = Random();
  ASSERT_TRUE(FindState(input, target, &model).ok());

  EXPECT_EQ(Places(model.stage(1).parameters), Places(layers.conv->parameters()));
  EXPECT_EQ(Places(model.stage(2).parameters), Places(layers.norm->parameters()));
  EXPECT_THAT(Places(model.stage(2).buffers),
              testing::UnorderedElementsAreArray(Places(layers.norm->buffers())));
  EXPECT_EQ(Places(model.stage(3).parameters), Places(layers.head->parameters()));
  EXPECT_TRUE(model.stage(1).buffers.empty());
  EXPECT_EQ(model.parameters().size(), 6u);
  EXPECT_THAT(model.stage(1).op_kind, HasSubstr("ops:"));
  EXPECT_NE(model.stage(1).op_kind, model.stage(2).op_kind);
  EXPECT_EQ(model.stage(3).op_kind, "named");
  EXPECT_THAT(model.loss_op_kind(), HasSubstr("ops:"));
  // As it was.
  EXPECT_TRUE(layers.norm->running_mean.equal(mean));
  EXPECT_EQ(layers.norm->num_batches_tracked.item<int64_t>(), 0);
  EXPECT_EQ(Random(), random);

  // What was found is listed.
  const std::string kind = model.stage(1).op_kind;
  ASSERT_TRUE(FindState(input, target, &model).ok());
  EXPECT_EQ(model.parameters().size(), 6u);
  EXPECT_TRUE(model.tied_parameters().empty());
  EXPECT_EQ(model.stage(1).op_kind, kind);
}

TEST_P(FoundStateTest, AModelThatWasCompletedTrainsByPlans) {
  torch::manual_seed(2);
  const Layers layers(device_.device);
  ChainModel model = Unlisted(layers);
  const at::Tensor input = Drawn({2, 3, 6, 6}), target = Drawn({2, 5});
  ASSERT_TRUE(FindState(input, target, &model).ok());
  ProfileOptions options;
  options.device = device_.execution;
  auto profile = ProfileChain(model, input, target, options);
  ASSERT_TRUE(profile.ok()) << profile.status();
  const Chain& chain = std::get<Chain>(profile->problem);
  EXPECT_TRUE(chain.stage(2).stateful);
  EXPECT_TRUE(chain.stage(2).random);
  // Stages 1 and 2 run again.
  const Schedule planned = {ForwardNoSave(1), ForwardNoSaveFreeInput(2),
                            ForwardSave(3),   ForwardSave(4),
                            Backward(4),      Backward(3),
                            ForwardSave(1),   ForwardSave(2),
                            Backward(2),      Backward(1)};
  const RandomState random = Random();
  auto plain = PlainStep(model, input, target, device_.meter());
  ASSERT_TRUE(plain.ok()) << plain.status();
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : model.parameters()) {
    gradients.push_back(parameter.grad().clone());
  }
  const at::Tensor mean = layers.norm->running_mean.clone();
  model.ZeroGradients();
  nn::BatchNorm2d(layers.norm)->reset_running_stats();
  auto executor = Executor::Create(&model, chain, planned, device_.execution);
  ASSERT_TRUE(executor.ok()) << executor.status();
  random.Restore();
  auto step = (*executor)->Step(input, target);
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->loss, plain->loss);
  EXPECT_GT(step->recomputed_forwards, 0);
  for (size_t i = 0; i < gradients.size(); ++i) {
    EXPECT_TRUE(model.parameters()[i].grad().equal(gradients[i])) << i;
  }
  EXPECT_TRUE(layers.norm->running_mean.equal(mean));
}

// The op_kind of a model of this one stage.
std::string KindOf(StageFunction forward, const at::Tensor& input) {
  ChainModel model("one");
  model.AddFunction("it", "", std::move(forward));
  EXPECT_TRUE(FindState(input, {}, &model).ok());
  return model.stage(1).op_kind;
}

TEST_P(FoundStateTest, OpKindsAreOfWhatIsComputed) {
  const at::Tensor small = There(torch::ones({2, 8})), large = There(torch::ones({6, 8}));
  const StageFunction twice = [](const at::Tensor& x) { return x.view({x.size(0), 2, 4}) * 2; };
  EXPECT_EQ(KindOf(twice, small), KindOf(twice, large)) << "of any batch";
  const StageFunction thrice = [](const at::Tensor& x) { return x.view({x.size(0), 2, 4}) * 3; };
  EXPECT_NE(KindOf(twice, small), KindOf(thrice, small));
  const StageFunction half = [](const at::Tensor& x) { return at::dropout(x, 0.5, true); };
  const StageFunction less = [](const at::Tensor& x) { return at::dropout(x, 0.1, true); };
  EXPECT_NE(KindOf(half, small), KindOf(less, small));
}

TEST_P(FoundStateTest, GraphsAndTiedParameters) {
  GraphModel model("graph");
  const at::Tensor weight = Drawn({4, 4}).requires_grad_();
  const at::Tensor seen = There(torch::zeros({1}));
  const int input = model.AddInput("input");
  const int first = model.AddFunction("first", "", {input},
                                      [weight](const auto& x) { return at::matmul(x[0], weight); });
  const int second = model.AddFunction("second", "", {first, input}, [weight, seen](const auto& x) {
    seen.add_(1);
    return at::matmul(x[0], weight.t()) + x[1];
  });
  model.AddFunction("loss", "", {second}, [](const auto& x) { return x[0].sum(); });
  ASSERT_TRUE(FindState({Drawn({3, 4})}, {}, &model).ok());
  EXPECT_EQ(Places(model.parameters()), Places({weight}));
  EXPECT_EQ(Places(model.tied_parameters()), Places({weight}));
  EXPECT_EQ(Places(model.node(second).buffers), Places({seen}));
  EXPECT_TRUE(model.node(first).buffers.empty());
  EXPECT_EQ(seen.item<float>(), 0);
  EXPECT_NE(model.node(first).op_kind, model.node(second).op_kind);
}

TEST_P(FoundStateTest, ALossIsFoundOnceItHasItsTargets) {
  const Layers layers(device_.device);
  ChainModel model = Unlisted(layers);
  const at::Tensor input = Drawn({2, 3, 6, 6});
  ASSERT_TRUE(FindState(input, {}, &model).ok());
  EXPECT_FALSE(model.stage(1).op_kind.empty());
  EXPECT_TRUE(model.loss_op_kind().empty());
  ASSERT_TRUE(FindState(input, Drawn({2, 5}), &model).ok());
  EXPECT_FALSE(model.loss_op_kind().empty());
  EXPECT_EQ(FindState(input, Drawn({2, 6}), &model).code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(FoundStateTest, AGraphFromOutsideIsRefused) {
  const at::Tensor weight = Drawn({8}).requires_grad_();
  const at::Tensor scaled = weight * 2;
  ChainModel model("outside");
  model.AddFunction("double", "", [](const at::Tensor& x) { return x * 2; });
  model.AddFunction("scale", "", [scaled](const at::Tensor& x) { return x * scaled; });
  const absl::Status status = FindState(There(torch::ones({2, 8})), {}, &model);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("stage 2 (scale, )"));
  EXPECT_THAT(status.message(), HasSubstr("a graph from outside"));
  EXPECT_TRUE(model.stage(1).op_kind.empty()) << "as it was";
}

TEST_P(FoundStateTest, WhatThrowsIsNamed) {
  ChainModel model("throws");
  model.AddFunction("narrow", "", [](const at::Tensor& x) { return x.narrow(1, 5, 9); });
  const absl::Status status = FindState(There(torch::ones({2, 8})), {}, &model);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("stage 1 (narrow, )"));

  GraphModel graph("inputs");
  graph.AddInput("a");
  EXPECT_EQ(FindState({}, {}, &graph).code(), absl::StatusCode::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Devices, FoundStateTest, testing::Values("cpu", "test", "cuda"),
                         [](const auto& device) { return device.param; });

}  // namespace
}  // namespace stowage
