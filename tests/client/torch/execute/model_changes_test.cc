// Models whose modules change between steps, or in the middle of one: modes and parameters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "client/torch/execute/executor.h"
#include "client/torch/execute/plain_step.h"
#include "client/torch/execute/planned_module.h"
#include "client/torch/model/state_digest.h"
#include "solvers/schedule/instance.h"
#include "tests/client/device/training_devices.h"
#include "tests/client/torch/error_of.h"
#include "tests/client/torch/network_case.h"
#include "tests/client/torch/random_schedule.h"
#include "tests/client/torch/test_networks.h"
#include "tests/client/torch/training_outcome.h"

namespace stowage {
namespace {

namespace nn = torch::nn;
using testing::ElementsAre;
using testing::HasSubstr;

// Two linear layers around a dropout, each a stage.
class ModelChangesTest : public testing::TestWithParam<std::string> {
 protected:
  ModelChangesTest() {
    torch::manual_seed(3);
    first_ = nn::Linear(6, 8);
    drop_ = nn::Dropout(0.4);
    last_ = nn::Linear(8, 4);
    model_.AddStage("first", "linear", first_);
    model_.AddStage("drop", "dropout", nn::Sequential(drop_, nn::Tanh()));
    model_.AddStage("last", "linear", last_);
    model_.SetLoss("square",
                   [](const at::Tensor& y, const at::Tensor&) { return y.square().mean(); });
    input_ = torch::randn({5, 6}).to(device_.device);
    MoveTo(device_.device, model_);
    chain_.emplace(ChainWithTimes(model_, input_, {}, device_.execution));
  }
  void SetUp() override { SKIP_IF_MISSING(device_); }

  std::unique_ptr<PlannedModule> Planned() {
    return PlannedModule::Create(&model_, *chain_, RecomputeAll(*chain_), device_.execution)
        .value();
  }
  std::string ErrorOfStep() {
    const auto planned = Planned();
    return ErrorOf([&] { planned->forward(input_).square().mean().backward(); });
  }

  nn::Linear LayerThere(int in, int out) const {
    nn::Linear layer(in, out);
    MoveTo(device_.device, layer->parameters());
    return layer;
  }

