// The evaluator's accounting against the allocator's, and training by a schedule against plain
// training, on random schedules.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "client/torch/memory/tracking_allocator.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "tests/client/torch/execute/chain_training.h"
#include "tests/client/torch/random_schedule.h"

namespace stowage {
namespace {

class EvaluatorAllocatorTest : public testing::TestWithParam<std::string>, protected ChainTraining {
 protected:
  EvaluatorAllocatorTest() : ChainTraining(GetParam()) {}

  void ExpectExact(const Chain& chain, const Schedule& schedule, const Outcome& plain) {
    auto executor = Executor::Create(&network_.model, chain, schedule);
    ASSERT_TRUE(executor.ok()) << executor.status();
    ChainTraining::ExpectExact(executor->get(), schedule, plain);
  }
};

TEST_P(EvaluatorAllocatorTest, RandomSchedulesAreExact) {
  const Chain chain = Profiled();
  const Outcome plain = Plain();

  const int schedules = GetParam() == "resnet18" ? 24 : 120;
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
  TrackingAllocator* meter = TrackingAllocator::Get();
  const Chain chain = Profiled();
  const Outcome plain = Plain();
  const Bytes sums = TiedSums(network_.model);
  std::mt19937 random(17);
  for (int i = 0; i < 5; ++i) {
    const Schedule schedule = Disturb(chain, RandomPersistentSchedule(chain, &random), i, &random);
    SCOPED_TRACE(Text(schedule));
    auto executor = Executor::Create(&network_.model, chain, schedule).value();
    Rewind();
    const Bytes live = meter->current();
    const Bytes top = live + sums - chain.activation(0) + executor->prediction().peak;

    meter->SetLimit(top - Bytes(64));
    const auto failed = executor->Step(network_.input, network_.target);
    meter->ClearLimit();
    EXPECT_EQ(failed.status().code(), absl::StatusCode::kResourceExhausted) << failed.status();
    EXPECT_EQ(meter->current(), live);
    EXPECT_TRUE(BufferState::Capture(network_.model.buffers()) == buffers_);
    EXPECT_TRUE(RandomState::Capture() == random_);

    // The next step, with nothing put right but the gradients.
    network_.model.ZeroGradients();
    meter->SetLimit(top);
    const auto report = executor->Step(network_.input, network_.target);
    meter->ClearLimit();
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->peak, executor->prediction().peak);
    ExpectEqual(plain, After(*report));
  }
}

TEST_P(EvaluatorAllocatorTest, GradientsAccumulateOverSteps) {
  const Chain chain = Profiled();
  std::mt19937 random(5);
  const Schedule schedule = RandomPersistentSchedule(chain, &random);
  auto executor = Executor::Create(&network_.model, chain, schedule);
  ASSERT_TRUE(executor.ok()) << executor.status();
  Rewind();
  ASSERT_TRUE(PlainStep(network_.model, network_.input, network_.target).ok());
  const Outcome plain = After(PlainStep(network_.model, network_.input, network_.target).value());
  Rewind();
  ASSERT_TRUE((*executor)->Step(network_.input, network_.target).ok());
  ExpectEqual(plain, After((*executor)->Step(network_.input, network_.target).value()));
}

INSTANTIATE_TEST_SUITE_P(Networks, EvaluatorAllocatorTest, testing::ValuesIn(TestNetworkNames()),
                         [](const auto& network) { return network.param; });

}  // namespace
}  // namespace stowage
