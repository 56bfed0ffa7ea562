// Training by the schedules of every solver against plain training, bit for bit, with and without
// autocast, and measured memory against the budget and the evaluator.
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "client/torch/execute/executor.h"
#include "client/torch/execute/plain_step.h"
#include "solvers/planner.h"
#include "solvers/schedule/evaluator.h"
#include "tests/client/torch/autocast.h"
#include "tests/client/torch/measured_peaks.h"
#include "tests/client/torch/random_schedule.h"
#include "tests/client/torch/test_networks.h"
#include "tests/client/torch/training_outcome.h"

namespace stowage {
namespace {

constexpr int kBudgets = 50;       // of each solver
constexpr size_t kSchedules = 50;  // different ones, at least

using Case = std::tuple<std::string, bool, std::string>;  // network, autocast, device

class TrainingEqualityTest : public testing::TestWithParam<Case> {
 protected:
  // Plain training sums up the gradients of a tied weight's uses in the type that it is cast to where it
  // remembers the cast from one use to the next.
  TrainingEqualityTest()
      : autocast_(autocast() && device_.missing.empty() && device_.has_autocast,
                  /*remember=*/name() != "tied", device_.device.type()),
        network_(MakeTestNetwork(name(), device_)),
        chain_(ChainWithTimes(network_.model, network_.input, network_.target, device_.execution)),
        start_(network_.model, device_.device) {
    start_.Rewind();
    const auto report = PlainStep(network_.model, network_.input, network_.target, device_.meter());
    EXPECT_TRUE(report.ok()) << report.status();
    plain_ = Outcome::Of(network_.model, report.value().loss, device_.device);
    // Of that network a stage gives no gradient to those before it.
    if (name() != "own_tensors") ExpectGradients(network_.model);
  }

  void SetUp() override {
    SKIP_IF_MISSING(device_);
    if (autocast() && !device_.has_autocast) GTEST_SKIP() << "LibTorch has no autocast for it";
  }

  static std::string name() { return std::get<0>(GetParam()); }
  static bool autocast() { return std::get<1>(GetParam()); }

  void ExpectLikePlain(const Schedule& schedule, Bytes budget) {
    if (!seen_.insert(ScheduleDigest(schedule).ToHex()).second) return;
    const auto executor = Executor::Create(&network_.model, chain_, schedule, device_.execution);
    ASSERT_TRUE(executor.ok()) << executor.status();
    Later<MeasuredStep> measured;
    (*executor)->MeasureInto(&measured);
    start_.Rewind();
    const auto report = (*executor)->Step(network_.input, network_.target);
    ASSERT_TRUE(report.ok()) << report.status();
    ExpectEqual(*plain_, Outcome::Of(network_.model, report->loss, device_.device));
    if (device_.exact) {
      EXPECT_EQ(report->peak, (*executor)->prediction().peak);
    }
    EXPECT_LE(report->peak, (*executor)->prediction().peak);
    EXPECT_LE(report->peak, budget);
    std::vector<TimelinePoint> planned;
    ASSERT_TRUE(Evaluator(chain_).Run(schedule, &planned).ok());
    ExpectPeaksAsPredicted(schedule, measured, planned, chain_.activation(0));
    EXPECT_EQ(report->recomputed_forwards, (*executor)->prediction().recomputed_forwards);
  }

  const TrainingDevice& device_ = TrainingDeviceNamed(std::get<2>(GetParam()));
  ScopedAutocast autocast_;
  TestNetwork network_;
  Chain chain_;
  Rewinder start_;
  std::optional<Outcome> plain_;
  std::set<std::string> seen_;
};

TEST_P(TrainingEqualityTest, SchedulesOfEverySolverTrainAlike) {
  for (const Solver* solver : SolversOf(ProblemKind::kChain)) {
    SCOPED_TRACE(solver->info().name);
    const auto frontier = solver->SolveFrontier(chain_, SolveOptions());
    ASSERT_TRUE(frontier.ok()) << frontier.status();
    const Bytes least = frontier->points().front().peak;
    const Bytes most = frontier->points().back().peak;
    for (int i = 0; i < kBudgets; ++i) {
      const Bytes budget = least + Bytes((most - least).value() * i / (kBudgets - 1));
      SCOPED_TRACE(budget.value());
      ExpectLikePlain(frontier->PlanAt(budget).schedule, budget);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(seen_.size(), 3U);
  std::mt19937 random(31);
  for (int i = 0; seen_.size() < kSchedules; ++i) {
    const Schedule schedule =
        Disturb(chain_, RandomPersistentSchedule(chain_, &random), i % 5, &random);
    SCOPED_TRACE(Text(schedule));
    ExpectLikePlain(schedule, Evaluator(chain_).Run(schedule)->peak);
    if (HasFailure()) return;
  }
}

std::string NameOf(const testing::TestParamInfo<Case>& test) {
  const std::string& device = std::get<2>(test.param);
  return std::get<0>(test.param) + (std::get<1>(test.param) ? "_autocast" : "") +
         (device == "cpu" ? "" : "_" + device);
}

INSTANTIATE_TEST_SUITE_P(
    Networks, TrainingEqualityTest,
    testing::Combine(testing::Values("plain_cnn", "norm_cnn", "mlp", "frozen_prefix", "own_tensors",
                                     "moving_scale", "grad_kernels", "tied", "early_ends"),
                     testing::Bool(), testing::Values("cpu")),
    NameOf);

// The layer norm of LibTorch 1.13 takes no input that was cast with weights that were not.
INSTANTIATE_TEST_SUITE_P(WithoutAutocast, TrainingEqualityTest,
                         testing::Combine(testing::Values("transformer"), testing::Values(false),
                                          testing::Values("cpu")),
                         NameOf);

INSTANTIATE_TEST_SUITE_P(OnOtherDevices, TrainingEqualityTest,
                         testing::Combine(testing::Values("plain_cnn", "norm_cnn", "mlp",
                                                          "frozen_prefix", "own_tensors",
                                                          "moving_scale", "grad_kernels", "tied",
                                                          "early_ends", "transformer"),
                                          testing::Values(false), testing::Values("test", "cuda")),
                         NameOf);

// Of the test device where LibTorch lists what casts (tests/client/device/device_casts.h).
INSTANTIATE_TEST_SUITE_P(AutocastOnOtherDevices, TrainingEqualityTest,
                         testing::Combine(testing::Values("norm_cnn", "mlp", "tied", "transformer"),
                                          testing::Values(true), testing::Values("test", "cuda")),
                         NameOf);

}  // namespace
}  // namespace stowage
