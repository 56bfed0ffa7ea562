// Profiles and steps on a device whose memory comes in blocks and whose work runs later.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "client/torch/execute/executor.h"
#include "client/torch/execute/plain_step.h"
#include "client/torch/execute/planned_module.h"
#include "client/torch/offload/device_use.h"
#include "client/torch/offload/stage_timer.h"
#include "client/torch/profile/chain_profiler.h"
#include "client/torch/profile/cost_meter.h"
#include "client/torch/profile/graph_profiler.h"
#include "solvers/model/canonical.h"
#include "solvers/planner.h"
#include "solvers/schedule/instance.h"
#include "tests/client/device/training_devices.h"
#include "tests/client/device/wait_count.h"
#include "tests/client/torch/held_backward.h"
#include "tests/client/torch/network_case.h"
#include "tests/client/torch/random_schedule.h"
#include "tests/client/torch/test_graphs.h"
#include "tests/client/torch/test_networks.h"
#include "tests/client/torch/training_outcome.h"

namespace stowage {
namespace {

// Blocks of many sizes, some of which are free again and lie between others.
std::vector<at::Tensor> DisturbTheCache(const TrainingDevice& on, std::mt19937* random) {
  const c10::Device device = on.device;
  if ((*random)() % 3 == 0) on.execution->GiveBackUnused();
  std::vector<at::Tensor> blocks;
  for (int i = 0; i < 40; ++i) {
    const auto bytes = static_cast<int64_t>((*random)() % (i % 5 == 0 ? 3 << 20 : 20000));
    blocks.push_back(torch::empty({bytes}, at::TensorOptions(device).dtype(at::kByte)));
  }
  for (size_t i = 0; i < blocks.size(); i += 1 + (*random)() % 2) blocks[i].reset();
  return blocks;
}

// Of tied parameters' gradients, which are none of the activations'.
Bytes SumsInBlocks(const TrainingDevice& device, const ModelTensors& model) {
  const int64_t unit = device.execution->granularity().value();
  Bytes bytes;
  for (const at::Tensor& tied : model.tied_parameters()) {
    if (!tied.requires_grad()) continue;
    bytes += Bytes((static_cast<int64_t>(tied.nbytes()) + unit - 1) / unit * unit);
  }
  return bytes;
}

// Most that blocks take while `step` runs, above what they take before.
template <class Step>
Bytes BlocksOf(const TrainingDevice& device, const Step& step) {
  const Bytes before = device.meter()->block_bytes();
  device.meter()->ResetPeak();
  step();
  return device.meter()->peak_block_bytes() - before;
}

// Before a run or in it: autograd's thread for the device lets go later.
TEST(CostMeterTest, WhatABackwardLeavesOnTheDevicesThreadIsNobodysCost) {
  const TrainingDevice& device = TrainingDeviceNamed("test");
  WaitForBackwards(device.device);  // makes what it keeps
  const std::unique_ptr<StageTimer> timer = device.execution->MakeTimer();
  CostMeter costs(device.meter(), timer.get(), device.execution->granularity(), device.device);
  Nanos time;
  const auto nothing = [] {};
  {
    const HeldBackward before(device.device);
    EXPECT_EQ(costs.Measure(nothing, &time).kept, Bytes(0));
    EXPECT_TRUE(before.has_ended());
  }
  std::optional<HeldBackward> within;
  const auto begins = [&] { within.emplace(device.device); };
  EXPECT_EQ(costs.Measure(begins, &time).kept, Bytes(0));
  EXPECT_TRUE(within->has_ended());
  costs.Finish();
}

// As threads of c10d do of buckets of gradients, which ranks have summed.
TEST(CostMeterTest, WhatAnotherThreadFreesMeanwhileIsNotTakenAway) {
  const TrainingDevice& device = TrainingDeviceNamed("cpu");
  const std::unique_ptr<StageTimer> timer = MakeSteadyTimer();
  CostMeter costs(device.meter(), timer.get(), Bytes(1), device.device);
  at::Tensor of_another = torch::empty({1000});
  at::Tensor kept;
  Nanos time;
  const Cost cost = costs.Measure(
      [&] {
        std::thread([&] { of_another.reset(); }).join();
        kept = torch::empty({100});
        torch::empty({50});
      },
      &time);
  EXPECT_EQ(cost.kept, Bytes(400));
  EXPECT_EQ(cost.kept_blocks, Bytes(400));
  EXPECT_EQ(cost.overhead(), Bytes(200));
  const auto in_a_thread = [&] { std::thread([&] { of_another = torch::empty({20}); }).join(); };
  EXPECT_EQ(costs.Measure(in_a_thread, &time).kept, Bytes(80));
  costs.Finish();
}

class DeviceProfileTest : public ::testing::TestWithParam<NetworkCase> {
 protected:
  void SetUp() override { SKIP_IF_MISSING(device_); }

