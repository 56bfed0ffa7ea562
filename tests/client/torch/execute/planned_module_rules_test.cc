// What a PlannedModule refuses, what it leaves behind when something fails, and what it does as a part of
// larger graphs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/torch.h>

#include <stdexcept>
#include <string>

#include "client/torch/execute/executor.h"
#include "client/torch/execute/planned_module.h"
#include "client/torch/model/model_state.h"
#include "client/torch/model/state_digest.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "tests/client/torch/execute/planned_module_fixture.h"

namespace stowage {
namespace {

using testing::HasSubstr;

class OnePlannedModuleTest : public PlannedTraining,
                             public testing::WithParamInterface<std::string> {
 protected:
  OnePlannedModuleTest() : PlannedTraining("norm_cnn", TrainingDeviceNamed(GetParam())) {}

  c10::Device device() const { return training_device_.device; }

  std::unique_ptr<PlannedModule> planned_ = Make(RecomputeAll(chain_));
};

TEST_P(OnePlannedModuleTest, AGraphThatIsDroppedHoldsNothing) {
  const Bytes live = training_device_.live();
  at::Tensor output = planned_->forward(network_.input);
  EXPECT_TRUE(output.requires_grad());
  EXPECT_EQ(output.grad_fn()->name(), "stowage backward 8, " + model_.Describe(8));
  EXPECT_GT(meter_->current(), live);
  output.reset();
  EXPECT_EQ(training_device_.live(), live);
}

TEST_P(OnePlannedModuleTest, OutOfMemoryAtAnyPointLeavesNothingBehind) {
  if (!training_device_.limits_memory()) GTEST_SKIP() << "its memory has no limit to the byte";
  const Outcome plain = AfterStep(plain_);
  start_.Rewind();
  const Digest before = BufferDigest(model_);
  const RandomState random = RandomState::Capture(device());
  const Bytes live = training_device_.live();
  const int64_t peak = planned_->prediction().peak.value();
  int in_forward = 0;
  int in_backward = 0;
  for (int64_t extra = 0; extra < peak; extra += peak / 60) {
    start_.Rewind();
    training_device_.LimitMemory(Bytes(extra));
    at::Tensor output;
    at::Tensor loss;
    try {
      output = planned_->forward(network_.input);
      loss = model_.loss()(output, network_.target);
      output.reset();
      loss.backward();
    } catch (const c10::OutOfMemoryError&) {
      training_device_.ClearLimit();
      if (loss.defined()) {
        ++in_backward;
        EXPECT_EQ(BufferDigest(model_), plain.buffers);
        EXPECT_TRUE(RandomState::Capture(device()) == plain.random);
      } else if (!output.defined()) {
        ++in_forward;
        EXPECT_EQ(BufferDigest(model_), before);
        EXPECT_TRUE(RandomState::Capture(device()) == random);
      }
    }
    training_device_.ClearLimit();
    output.reset();
    loss.reset();
    EXPECT_EQ(training_device_.live(), live);
  }
  EXPECT_GT(in_forward, 5);
  EXPECT_GT(in_backward, 5);
  ExpectEqual(plain, AfterStep(ForwardOf(planned_.get())));
}

struct StageBroke : std::runtime_error {
  using std::runtime_error::runtime_error;
};

TEST_P(OnePlannedModuleTest, AnExceptionOfAStagePassesThroughAsItIs) {
  int calls_until_failure = -1;
  ChainModel& model = network_.model;
  model.AddFunction("fragile", "mul", [&](const at::Tensor& x) {
    if (calls_until_failure-- == 0) throw StageBroke("a stage broke");
    return x.tanh() * 1.5 +
           at::rand_like(x);  // saves something of its own, or it would not run again
  });
  chain_ = ChainWithTimes(model, network_.input, network_.target, training_device_.execution);
  planned_ = Make(RecomputeAll(chain_));
  const Outcome plain = AfterStep(plain_);
  const Bytes live = training_device_.live();
  const Forward forward = ForwardOf(planned_.get());
  for (const int call : {0, 1}) {
    start_.Rewind();
    const Digest buffers = BufferDigest(model);
    const RandomState random = RandomState::Capture(device());
    calls_until_failure = call;
    EXPECT_THROW(LossOf(forward).backward(), StageBroke);
    EXPECT_EQ(training_device_.live(), live);
    // The forward puts back what it changed; after it, the step has been made as far as that goes.
    EXPECT_EQ(BufferDigest(model) == buffers, call == 0);
    EXPECT_EQ(RandomState::Capture(device()) == random, call == 0);
  }
  calls_until_failure = -1;
  ExpectEqual(plain, AfterStep(forward));
}

// Those of LibTorch keep their type and say where they were thrown.
TEST_P(OnePlannedModuleTest, AnExceptionOfLibTorchsNamesItsStage) {
  int calls_until_failure = -1;
  ChainModel& model = network_.model;
  model.AddFunction("fragile", "mul", [&](const at::Tensor& x) {
    TORCH_CHECK_INDEX(calls_until_failure-- != 0, "no such row");
    return x.tanh() * 1.5 +
           at::rand_like(x);  // saves something of its own, or it would not run again
  });
  chain_ = ChainWithTimes(model, network_.input, network_.target, training_device_.execution);
  planned_ = Make(RecomputeAll(chain_));
  for (const int call : {0, 1}) {
    start_.Rewind();
    calls_until_failure = call;
    try {
      LossOf(ForwardOf(planned_.get())).backward();
      ADD_FAILURE();
    } catch (const c10::IndexError& error) {
      EXPECT_THAT(error.what_without_backtrace(), HasSubstr("no such row"));
      EXPECT_THAT(error.what_without_backtrace(), HasSubstr("stage 9 (fragile, mul)"));
    }
  }
}

TEST_P(OnePlannedModuleTest, WhatIsReadAgainMustNotBeWrittenOver) {
  const Forward forward = ForwardOf(planned_.get());
  at::Tensor loss = LossOf(forward);
  {
    const torch::NoGradGuard no_grad;
    at::Tensor(model_.parameters()[2]).add_(1);
  }
  EXPECT_THAT(ErrorOf([&] { loss.backward(); }),
              HasSubstr("parameter 2 of a planned step was written over between"));
  loss = LossOf(forward);
  network_.input.add_(1);
  EXPECT_THAT(ErrorOf([&] { loss.backward(); }),
              HasSubstr("input 0 of a planned step was written over"));
}

TEST_P(OnePlannedModuleTest, WhatIsReadAgainMustNotBeWrittenOverInTheBackwardEither) {
  ChainModel& model = network_.model;
  bool writes = true;
  model.AddFunction("writer", "mul", [&](const at::Tensor& x) {
    at::Tensor y = x.tanh();
    if (!y.requires_grad() || !writes) return y;
    y.register_hook([&](const at::Tensor& gradient) {
      const torch::NoGradGuard no_grad;
      at::Tensor(model_.parameters()[2]).add_(1);
      return gradient;
    });
    return y;
  });
  chain_ = ChainWithTimes(model, network_.input, network_.target, training_device_.execution);
  planned_ = Make(RecomputeAll(chain_));
  const at::Tensor loss = LossOf(ForwardOf(planned_.get()));
  EXPECT_THAT(ErrorOf([&] { loss.backward(); }),
              HasSubstr("parameter 2 of a planned step was written over between"));
  writes = false;
  EXPECT_EQ(ErrorOf([&] { LossOf(ForwardOf(planned_.get())).backward(); }), "nothing");
}

TEST_P(OnePlannedModuleTest, GradientsHaveNoGradient) {
  const at::Tensor loss = LossOf(ForwardOf(planned_.get()));
  EXPECT_THAT(ErrorOf([&] { loss.backward({}, true, /*create_graph=*/true); }),
              HasSubstr("no gradient of its gradient"));
}

TEST_P(OnePlannedModuleTest, ForwardModeAndTransformsOfFunctionsAreRefused) {
  const auto executor =
      Executor::Create(&model_, chain_, RecomputeAll(chain_), training_device_.execution).value();
  const auto expect_refused = [&](const at::Tensor& input, const std::string& why) {
    EXPECT_THAT(ErrorOf([&] { planned_->forward(input); }), HasSubstr(why));
    const absl::Status status = executor->Step(input, network_.target).status();
    EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  };
  const uint64_t level = torch::autograd::forward_ad::enter_dual_level();
  expect_refused(at::_make_dual(network_.input, torch::ones_like(network_.input), level),
                 "no forward-mode gradient");
  torch::autograd::forward_ad::exit_dual_level(level);
  const at::Tensor input = network_.input;
  const c10::impl::IncludeDispatchKeyGuard transform(
      c10::DispatchKey::FuncTorchDynamicLayerFrontMode);
  expect_refused(input, "a transform of torch.func");
}

TEST_P(OnePlannedModuleTest, TheOutputMayBeWrittenOverWhereItIsNotNeeded) {
  ExpectLikePlain([this](const Forward& forward) {
    const at::Tensor loss =
        LossOf([&](const at::Tensor& input) { return forward(input).mul_(0.5); });
    loss.backward();
    return loss.item<double>();
  });
}

TEST_P(OnePlannedModuleTest, AnotherInputIsRefused) {
  EXPECT_THAT(ErrorOf([&] {
                planned_->forward(torch::zeros({4, 3, 16, 16}).to(device()));
              }),
              HasSubstr("the input has 12288 bytes"));
  EXPECT_THAT(ErrorOf([&] { planned_->forward(at::Tensor()); }), HasSubstr("undefined tensor"));
  EXPECT_THAT(ErrorOf([&] { planned_->forward(network_.input.clone().requires_grad_()); }),
              HasSubstr("the input asks for a gradient, that of the profile asked for none"));
}

TEST_P(OnePlannedModuleTest, TheLossHasOnePlace) {
  // Runs the loss early, throws what it saved away, and runs it again.
  const int loss = chain_.length() + 1;
  Schedule schedule = RecomputeAll(chain_);
  const auto place = schedule.begin() + chain_.length();
  schedule.insert(place, {ForwardSave(loss), Discard(TensorKind::kSaved, loss)});
  EXPECT_EQ(Evaluator(chain_).Run(schedule)->recomputed_forwards, chain_.length() + 1);
  planned_ = Make(schedule);
  EXPECT_EQ(planned_->prediction().recomputed_forwards, chain_.length());
  const Outcome plain = AfterStep(plain_);
  ExpectEqual(plain, AfterStep(ForwardOf(planned_.get())));
  schedule.pop_back();
  EXPECT_TRUE(absl::IsInvalidArgument(PlannedModule::Create(&model_, chain_, schedule).status()));
}

INSTANTIATE_TEST_SUITE_P(Devices, OnePlannedModuleTest, testing::Values("cpu", "test", "cuda"),
                         [](const auto& device) { return device.param; });

// Of other networks: what goes into a planned module, and what comes out.
class PlannedModuleEndsTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { SKIP_IF_MISSING(device_); }

