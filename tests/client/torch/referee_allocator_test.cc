// The referee's accounting against the allocator's, and training by a schedule against plain
// training, on random schedules.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <variant>

#include "client/torch/chain_executor.h"
#include "client/torch/chain_profiler.h"
#include "client/torch/model_state.h"
#include "client/torch/plain_step.h"
#include "client/torch/state_digest.h"
#include "client/torch/tracking_allocator.h"
#include "solvers/plan/simulate.h"
#include "solvers/plan/store_all_schedule.h"
#include "tests/client/torch/random_schedule.h"
#include "tests/client/torch/test_networks.h"

namespace stowage {
namespace {

// All that a step leaves behind.
struct Outcome {
  double loss;
  Digest gradients;
  Digest buffers;
  Digest parameters;
  RandomState random;
};

class RefereeAllocatorTest : public testing::TestWithParam<std::string> {
 protected:
  RefereeAllocatorTest()
      : network_(MakeTestNetwork(GetParam())),
        buffers_(BufferState::Capture(network_.model.buffers())),
        random_(RandomState::Capture()) {}

  void Rewind() {
    buffers_.Restore();
    random_.Restore();
    network_.model.ZeroGradients();
  }

  Outcome After(const StepReport& report) const {
    return {report.loss, GradientDigest(network_.model), BufferDigest(network_.model),
            ParameterDigest(network_.model), RandomState::Capture()};
  }

  void ExpectEqual(const Outcome& plain, const Outcome& planned) const {
    EXPECT_EQ(plain.loss, planned.loss);
    EXPECT_EQ(plain.gradients.ToHex(), planned.gradients.ToHex());
    EXPECT_EQ(plain.buffers.ToHex(), planned.buffers.ToHex());
    EXPECT_EQ(plain.parameters.ToHex(), planned.parameters.ToHex());
    EXPECT_TRUE(plain.random == planned.random);
  }

  Chain Profiled() {
    ProfileOptions options;
    options.bytes_only = true;
    auto profile = ProfileChain(network_.model, network_.input, network_.target, options);
    EXPECT_TRUE(profile.ok()) << profile.status();
    return std::get<Chain>(profile->problem);
  }

  void ExpectExact(const Chain& chain, const Schedule& schedule, const Outcome& plain) {
    auto executor = ChainExecutor::Create(&network_.model, chain, schedule);
    ASSERT_TRUE(executor.ok()) << executor.status();
    Rewind();
    auto report = (*executor)->Step(network_.input, network_.target);
    ASSERT_TRUE(report.ok()) << report.status();
    ExpectEqual(plain, After(*report));
    const Simulation simulated = Simulate(chain, schedule).value();
    EXPECT_EQ(report->peak.value(), simulated.peak.value());
    EXPECT_EQ(report->recomputed_forwards, simulated.recomputed_forwards);
    EXPECT_EQ(report->forwards, simulated.recomputed_forwards + chain.length() + 1);
    size_t carried_out = 0;
    for (const int count : report->counts) carried_out += static_cast<size_t>(count);
    EXPECT_EQ(carried_out, schedule.size());
  }

  TestNetwork network_;
  BufferState buffers_;
  RandomState random_;
};

std::string Text(const Schedule& schedule) {
  std::string text;
  for (const Instruction& instruction : schedule) text += ToString(instruction) + "\n";
  return text;
}

TEST_P(RefereeAllocatorTest, RandomSchedulesAreExact) {
  const Chain chain = Profiled();
  Rewind();
  auto plain_report = PlainStep(network_.model, network_.input, network_.target);
  ASSERT_TRUE(plain_report.ok()) << plain_report.status();
  const Outcome plain = After(*plain_report);

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
    recomputes += Simulate(chain, schedule)->recomputed_forwards;
    disturbed += static_cast<int>(schedule.size() - persistent.size());
    if (HasFailure()) return;
  }
  EXPECT_GT(recomputes, schedules);
  EXPECT_GT(disturbed, schedules);
}

TEST_P(RefereeAllocatorTest, ALimitAtThePeakHoldsAnd64BytesLessDoesNot) {
  TrackingAllocator* meter = TrackingAllocator::Get();
  const Chain chain = Profiled();
  Rewind();
  const Outcome plain = After(PlainStep(network_.model, network_.input, network_.target).value());
  std::mt19937 random(17);
  for (int i = 0; i < 5; ++i) {
    const Schedule schedule = Disturb(chain, RandomPersistentSchedule(chain, &random), i, &random);
    SCOPED_TRACE(Text(schedule));
    auto executor = ChainExecutor::Create(&network_.model, chain, schedule).value();
    Rewind();
    const Bytes live = meter->current();
    const Bytes top = live - chain.activation(0) + executor->prediction().peak;

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

TEST_P(RefereeAllocatorTest, GradientsAccumulateOverSteps) {
  const Chain chain = Profiled();
  std::mt19937 random(5);
  const Schedule schedule = RandomPersistentSchedule(chain, &random);
  auto executor = ChainExecutor::Create(&network_.model, chain, schedule);
  ASSERT_TRUE(executor.ok()) << executor.status();
  Rewind();
  ASSERT_TRUE(PlainStep(network_.model, network_.input, network_.target).ok());
  const Outcome plain = After(PlainStep(network_.model, network_.input, network_.target).value());
  Rewind();
  ASSERT_TRUE((*executor)->Step(network_.input, network_.target).ok());
  ExpectEqual(plain, After((*executor)->Step(network_.input, network_.target).value()));
}

INSTANTIATE_TEST_SUITE_P(Networks, RefereeAllocatorTest, testing::ValuesIn(TestNetworkNames()),
                         [](const auto& network) { return network.param; });

}  // namespace
}  // namespace stowage
