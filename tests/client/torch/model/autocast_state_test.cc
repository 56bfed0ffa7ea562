#include "client/torch/model/autocast_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>
#include <utility>
#include <variant>

#include "client/torch/execute/executor.h"
#include "client/torch/memory/tracking_allocator.h"
#include "client/torch/model/batch_shape.h"
#include "client/torch/profile/chain_profiler.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "tests/client/torch/autocast.h"
#include "tests/client/torch/test_networks.h"
#include "tests/client/torch/training_outcome.h"

namespace stowage {
namespace {

using testing::HasSubstr;

at::ScalarType TypeOfProduct(const at::Tensor& a, const at::Tensor& b) {
  return at::matmul(a, b).scalar_type();
}

TEST(AutocastStateTest, AScopePutsAStateInForceAndBack) {
  const at::Tensor a = torch::randn({4, 4});
  const AutocastState off = AutocastState::Capture();
  EXPECT_FALSE(off.enabled());
  EXPECT_EQ(off.ToString(), "off");
  const ScopedAutocast autocast(true);
  const AutocastState on = AutocastState::Capture();
  EXPECT_TRUE(on.enabled());
  EXPECT_EQ(on.ToString(), "cpu:BFloat16");
  {
    const AutocastScope scope(off);
    EXPECT_EQ(TypeOfProduct(a, a), at::kFloat);
    const AutocastScope inner(on);
    EXPECT_EQ(TypeOfProduct(a, a), at::kBFloat16);
  }
  EXPECT_EQ(TypeOfProduct(a, a), at::kBFloat16);
  EXPECT_FALSE(on.Off().enabled());
}

TEST(AutocastStateTest, NoCastSurvivesAScope) {
  const ScopedAutocast autocast(true);
  const at::Tensor weight = torch::randn({16, 16}).requires_grad_();
  const at::Tensor x = torch::randn({2, 16});
  const AutocastState state = AutocastState::Capture();
  const Bytes live = TrackingAllocator::Get()->current();
  {
    const torch::NoGradGuard no_grad;
    const AutocastScope scope(state);
    at::matmul(x, weight);
    EXPECT_GT(TrackingAllocator::Get()->current(), live);
  }
  EXPECT_EQ(TrackingAllocator::Get()->current(), live);
  // The cast without a graph is gone: the weight gets its gradient.
  const AutocastScope scope(state);
  at::matmul(x, weight).sum().backward();
  EXPECT_TRUE(weight.grad().defined());
}

class AutocastStepTest : public testing::Test {
 protected:
  Chain Profiled() { return ChainWithTimes(network_.model, network_.input, network_.target); }

  TestNetwork network_ = MakeTestNetwork("plain_cnn");
};

// Every stage runs without a graph first, each time for an input that was cast for the evaluation.
TEST_F(AutocastStepTest, EveryParameterHasAGradientAfterEvaluationAndRecompute) {
  const ScopedAutocast autocast(true);
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
  const auto executor = Executor::Create(&network_.model, chain, schedule).value();
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

TEST_F(AutocastStepTest, CastsOfWeightsAreInTheProfile) {
  const int64_t weight = network_.model.stage(3).parameters[0].numel();
  const int64_t image = network_.input.size(0) * 16 * 16;
  const Stage plain = Profiled().stage(3);
  const ScopedAutocast autocast(true);
  const Stage cast = Profiled().stage(3);
  // Convolution and ReLU in half the bytes, and the weight once more, in half its own.
  EXPECT_EQ(plain.output, Bytes(4 * 16 * image));
  EXPECT_EQ(cast.output, Bytes(2 * 16 * image));
  EXPECT_GE(cast.saved, cast.output + Bytes(2 * weight));
  EXPECT_GE(cast.forward_overhead, Bytes(2 * weight));
}

TEST_F(AutocastStepTest, TheProfileAndThePlanAreForIt) {
  ProfileOptions options;
  options.bytes_only = true;
  const auto profiled = [&] {
    return ProfileChain(network_.model, network_.input, network_.target, options).value();
  };
  const Profile plain = profiled();
  EXPECT_THAT(plain.device.math_settings, testing::Not(HasSubstr("autocast")));
  const ScopedAutocast autocast(true);
  const Profile cast = profiled();
  EXPECT_THAT(cast.device.math_settings, HasSubstr(" autocast=cpu:BFloat16"));
  const Chain& chain = std::get<Chain>(cast.problem);
  const auto executor = Executor::Create(&network_.model, chain, StoreAllSchedule(chain), nullptr,
                                         BatchShape::Of(network_.input, network_.target))
                            .value();
  EXPECT_TRUE(executor->Step(network_.input, network_.target).ok());
  const ScopedAutocast off(false);
  const absl::Status status = executor->Step(network_.input, network_.target).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(), "autocast is off, the plan is for cpu:BFloat16");
}

}  // namespace
}  // namespace stowage