  const TrainingDevice& device_ = TrainingDeviceNamed(GetParam());
  nn::Linear first_{nullptr};
  nn::Dropout drop_{nullptr};
  nn::Linear last_{nullptr};
  ChainModel model_{"changes"};
  at::Tensor input_;
  std::optional<Chain> chain_;
};

TEST_P(ModelChangesTest, ModesAreThoseOfTheModulesNow) {
  // A linear layer, a sequence of two, a linear layer.
  EXPECT_THAT(model_.modes(), ElementsAre(true, true, true, true, true));
  drop_->eval();
  EXPECT_THAT(model_.modes(), ElementsAre(true, true, false, true, true));
}

TEST_P(ModelChangesTest, AModeThatChangesBeforeARecomputeIsAnErrorOfItsStage) {
  const auto planned = Planned();
  {
    const at::Tensor loss = planned->forward(input_).square().mean();
    drop_->eval();
    const std::string error = ErrorOf([&] { loss.backward(); });
    EXPECT_THAT(error, HasSubstr("stage 2 (drop, dropout)"));
    EXPECT_THAT(error, HasSubstr("between train() and eval()"));
  }
  // A step in the other mode is one like others.
  EXPECT_EQ(ErrorOfStep(), "nothing");
}

// As load_state_dict(assign=True) and as an adapter around a layer do.
TEST_P(ModelChangesTest, AParameterThatWasReplacedIsAnErrorOfItsStage) {
  first_->weight = first_->weight.detach().clone().requires_grad_();
  EXPECT_THAT(ErrorOfStep(), HasSubstr("stage 1 (first, linear): its forward uses 1 parameters "
                                       "that it does not list"));
}

// A layer that this step leaves out has no gradient, as in plain training.
TEST_P(ModelChangesTest, AParameterThatThisStepDoesNotUseIsNoError) {
  nn::Linear sometimes = LayerThere(8, 8);
  ModelStage stage = model_.stage(1);
  bool used = true;
  stage.forward = [base = stage.forward, sometimes, &used](const at::Tensor& x) mutable {
    const at::Tensor y = base(x);
    return used ? y + sometimes->forward(y) : y * 2 + y;
  };
  stage.parameters.push_back(sometimes->weight);
  stage.parameters.push_back(sometimes->bias);
  ChainModel conditional("conditional");
  conditional.AddStage(stage);
  conditional.AddStage(model_.stage(2));
  conditional.AddStage(model_.stage(3));
  conditional.SetLoss("square", model_.loss());
  const Chain chain = ChainWithTimes(conditional, input_, {}, device_.execution);
  Schedule keep = StoreAllSchedule(chain);
  const auto executor = Executor::Create(&conditional, chain, keep, device_.execution).value();
  ASSERT_TRUE(executor->Step(input_, {}).ok());
  used = false;
  sometimes->zero_grad();
  const absl::Status status = executor->Step(input_, {}).status();
  EXPECT_TRUE(status.ok()) << status;
}

TEST_P(ModelChangesTest, AParameterThatNobodyListsIsAnErrorOfItsStage) {
  last_->weight.set_requires_grad(false);
  nn::Linear adapter = LayerThere(8, 4);
  ModelStage stage = model_.stage(3);
  ChainModel adapted("adapted");
  adapted.AddStage(model_.stage(1));
  adapted.AddStage(model_.stage(2));
  const StageFunction base = stage.forward;
  bool wrapped = false;
  stage.forward = [base, adapter, &wrapped](const at::Tensor& x) mutable {
    return wrapped ? base(x) + adapter->forward(x) : base(x);
  };
  adapted.AddStage(stage);
  adapted.SetLoss("square", model_.loss());
  const Chain chain = ChainWithTimes(adapted, input_, {}, device_.execution);
  const auto executor =
      Executor::Create(&adapted, chain, RecomputeAll(chain), device_.execution).value();
  EXPECT_TRUE(executor->Step(input_, {}).ok());
  wrapped = true;
  const absl::Status status = executor->Step(input_, {}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("stage 3 (last, linear): its forward uses 2 parameters that it does not "
                        "list"));
}

TEST_P(ModelChangesTest, ParametersMayBeWrittenBetweenSteps) {
  const auto planned = Planned();
  planned->forward(input_).square().mean().backward();
  const nn::Linear other = LayerThere(6, 8);
  {
    const torch::NoGradGuard no_grad;
    first_->weight.copy_(other->weight);
    first_->bias.copy_(other->bias);
  }
  const Rewinder start(model_, device_.device);
  const auto step = [&](const std::function<at::Tensor()>& forward) {
    start.Rewind();
    const at::Tensor loss = forward().square().mean();
    loss.backward();
    return Outcome::Of(model_, loss.item<double>(), device_.device);
  };
  const Outcome plain = step([&] {
    at::Tensor x = input_;
    for (int l = 1; l <= model_.length(); ++l) x = model_.stage(l).forward(x);
    return x;
  });
  ExpectEqual(plain, step([&] { return planned->forward(input_); }));
}

INSTANTIATE_TEST_SUITE_P(Devices, ModelChangesTest, testing::Values("cpu", "test", "cuda"),
                         [](const auto& device) { return device.param; });

class SetToNoneTest : public testing::TestWithParam<NetworkCase> {
 protected:
  SetToNoneTest()
      : network_(MakeTestNetwork(std::get<0>(GetParam()), device_)),
        start_(network_.model, device_.device) {
    chain_.emplace(
        ChainWithTimes(network_.model, network_.input, network_.target, device_.execution));
  }
  void SetUp() override { SKIP_IF_MISSING(device_); }

  Outcome After(const std::function<double()>& step) {
    start_.Rewind();
    for (const at::Tensor& parameter : network_.model.parameters()) {
      parameter.mutable_grad().reset();
    }
    const double loss = step();
    return Outcome::Of(network_.model, loss, device_.device);
  }