  Profile Profiled(int warmup = 1) const {
    ProfileOptions options;
    options.bytes_only = true;
    options.warmup = warmup;
    options.device = device_.execution;
    auto profile = ProfileChain(network_.model, network_.input, network_.target, options);
    EXPECT_TRUE(profile.ok()) << profile.status();
    return std::move(profile).value();
  }

  const TrainingDevice& device_ = TrainingDeviceNamed(std::get<1>(GetParam()));
  const TestNetwork network_ = MakeTestNetwork(std::get<0>(GetParam()), device_);
};

// So that a difference says where it is.
std::string StructureOf(const Profile& profile) {
  const Chain& chain = std::get<Chain>(profile.problem);
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
TEST_P(DeviceProfileTest, TheKeyIsTheSameWhateverTheCacheHolds) {
  const Profile first = Profiled();
  std::mt19937 random(7);
  for (int run = 0; run < 20; ++run) {
    const std::vector<at::Tensor> others = DisturbTheCache(device_, &random);
    const Profile again = Profiled();
    EXPECT_EQ(StructureOf(again), StructureOf(first)) << run;
    EXPECT_EQ(MakePlanKey(again, {}), MakePlanKey(first, {})) << run;
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
      Bytes peak;
      const Bytes blocks =
          chain.activation(0) - SumsInBlocks(device_, network_.model) + BlocksOf(device_, [&] {
            const auto report = (*executor)->Step(network_.input, network_.target);
            ASSERT_TRUE(report.ok()) << report.status();
            EXPECT_EQ(report->peak_blocks, device_.meter()->peak_block_bytes());
            EXPECT_GE(report->peak_reserved, report->peak_blocks);
            peak = report->peak;
          });
      EXPECT_LE(blocks, (*executor)->prediction().peak) << solver->info().name;
      EXPECT_LE(peak, blocks);
    }
  }
}

TEST_P(DeviceProfileTest, BlocksOfPlannedModulesAreWithinThePrediction) {
  const ChainModel& model = network_.model;
  const Chain chain = ChainWithTimes(model, network_.input, network_.target, device_.execution);
  std::mt19937 random(3);
  for (int i = 0; i < 6; ++i) {
    const Schedule schedule = Disturb(chain, RandomPersistentSchedule(chain, &random), i, &random);
    const auto planned = PlannedModule::Create(&model, chain, schedule, device_.execution).value();
    const Bytes blocks =
        chain.activation(0) - SumsInBlocks(device_, model) + BlocksOf(device_, [&] {
          const at::Tensor loss = model.loss()(planned->forward(network_.input), network_.target);
          loss.backward();
        });
    // The caller holds the loss, the engine its gradient.
    EXPECT_LE(blocks, planned->prediction().peak + Bytes(2 * 512)) << Text(schedule);
  }
}

TEST_P(DeviceProfileTest, PlannedStepsWaitNoMoreOftenThanPlainOnes) {
  const Chain chain =
      ChainWithTimes(network_.model, network_.input, network_.target, device_.execution);
  const auto waits_of = [&](const auto& step) {
    step();
    const WaitCount waits(device_.device);
    step();
    return waits.count();
  };
  const ChainModel& model = network_.model;
  const int64_t plain = waits_of(
      [&] { model.loss()(PlainForward(model, network_.input), network_.target).backward(); });
  // Recomputed ones do, too.
  if (plain > 0) GTEST_SKIP() << "its forwards wait for the device";
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

class DeviceGraphTest : public ::testing::TestWithParam<NetworkCase>, protected GraphTraining {
 protected:
  DeviceGraphTest()
      : GraphTraining(std::get<0>(GetParam()), TrainingDeviceNamed(std::get<1>(GetParam()))) {}
  void SetUp() override { SKIP_IF_MISSING(device_); }
};

TEST_P(DeviceGraphTest, TheKeyIsTheSameWhateverTheCacheHolds) {
  const PlanKey first = MakePlanKey(Profiled(), {});
  std::mt19937 random(7);
  for (int run = 0; run < 20; ++run) {
    const std::vector<at::Tensor> others = DisturbTheCache(device_, &random);
    EXPECT_EQ(MakePlanKey(Profiled(), {}), first) << run;
    if (HasFailure()) return;
  }
}

TEST_P(DeviceGraphTest, ColdAsWarm) {
  const PlanKey warm = MakePlanKey(Profiled(), {});
  ProfileOptions options;
  options.bytes_only = true;
  options.warmup = 0;
  options.device = device_.execution;
  std::thread([&] {
    const auto cold = ProfileGraph(graph_.model, Inputs(), graph_.target, options);
    ASSERT_TRUE(cold.ok()) << cold.status();
    EXPECT_EQ(MakePlanKey(*cold, {}), warm);
  }).join();
}

TEST_P(DeviceGraphTest, BlocksOfPlannedStepsAreWithinThePrediction) {
  const Profile profile = Profiled();
  const Graph& graph = std::get<Graph>(profile.problem);
  const Graph fixed = WithFixedCosts(graph);
  std::vector<Schedule> schedules = {StoreAllSchedule(graph)};
  const auto budget = ResolveBudget(fixed, ShareOfStoreAll{0.8}, PlanOptions());
  const auto plan = MakePlan(fixed, budget.value(), PlanOptions());
  ASSERT_TRUE(plan.ok()) << plan.status();
  if (plan->status == PlanStatus::kFound) schedules.push_back(plan->schedule);
  const Bytes sums = SumsInBlocks(device_, graph_.model);
  for (const Schedule& schedule : schedules) {
    const auto executor =
        Executor::Create(&graph_.model, graph, schedule, device_.execution).value();
    const Bytes blocks =
        BlocksOf(device_, [&] { ASSERT_TRUE(executor->Step(Inputs(), graph_.target).ok()); });
    EXPECT_LE(blocks - sums, executor->prediction().peak);
  }
  const auto planned =
      PlannedModule::Create(&graph_.model, graph, schedules[0], device_.execution).value();
  const Bytes blocks =
      BlocksOf(device_, [&] { planned->forward(Inputs(), graph_.target).backward(); });
  // The caller holds the losses, their sum and its gradient.
  EXPECT_LE(blocks - sums, planned->prediction().peak + Bytes(5 * 512));
}

INSTANTIATE_TEST_SUITE_P(Graphs, DeviceGraphTest,
                         testing::Combine(testing::Values("mixed", "decoder", "grad_kernels"),
                                          testing::Values("test", "cuda")),
                         NameOfNetworkCase);

INSTANTIATE_TEST_SUITE_P(Networks, DeviceProfileTest,
                         testing::Combine(testing::Values("plain_cnn", "norm_cnn", "mlp",
                                                          "frozen_prefix", "own_tensors",
                                                          "moving_scale", "grad_kernels", "tied",
                                                          "early_ends", "transformer"),
                                          testing::Values("test", "cuda")),
                         NameOfNetworkCase);

}  // namespace
}  // namespace stowage