  Chain Profiled(const ChainModel& model, const at::Tensor& input, const at::Tensor& target) const {
    return ChainWithTimes(model, input, target, device_.execution);
  }
  std::unique_ptr<PlannedModule> Make(const ChainModel& model, const Chain& chain,
                                      const Schedule& schedule) const {
    return PlannedModule::Create(&model, chain, schedule, device_.execution).value();
  }

  const TrainingDevice& device_ = TrainingDeviceNamed(GetParam());
};

// A last stage whose backward needs its output.
TEST_P(PlannedModuleEndsTest, WritingOverAnOutputThatIsNeededIsFoundOut) {
  const TestNetwork network = MakeTestNetwork("moving_scale", device_);
  ChainModel model("tanh");
  for (int l = 1; l <= 3; ++l) model.AddStage(network.model.stage(l));
  model.SetLoss("sum", [](const at::Tensor& y, const at::Tensor&) { return y.sum(); });
  const Chain chain = Profiled(model, network.input, network.target);
  const auto planned = Make(model, chain, StoreAllSchedule(chain));
  EXPECT_THAT(ErrorOf([&] { planned->forward(network.input).mul_(0.5).sum().backward(); }),
              HasSubstr("modified by an inplace operation"));
}

// As part of a larger model, in front of which something is trained.
TEST_P(PlannedModuleEndsTest, TheInputGetsItsGradient) {
  for (const char* const name : {"plain_cnn", "frozen_prefix"}) {
    const TestNetwork network = MakeTestNetwork(name, device_);
    const at::Tensor input = network.input.clone().requires_grad_();
    const Chain chain = Profiled(network.model, input, network.target);
    // Whole blocks, both.
    EXPECT_EQ(chain.gradient(0), chain.activation(0));
    const Rewinder start(network.model, device_.device);
    const auto gradient_of = [&](const Forward& forward) {
      start.Rewind();
      input.mutable_grad() = torch::zeros_like(input);
      network.model.loss()(forward(input * 2), network.target).backward();
      return input.grad().clone();
    };
    const at::Tensor plain = gradient_of([&](at::Tensor x) {
      for (int l = 1; l <= network.model.length(); ++l) x = network.model.stage(l).forward(x);
      return x;
    });
    const Digest gradients = GradientDigest(network.model);
    const auto planned = Make(network.model, chain, RecomputeAll(chain));
    const at::Tensor got = gradient_of([&](const at::Tensor& x) { return planned->forward(x); });
    EXPECT_TRUE(got.equal(plain));
    EXPECT_EQ(GradientDigest(network.model), gradients);
  }
}

TEST_P(PlannedModuleEndsTest, WithoutAnythingToTrainThereIsNoGraph) {
  const TestNetwork network = MakeTestNetwork("plain_cnn", device_);
  const Chain chain = Profiled(network.model, network.input, network.target);
  for (const at::Tensor& parameter : network.model.parameters()) parameter.set_requires_grad(false);
  const auto planned = Make(network.model, chain, RecomputeAll(chain));
  EXPECT_FALSE(planned->forward(network.input).requires_grad());
}

INSTANTIATE_TEST_SUITE_P(Devices, PlannedModuleEndsTest, testing::Values("cpu", "test", "cuda"),
                         [](const auto& device) { return device.param; });

}  // namespace
}  // namespace stowage