  Outcome Plain() {
    return After([&] {
      const at::Tensor loss =
          network_.model.loss()(PlainForward(network_.model, network_.input), network_.target);
      loss.backward();
      return loss.item<double>();
    });
  }

  // Elsewhere plans count whole blocks.
  void ExpectPredicted(const StepReport& report, const Executor& executor) const {
    EXPECT_LE(report.peak, executor.prediction().peak);
    if (device_.exact) {
      EXPECT_EQ(report.peak, executor.prediction().peak);
    }
  }

  const TrainingDevice& device_ = TrainingDeviceNamed(std::get<1>(GetParam()));
  TestNetwork network_;
  Rewinder start_;
  std::optional<Chain> chain_;
};

TEST_P(SetToNoneTest, StepsAreThePlainOnesWithinThePrediction) {
  const Outcome plain = Plain();
  std::mt19937 random(4);
  std::vector<Schedule> schedules = {StoreAllSchedule(*chain_), RecomputeAll(*chain_)};
  for (int i = 0; i < 10; ++i) schedules.push_back(RandomPersistentSchedule(*chain_, &random));
  for (const Schedule& schedule : schedules) {
    const auto executor =
        Executor::Create(&network_.model, *chain_, schedule, device_.execution).value();
    ExpectEqual(plain, After([&] {
                  const auto report = executor->Step(network_.input, network_.target);
                  EXPECT_TRUE(report.ok()) << report.status();
                  ExpectPredicted(*report, *executor);
                  return report->loss;
                }));
    // Gradients that are there are added to, also after a step that made them.
    const auto again = executor->Step(network_.input, network_.target);
    ASSERT_TRUE(again.ok()) << again.status();
    ExpectPredicted(*again, *executor);
  }
}

TEST_P(SetToNoneTest, TheForwardMakesNoGradients) {
  const auto planned =
      PlannedModule::Create(&network_.model, *chain_, RecomputeAll(*chain_), device_.execution)
          .value();
  ExpectEqual(Plain(), After([&] {
                const at::Tensor loss =
                    network_.model.loss()(planned->forward(network_.input), network_.target);
                for (const at::Tensor& parameter : network_.model.parameters()) {
                  EXPECT_FALSE(parameter.grad().defined());
                }
                loss.backward();
                return loss.item<double>();
              }));
}

INSTANTIATE_TEST_SUITE_P(Networks, SetToNoneTest,
                         testing::Combine(testing::ValuesIn(TestNetworkNames()),
                                          testing::Values("cpu")),
                         NameOfNetworkCase);
INSTANTIATE_TEST_SUITE_P(OnOtherDevices, SetToNoneTest,
                         testing::Combine(testing::Values("norm_cnn", "mlp", "tied", "transformer"),
                                          testing::Values("test", "cuda")),
                         NameOfNetworkCase);

// The gradient of the weight is -0, which +0 added to it would make +0.
TEST(SetToNone, AGradientKeepsTheSignOfItsZero) {
  ChainModel model("zero");
  const at::Tensor weight = torch::ones({4}).requires_grad_();
  ModelStage stage;
  stage.name = "scale";
  stage.op_kind = "mul";
  stage.forward = [weight](const at::Tensor& x) { return x * weight; };
  stage.parameters = {weight};
  model.AddStage(stage);
  model.SetLoss("minus", [](const at::Tensor& y, const at::Tensor&) { return -y.sum(); });
  const at::Tensor input = torch::zeros({4});
  const Chain chain = ChainWithTimes(model, input, {});
  const auto executor = Executor::Create(&model, chain, StoreAllSchedule(chain)).value();
  weight.mutable_grad().reset();
  ASSERT_TRUE(executor->Step(input, {}).ok());
  EXPECT_TRUE(at::signbit(weight.grad()).all().item<bool>());
}

}  // namespace
}  // namespace stowage
