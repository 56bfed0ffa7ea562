// The evaluator's accounting against the allocator's, and training by a schedule against plain
// training, on random schedules.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>

#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "tests/client/device/training_devices.h"
#include "tests/client/torch/execute/chain_training.h"
#include "tests/client/torch/network_case.h"
#include "tests/client/torch/random_schedule.h"

namespace stowage {
namespace {

class EvaluatorAllocatorTest : public testing::TestWithParam<NetworkCase>, protected ChainTraining {
 protected:
  EvaluatorAllocatorTest()
      : ChainTraining(std::get<0>(GetParam()), TrainingDeviceNamed(std::get<1>(GetParam()))) {}
  ~EvaluatorAllocatorTest() override { training_device_.ClearLimit(); }
  void SetUp() override { SKIP_IF_MISSING(training_device_); }

  std::unique_ptr<Executor> Make(const Chain& chain, const Schedule& schedule) {
    auto executor = Executor::Create(&network_.model, chain, schedule, training_device_.execution);
    EXPECT_TRUE(executor.ok()) << executor.status();
    return std::move(executor).value();
  }

  void ExpectExact(const Chain& chain, const Schedule& schedule, const Outcome& plain) {
    ChainTraining::ExpectExact(Make(chain, schedule).get(), schedule, plain);
  }
};

TEST_P(EvaluatorAllocatorTest, RandomSchedulesAreExact) {
  const Chain chain = Profiled();
  const Outcome plain = Plain();

  const int schedules = std::get<0>(GetParam()) == "resnet18" || !training_device_.exact ? 24 : 120;
  std::mt19937 random(99);
  int recomputes = 0;
  int disturbed = 0;
  ExpectExact(chain, StoreAllSchedule(chain), plain);
  for (int i = 0; i < schedules; ++i) {
    const Schedule persistent = RandomPersistentSchedule(chain, &random);
    const Schedule schedule = Disturb(chain, persistent, i % 8, &random);
    SCOPED_TRACE(Text(schedule));
    ExpectExact(chain, schedule, plain);
    recomputes += Evaluator(chain).Run(schedule).value().recomputed_forwards;
    disturbed += static_cast<int>(schedule.size() - persistent.size());
    if (HasFailure()) return;
  }
  EXPECT_GT(recomputes, schedules);
  EXPECT_GT(disturbed, schedules);
}

TEST_P(EvaluatorAllocatorTest, AnActivationMayBeThereTwice) {
  const Chain chain = Profiled();
  const Outcome plain = Plain();
  for (int l = 1; l <= chain.length(); ++l) {
    Schedule schedule = StoreAllSchedule(chain);
    // Before the backward of stage l + 1, whose graph has seen the one inside saved l.
    schedule.insert(schedule.end() - l - 1, ForwardNoSave(l));
    SCOPED_TRACE(Text(schedule));
    ExpectExact(chain, schedule, plain);
  }
}

TEST_P(EvaluatorAllocatorTest, ALimitAtThePeakHoldsAnd64BytesLessDoesNot) {
  if (!training_device_.limits_memory()) GTEST_SKIP() << "no limit to the byte";
  const Chain chain = Profiled();
  const Outcome plain = Plain();
  const Bytes sums = TiedSums(network_.model);
  std::mt19937 random(17);
  for (int i = 0; i < 5; ++i) {
    const Schedule schedule = Disturb(chain, RandomPersistentSchedule(chain, &random), i, &random);
    SCOPED_TRACE(Text(schedule));
    const auto executor = Make(chain, schedule);
    Rewind();
    const Bytes live = training_device_.live();
    // Elsewhere what is summed up is in whole blocks, too, and some are larger than they need to be; and this step may need
    // fewer of those that are in the peak.
    const Bytes blocks(training_device_.exact ? 0 : 64 << 10);
    const Bytes most = sums - chain.activation(0) + executor->prediction().peak;

    training_device_.LimitMemory(most - Bytes(training_device_.exact ? 64 : most.value() / 2));
    const auto failed = executor->Step(network_.input, network_.target);
    training_device_.ClearLimit();
    EXPECT_EQ(failed.status().code(), absl::StatusCode::kResourceExhausted) << failed.status();
    EXPECT_EQ(training_device_.live(), live);
    EXPECT_TRUE(BufferState::Capture(network_.model.buffers()) == buffers_);
    EXPECT_TRUE(RandomState::Capture(training_device_.device) == random_);

    // The next step, with nothing put right but the gradients.
    network_.model.ZeroGradients();
    training_device_.LimitMemory(most + blocks);
    const auto report = executor->Step(network_.input, network_.target);
    training_device_.ClearLimit();
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_LE(report->peak, executor->prediction().peak);
    if (training_device_.exact) {
      EXPECT_EQ(report->peak, executor->prediction().peak);
    }
    ExpectEqual(plain, After(*report));
  }
}

TEST_P(EvaluatorAllocatorTest, GradientsAccumulateOverSteps) {
  const Chain chain = Profiled();
  std::mt19937 random(5);
  const auto executor = Make(chain, RandomPersistentSchedule(chain, &random));
  Rewind();
  const auto plain_step = [&] {
    return PlainStep(network_.model, network_.input, network_.target, meter_).value();
  };
  plain_step();
  const Outcome plain = After(plain_step());
  Rewind();
  ASSERT_TRUE(executor->Step(network_.input, network_.target).ok());
  ExpectEqual(plain, After(executor->Step(network_.input, network_.target).value()));
}

INSTANTIATE_TEST_SUITE_P(Networks, EvaluatorAllocatorTest,
                         testing::Combine(testing::ValuesIn(TestNetworkNames()),
                                          testing::Values("cpu")),
                         NameOfNetworkCase);
INSTANTIATE_TEST_SUITE_P(OnOtherDevices, EvaluatorAllocatorTest,
                         testing::Combine(testing::Values("norm_cnn", "mlp", "moving_scale",
                                                          "transformer", "early_ends", "tied"),
                                          testing::Values("test", "cuda")),
                         NameOfNetworkCase);

}  // namespace
}  // namespace stowage
