// Samples of passes as chains and graphs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "client/torch/memory/tracking_allocator.h"
#include "client/torch/profile/chain_samples.h"
#include "client/torch/profile/graph_samples.h"
#include "client/torch/profile/profile_passes.h"
#include "solvers/model/chain.h"
#include "solvers/model/transfer_model.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/schedule.h"
#include "solvers/schedule/simulation.h"
#include "tests/client/device/training_devices.h"
#include "tests/client/torch/random_schedule.h"
#include "tests/client/torch/test_networks.h"

namespace stowage {
namespace {

using testing::HasSubstr;

ChainModel OneStage() {
  ChainModel model("one");
  model.AddFunction("s", "exp", [](const at::Tensor& x) { return x.exp(); });
  model.SetLoss("sum", [](const at::Tensor& y, const at::Tensor&) { return y.sum(); });
  return model;
}

// Of the stage; those of the loss and of what is before the stage are zero.
std::vector<StageSample> Pass(int64_t output, int64_t saved, int64_t gradient, int64_t overhead) {
  std::vector<StageSample> samples(3);
  samples[1].output = Bytes(output);
  samples[1].saved = Bytes(saved);
  samples[1].saved_tensors = {Bytes(500), Bytes(300)};
  samples[1].output_gradient = Bytes(gradient);
  samples[1].backward_overhead = Bytes(overhead);
  return samples;
}

TEST(MakeChain, BytesAreThoseOfEveryPassAndOverheadsTheLargest) {
  const auto chain = MakeChain(OneStage(), Bytes(100),
                               {Pass(1000, 1800, 900, 7), Pass(1000, 1800, 900, 9)}, false);
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_EQ(chain->activation(0), Bytes(100));
  EXPECT_EQ(chain->stage(1).output, Bytes(1000));
  EXPECT_EQ(chain->stage(1).saved, Bytes(1800));
  EXPECT_EQ(chain->stage(1).output_gradient, Bytes(900));
  // A step may meet the same.
  EXPECT_EQ(chain->stage(1).backward_overhead, Bytes(9));
  const auto refused = [](const std::vector<StageSample>& other) {
    return MakeChain(OneStage(), Bytes(100), {Pass(1000, 1800, 900, 7), other}, false).status();
  };
  for (const auto& other : {Pass(1001, 1800, 900, 7), Pass(1000, 1801, 900, 7)}) {
    EXPECT_EQ(refused(other).code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(refused(other).message()), HasSubstr("stage 1 (s, exp)"));
  }
  // The next stage makes it.
  EXPECT_THAT(std::string(refused(Pass(1000, 1800, 901, 7)).message()), HasSubstr("loss"));
}

// Side inputs, say.
TEST(MakeChain, WhatIsHeldBesideIsThereWhateverAPlanDoes) {
  const Passes<StageSample> passes = {Pass(1000, 1800, 900, 7)};
  const Chain alone = MakeChain(OneStage(), Bytes(100), passes, false).value();
  const Chain with = MakeChain(OneStage(), Bytes(100), passes, false, Bytes(5000)).value();
  const TransferModel link = FastLink(/*full_duplex=*/true);
  // The most is there while the input comes back.
  const Schedule schedule = {ForwardSave(1),
                             OffloadStart(TensorKind::kActivation, 0),
                             OffloadWait(TensorKind::kActivation, 0),
                             ForwardSave(2),
                             Backward(2),
                             PrefetchStart(TensorKind::kActivation, 0),
                             PrefetchWait(TensorKind::kActivation, 0),
                             Backward(1)};
  std::vector<TimelinePoint> of_alone, of_both;
  ASSERT_TRUE(Evaluator(Instance(alone, link)).Run(schedule, &of_alone).ok());
  ASSERT_TRUE(Evaluator(Instance(with, link)).Run(schedule, &of_both).ok());
  for (size_t i = 0; i + 1 < schedule.size(); ++i) {
    EXPECT_EQ(of_both[i].running, of_alone[i].running + Bytes(5000)) << i;
  }
}

// On a device the first pass, which does not count either, runs where recomputes will: for that thread, too, libraries take
// workspaces.
TEST(RunPasses, OnADeviceTheFirstPassOfTheCallersThreadAloneLooksAtBuffers) {
  for (ExecutionDevice* device :
       {static_cast<ExecutionDevice*>(nullptr), TrainingDeviceNamed("test").execution}) {
    ProfileOptions options;
    options.warmup = 1;
    options.repeats = 2;
    options.device = device;
    std::vector<bool> watched, here;
    WholeSteps none("none");
    const auto passes = RunPasses<StageSample>(
        options, 1,
        [&, caller = std::this_thread::get_id()](
            bool watch, const std::function<void()>&) -> absl::StatusOr<std::vector<StageSample>> {
          watched.push_back(watch);
          here.push_back(std::this_thread::get_id() == caller);
          std::vector<StageSample> samples(2);
          samples[1].stateful = watch;
          return samples;
        },
        [](const Passes<StageSample>&) { return absl::InternalError("nobody asks for it"); },
        &none);
    ASSERT_TRUE(passes.ok());
    if (device == nullptr) {
      EXPECT_EQ(watched, (std::vector<bool>{true, true, true}));
      EXPECT_EQ(here, (std::vector<bool>{true, true, true}));
    } else {
      EXPECT_EQ(watched, (std::vector<bool>{false, true, false, false}));
      EXPECT_EQ(here, (std::vector<bool>{false, true, true, true}));
    }
    // What it found is so in all of them.
    ASSERT_EQ(passes->size(), 2U);
    for (const std::vector<StageSample>& pass : *passes) {
      EXPECT_FALSE(pass[0].stateful);
      EXPECT_TRUE(pass[1].stateful);
    }
  }
}

// A device that is behind the host begins with the second step when it is done with the first.
TEST(WholeSteps, OfTwoTheSecondCountsWhereTheDeviceIsBehind) {
  for (const bool behind : {false, true}) {
    int ran = 0;
    const auto step = [&ran, behind]() -> absl::StatusOr<Later<Nanos>> {
      const Nanos time(1000 * ++ran);
      if (!behind) return Later<Nanos>(time);
      return Later<Nanos>([] { return false; }, [time] { return time; });
    };
    WholeSteps steps(Bytes(2));
    steps.Run([&]() -> absl::StatusOr<WholeStep> { return WholeStep{Bytes(1), step}; });
    EXPECT_EQ(ran, behind ? 2 : 1);
    const Calibration calibration = steps.CalibrationOf(Nanos(1000), {Nanos(1000)});
    EXPECT_EQ(calibration.step, Nanos(1000 * ran));
    EXPECT_EQ(calibration.steps, 1);
  }
}

TEST(RunProfilePass, WithoutAWatchBuffersAreNotLookedAt) {
  const TestNetwork network = MakeTestNetwork("norm_cnn");
  network.model.EnsureGradients();
  const auto timer = MakeSteadyTimer();
  CostMeter costs(TrackingAllocator::Get(), timer.get(), Bytes(1), c10::Device(c10::kCPU));
  int stateful[2] = {};
  for (const bool watch : {false, true}) {
    const auto pass =
        RunProfilePass(network.model, network.input, network.target, &costs, watch, {});
    ASSERT_TRUE(pass.ok()) << pass.status();
    for (const StageSample& sample : *pass) stateful[watch ? 1 : 0] += sample.stateful ? 1 : 0;
  }
  EXPECT_EQ(stateful[0], 0);
  EXPECT_GT(stateful[1], 0);
}

TEST(MakeGraph, BytesAndNeedsAreThoseOfEveryPass) {
  GraphModel model("graph");
  const int x = model.AddInput("x");
  model.AddFunction("s", "exp", {x},
                    [](const std::vector<at::Tensor>& inputs) { return inputs[0].exp(); });
  const auto pass = [](int64_t output, int64_t extra) {
    std::vector<NodeSample> samples(2);
    samples[1].output = Bytes(output);
    samples[1].extra_saved = Bytes(extra);
    samples[1].needs_inputs = {true};
    return samples;
  };
  const auto graph = MakeGraph(model, {pass(1000, 64), pass(1000, 64)}, false);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->vertex(1).output, Bytes(1000));
  EXPECT_EQ(graph->vertex(1).extra_saved, Bytes(64));
  EXPECT_TRUE(graph->vertex(1).inputs[0].backward_needs);
  EXPECT_FALSE(MakeGraph(model, {pass(1000, 64), pass(1010, 64)}, false).ok());
  EXPECT_FALSE(MakeGraph(model, {pass(1000, 64), pass(1000, 90)}, false).ok());
  Passes<NodeSample> passes = {pass(1000, 64), pass(1000, 64)};
  passes[1][1].needs_inputs = {false};
  EXPECT_FALSE(MakeGraph(model, passes, false).ok());
}

}  // namespace
}  // namespace stowage
