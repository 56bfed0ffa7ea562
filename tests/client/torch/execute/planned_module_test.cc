// Training loops over a PlannedModule against the same loops over the stages as they are.
#include "client/torch/execute/planned_module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>
#include <tuple>
#include <vector>

#include "solvers/schedule/instance.h"
#include "tests/client/torch/autocast.h"
#include "tests/client/torch/execute/planned_module_fixture.h"
#include "tests/client/torch/network_case.h"

namespace stowage {
namespace {

using testing::HasSubstr;

class PlannedModuleTest : public PlannedTraining, public testing::WithParamInterface<NetworkCase> {
 protected:
  PlannedModuleTest()
      : PlannedTraining(std::get<0>(GetParam()), TrainingDeviceNamed(std::get<1>(GetParam()))) {}

  static std::string name() { return std::get<0>(GetParam()); }
};

TEST_P(PlannedModuleTest, StepsAreThoseOfThePlainLoopWithinThePrediction) {
  const Outcome plain = AfterStep(plain_);
  if (name() != "own_tensors") ExpectGradients(model_);
  std::vector<Schedule> schedules = {StoreAllSchedule(chain_), RecomputeAll(chain_)};
  for (unsigned seed = 0; seed < 10; ++seed) schedules.push_back(RandomSchedule(seed));
  for (const Schedule& schedule : schedules) {
    const auto planned = Make(schedule);
    start_.Rewind();
    const Bytes base = meter_->current() + TiedSums(model_) - chain_.activation(0);
    meter_->ResetPeak();
    ExpectEqual(plain, AfterStep(ForwardOf(planned.get())));
    // The caller holds the loss, the engine its gradient, all the time.
    EXPECT_LE(meter_->peak() - base, planned->prediction().peak + Bytes(8));
    if (HasFailure()) return;
  }
}

TEST_P(PlannedModuleTest, GradientsOfScaledLossesAccumulate) {
  ExpectLikePlain([this](const Forward& forward) {
    double sum = 0;
    for (const double scale : {0.25, 3.0, 1.0}) {
      const at::Tensor loss = LossOf(forward);
      (loss * scale).backward();
      sum += loss.item<double>();
    }
    return sum;
  });
}

TEST_P(PlannedModuleTest, ForwardsMayComeBeforeBackwardsAndEvaluationsBetween) {
  ExpectLikePlain([this](const Forward& forward) {
    const at::Tensor first = LossOf(forward);
    double sum = 0;
    {
      const torch::NoGradGuard no_grad;
      const Bytes live = meter_->current();
      sum += LossOf(forward).item<double>();
      EXPECT_EQ(meter_->current(), live);
    }
    const at::Tensor second = LossOf(forward);
    second.backward();
    first.backward();
    return sum + first.item<double>() + second.item<double>();
  });
}

TEST_P(PlannedModuleTest, AGraphThatIsKeptMayBeGoneThroughAgain) {
  ExpectLikePlain([this](const Forward& forward) {
    const at::Tensor loss = LossOf(forward);
    loss.backward({}, /*retain_graph=*/true);
    loss.backward();
    EXPECT_THAT(ErrorOf([&] { loss.backward(); }), HasSubstr("a second time"));
    return loss.item<double>();
  });
}

TEST_P(PlannedModuleTest, UnderAutocastAsThePlainLoop) {
  if (!training_device_.has_autocast) GTEST_SKIP() << "LibTorch has no autocast for it";
  // See TrainingEqualityTest.
  const bool remember = name() != "tied";
  const auto train = [this, remember](const Forward& forward) {
    at::Tensor loss;
    {
      const ScopedAutocast autocast(true, remember, training_device_.device.type());
      loss = LossOf(forward);
    }
    loss.backward();
    return loss.item<double>();
  };
  const Outcome plain = After([&] { return train(plain_); });
  if (name() != "own_tensors") ExpectGradients(model_);
  const auto planned = Make(RecomputeAll(chain_));
  ExpectEqual(plain, After([&] { return train(ForwardOf(planned.get())); }));
}

INSTANTIATE_TEST_SUITE_P(Networks, PlannedModuleTest,
                         testing::Combine(testing::ValuesIn(TestNetworkNames()),
                                          testing::Values("cpu")),
                         NameOfNetworkCase);
INSTANTIATE_TEST_SUITE_P(OnOtherDevices, PlannedModuleTest,
                         testing::Combine(testing::Values("norm_cnn", "mlp", "tied", "transformer"),
                                          testing::Values("test", "cuda")),
                         NameOfNetworkCase);

}  // namespace
}  // namespace stowage
