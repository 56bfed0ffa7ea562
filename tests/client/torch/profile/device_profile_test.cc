// Profiles and steps on a device whose memory comes in blocks and whose work runs later.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <random>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "client/torch/execute/executor.h"
#include "client/torch/execute/plain_step.h"
#include "client/torch/profile/chain_profiler.h"
#include "solvers/planner.h"
#include "tests/client/device/test_device.h"
#include "tests/client/torch/test_networks.h"
#include "tests/client/torch/training_outcome.h"

namespace stowage {
namespace {

class DeviceProfileTest : public ::testing::TestWithParam<std::string> {
 protected:
  Chain Profiled(int warmup = 1) const {
    ProfileOptions options;
    options.bytes_only = true;
    options.warmup = warmup;
    options.device = device_.execution;
    const auto profile = ProfileChain(network_.model, network_.input, network_.target, options);
    EXPECT_TRUE(profile.ok()) << profile.status();
    return std::get<Chain>(profile.value().problem);
  }

  // Blocks of many sizes, some of which are free again and lie between others.
  std::vector<at::Tensor> DisturbTheCache(std::mt19937* random) const {
    if ((*random)() % 3 == 0) TestDevice::memory().Empty();
    std::vector<at::Tensor> blocks;
    for (int i = 0; i < 40; ++i) {
      const auto bytes = static_cast<int64_t>((*random)() % (i % 5 == 0 ? 3 << 20 : 20000));
      blocks.push_back(torch::empty({bytes}, at::TensorOptions(device_.device).dtype(at::kByte)));
    }
    for (size_t i = 0; i < blocks.size(); i += 1 + (*random)() % 2) blocks[i].reset();
    return blocks;
  }

  // Of tied parameters' gradients, which are none of the activations'.
  int64_t SumsInBlocks() const {
    const int64_t unit = device_.execution->granularity().value();
    int64_t bytes = 0;
    for (const at::Tensor& tied : network_.model.tied_parameters()) {
      if (!tied.requires_grad()) continue;
      bytes += (static_cast<int64_t>(tied.nbytes()) + unit - 1) / unit * unit;
    }
    return bytes;
  }

  const TrainingDevice& device_ = TrainingDeviceNamed("test");
  const TestNetwork network_ = MakeTestNetwork(GetParam(), device_);
};

std::string StructureOf(const Chain& chain) {
  std::string text;
  const auto add = [&text](const Stage& stage) {
    text += stage.name + ":" + std::to_string(stage.output.value()) + "," +
            std::to_string(stage.saved.value()) + "," +
            std::to_string(stage.output_gradient.value());
    for (const Bytes tensor : stage.saved_tensors) text += "+" + std::to_string(tensor.value());
    text += ";";
  };
  for (const Stage& stage : chain.spec().stages) add(stage);
  add(chain.spec().loss);
  return text;
}

// They are what a plan is asked for by: other bytes would be another network's.
TEST_P(DeviceProfileTest, BytesAreTheSameWhateverTheCacheHolds) {
  const std::string structure = StructureOf(Profiled());
  std::mt19937 random(7);
  for (int run = 0; run < 20; ++run) {
    const std::vector<at::Tensor> others = DisturbTheCache(&random);
    EXPECT_EQ(StructureOf(Profiled()), structure) << run;
    if (HasFailure()) return;
  }
}

// In a thread that has not run it, a matrix product takes a workspace, which no tensor of the network is.
TEST_P(DeviceProfileTest, ColdAsWarm) {
  const std::string warm = StructureOf(Profiled());
  std::string cold;
  std::thread([&] { cold = StructureOf(Profiled(/*warmup=*/0)); }).join();
  EXPECT_EQ(cold, warm);
}

TEST_P(DeviceProfileTest, BlocksOfPlannedStepsAreWithinThePrediction) {
  const Chain chain =
      ChainWithTimes(network_.model, network_.input, network_.target, device_.execution);
  for (const Solver* solver : SolversOf(ProblemKind::kChain)) {
    const auto frontier = solver->SolveFrontier(chain, SolveOptions());
    ASSERT_TRUE(frontier.ok()) << frontier.status();
    for (const auto& point : frontier->points()) {
      const auto executor = Executor::Create(
          &network_.model, chain, frontier->PlanAt(point.peak).schedule, device_.execution);
      ASSERT_TRUE(executor.ok()) << executor.status();
      const int64_t before = TestDevice::memory().stats().allocated_bytes;
      const auto report = (*executor)->Step(network_.input, network_.target);
      ASSERT_TRUE(report.ok()) << report.status();
      const int64_t blocks = TestDevice::memory().stats().allocated_peak_bytes - before -
                             SumsInBlocks() + chain.activation(0).value();
      EXPECT_LE(blocks, (*executor)->prediction().peak.value()) << solver->info().name;
      EXPECT_LE(report->peak.value(), blocks);
      EXPECT_EQ(report->peak_blocks.value(), TestDevice::memory().stats().allocated_peak_bytes);
      EXPECT_GE(report->peak_reserved, report->peak_blocks);
    }
  }
}

TEST_P(DeviceProfileTest, PlannedStepsWaitNoMoreOftenThanPlainOnes) {
  const Chain chain =
      ChainWithTimes(network_.model, network_.input, network_.target, device_.execution);
  const auto waits_of = [&](const auto& step) {
    step();
    const int64_t before = TestDevice::waits();
    step();
    return TestDevice::waits() - before;
  };
  const int64_t plain = waits_of([&] {
    ASSERT_TRUE(PlainStep(network_.model, network_.input, network_.target, device_.meter()).ok());
  });
  // For the loss; where forwards wait themselves, recomputed ones do, too.
  if (plain > 1) GTEST_SKIP() << "its forwards wait for the device";
  for (const Solver* solver : SolversOf(ProblemKind::kChain)) {
    const auto frontier = solver->SolveFrontier(chain, SolveOptions());
    ASSERT_TRUE(frontier.ok()) << frontier.status();
    const auto executor = Executor::Create(
        &network_.model, chain, frontier->PlanAt(frontier->points().front().peak).schedule,
        device_.execution);
    ASSERT_TRUE(executor.ok()) << executor.status();
    EXPECT_EQ(
        waits_of([&] { ASSERT_TRUE((*executor)->Step(network_.input, network_.target).ok()); }),
        plain)
        << solver->info().name;
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, DeviceProfileTest,
                         testing::Values("plain_cnn", "norm_cnn", "mlp", "frozen_prefix",
                                         "own_tensors", "moving_scale", "grad_kernels", "tied"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace stowage
