#include "client/torch/model/autocast_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>
#include <utility>
#include <variant>

#include "client/torch/execute/executor.h"
#include "client/torch/model/batch_shape.h"
#include "client/torch/profile/chain_profiler.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "tests/client/device/training_devices.h"
#include "tests/client/torch/autocast.h"
#include "tests/client/torch/test_networks.h"
#include "tests/client/torch/training_outcome.h"

namespace stowage {
namespace {

using testing::HasSubstr;

at::ScalarType TypeOfProduct(const at::Tensor& a, const at::Tensor& b) {
  return at::matmul(a, b).scalar_type();
}

class AutocastStateTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    SKIP_IF_MISSING(device_);
    if (!device_.has_autocast) GTEST_SKIP() << "LibTorch has no autocast for it";
  }

  c10::DeviceType type() const { return device_.device.type(); }
  at::Tensor Random(at::IntArrayRef sizes) const { return torch::randn(sizes).to(device_.device); }
  std::string InWords() const {
    return c10::DeviceTypeName(type(), /*lower_case=*/true) + ":BFloat16";
  }

  const TrainingDevice& device_ = TrainingDeviceNamed(GetParam());
};

TEST_P(AutocastStateTest, AScopePutsAStateInForceAndBack) {
  const at::Tensor a = Random({4, 4});
  const AutocastState off = AutocastState::Capture();
  EXPECT_FALSE(off.enabled());
  EXPECT_EQ(off.ToString(), "off");
  const ScopedAutocast autocast(true, /*remember_casts=*/true, type());
  const AutocastState on = AutocastState::Capture();
  EXPECT_TRUE(on.enabled());
  EXPECT_EQ(on.ToString(), InWords());
  {
    const AutocastScope scope(off);
    EXPECT_EQ(TypeOfProduct(a, a), at::kFloat);
    const AutocastScope inner(on);
    EXPECT_EQ(TypeOfProduct(a, a), at::kBFloat16);
  }
  EXPECT_EQ(TypeOfProduct(a, a), at::kBFloat16);
  EXPECT_FALSE(on.Off().enabled());
}

TEST_P(AutocastStateTest, NoCastSurvivesAScope) {
  const ScopedAutocast autocast(true, /*remember_casts=*/true, type());
  const at::Tensor weight = Random({16, 16}).requires_grad_();
  const at::Tensor x = Random({2, 16});
  const AutocastState state = AutocastState::Capture();
  const Bytes live = device_.meter()->current();
  {
    const torch::NoGradGuard no_grad;
    const AutocastScope scope(state);
    at::matmul(x, weight);
    EXPECT_GT(device_.meter()->current(), live);
  }
  EXPECT_EQ(device_.meter()->current(), live);
  // The cast without a graph is gone: the weight gets its gradient.
  const AutocastScope scope(state);
  at::matmul(x, weight).sum().backward();
  EXPECT_TRUE(weight.grad().defined());
}

class AutocastStepTest : public AutocastStateTest {
 protected:
  Chain Profiled() {
    return ChainWithTimes(network_.model, network_.input, network_.target, device_.execution);
  }

  TestNetwork network_ = MakeTestNetwork("plain_cnn", device_);
};

// Every stage runs without a graph first, each time for an input that was cast for the evaluation.
TEST_P(AutocastStepTest, EveryParameterHasAGradientAfterEvaluationAndRecompute) {
  const ScopedAutocast autocast(true, /*remember_casts=*/true, type());
  const Chain chain = Profiled();
  Schedule schedule;
  const int last = chain.length() + 1;
  for (int l = 1; l < last; ++l) schedule.push_back(ForwardNoSave(l));
  for (int l = last; l >= 1; --l) {
    schedule.push_back(ForwardSave(l));
    schedule.push_back(Backward(l));
    if (l > 2) schedule.push_back(Discard(TensorKind::kActivation, l - 2));
    if (l > 2) schedule.push_back(ForwardNoSave(l - 2));
  }
  ASSERT_TRUE(Evaluator(chain).Run(schedule).ok()) << Evaluator(chain).Run(schedule).status();
  const auto executor =
      Executor::Create(&network_.model, chain, schedule, device_.execution).value();
  {
    const torch::NoGradGuard no_grad;
    at::Tensor x = network_.input;
    for (int l = 1; l < last; ++l) x = network_.model.stage(l).forward(x);
    EXPECT_EQ(x.scalar_type(), at::kBFloat16);
  }
  network_.model.ZeroGradients();
  const auto report = executor->Step(network_.input, network_.target);
  ASSERT_TRUE(report.ok()) << report.status();
  ExpectGradients(network_.model);
  EXPECT_GT(report->recomputed_forwards, 2 * chain.length() - 4);
}

TEST_P(AutocastStepTest, CastsOfWeightsAreInTheProfile) {
  const int64_t weight = network_.model.stage(3).parameters[0].numel();
  const int64_t image = network_.input.size(0) * 16 * 16;
  const Stage plain = Profiled().stage(3);
  const ScopedAutocast autocast(true, /*remember_casts=*/true, type());
  const Stage cast = Profiled().stage(3);
  // Convolution and ReLU in half the bytes, and the weight once more, in half its own.
  EXPECT_EQ(plain.output, Bytes(4 * 16 * image));
  EXPECT_EQ(cast.output, Bytes(2 * 16 * image));
  EXPECT_GE(cast.saved, cast.output + Bytes(2 * weight));
  EXPECT_GE(cast.forward_overhead, Bytes(2 * weight));
}

TEST_P(AutocastStepTest, TheProfileAndThePlanAreForIt) {
  ProfileOptions options;
  options.device = device_.execution;
  options.bytes_only = true;
  const auto profiled = [&] {
    return ProfileChain(network_.model, network_.input, network_.target, options).value();
  };
  const Profile plain = profiled();
  EXPECT_THAT(plain.device.math_settings, testing::Not(HasSubstr("autocast")));
  const ScopedAutocast autocast(true, /*remember_casts=*/true, type());
  const Profile cast = profiled();
  EXPECT_THAT(cast.device.math_settings, HasSubstr(" autocast=" + InWords()));
  const Chain& chain = std::get<Chain>(cast.problem);
  const auto executor =
      Executor::Create(&network_.model, chain, StoreAllSchedule(chain), device_.execution,
                       BatchShape::Of(network_.input, network_.target))
          .value();
  EXPECT_TRUE(executor->Step(network_.input, network_.target).ok());
  const ScopedAutocast off(false, /*remember_casts=*/true, type());
  const absl::Status status = executor->Step(network_.input, network_.target).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(), "autocast is off, the plan is for " + InWords());
}

INSTANTIATE_TEST_SUITE_P(Devices, AutocastStateTest, testing::Values("cpu", "test", "cuda"),
                         [](const auto& device) { return device.param; });
INSTANTIATE_TEST_SUITE_P(Devices, AutocastStepTest, testing::Values("cpu", "test", "cuda"),
                         [](const auto& device) { return device.param; });

}  // namespace
}  // namespace stowage
