// Times of profiles, on a device whose clock the tests hold.
#include "client/torch/profile/profile_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/torch/model/model_state.h"
#include "client/torch/model/state_digest.h"
#include "client/torch/profile/chain_profiler.h"
#include "client/torch/profile/graph_profiler.h"
#include "tests/client/torch/profile/clocked_device.h"
#include "tests/client/torch/test_networks.h"

namespace stowage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(SpreadOf, AQuarterIsBelowAndAQuarterAbove) {
  for (int n = 1; n <= 40; ++n) {
    std::vector<Nanos> times;
    for (int i = 0; i < n; ++i) times.emplace_back((i * 7919) % n);  // 7919 is prime
    const TimeSpread spread = SpreadOf(times);
    EXPECT_EQ(spread.samples, n);
    EXPECT_EQ(spread.median, Nanos(n / 2)) << n;
    EXPECT_EQ(spread.lower_quartile, Nanos((n - 1) / 4)) << n;
    // As many above the one as below the other.
    EXPECT_EQ(spread.lower_quartile.value() + spread.upper_quartile.value(), n - 1) << n;
  }
}

// Stages of which the clock knows how long they run.
class ProfileTimesTest : public testing::Test {
 protected:
  // Nothing but a leaf comes before it.
  static bool BeginsAGraph(const at::Tensor& x) {
    if (!x.grad_fn()) return true;
    for (const torch::autograd::Edge& edge : x.grad_fn()->next_edges()) {
      if (edge.function && edge.function->num_outputs() > 0) return false;
    }
    return true;
  }

  // Of what takes so long alone, `in_step` times as much in a graph that goes on before it.
  Nanos TakenAt(const at::Tensor& x, int64_t time) const {
    if (BeginsAGraph(x)) return Nanos(time);
    return Nanos(static_cast<int64_t>(static_cast<double>(time) * in_step_));
  }

  // Its forward takes what `forward` says of the number of the call; its backward twice as much as the forward.
  std::function<at::Tensor(const at::Tensor&)> Stage(std::function<int64_t(int)> forward) {
    auto calls = std::make_shared<int>(0);
    return [this, forward = std::move(forward), calls](const at::Tensor& x) {
      const Nanos taken = TakenAt(x, forward((*calls)++));
      device_.Advance(taken);
      at::Tensor y = x.exp();
      if (y.requires_grad()) {
        y.register_hook([this, taken](const at::Tensor&) { device_.Advance(taken + taken); });
      }
      return y;
    };
  }

  // Its forward takes 3000: 1000 until it has saved the hyperbolic tangent, and the rest for what saves nothing.
  std::function<at::Tensor(const at::Tensor&)> SavesEarly() {
    return [this](const at::Tensor& x) {
      device_.Advance(TakenAt(x, 1000));
      const at::Tensor y = x.tanh();
      device_.Advance(TakenAt(x, 2000));
      return y * 2;
    };
  }

  ChainModel TwoStages() {
    ChainModel model("two");
    model.AddStage("fc", "linear", torch::nn::Linear(4, 4));
    model.AddFunction("a", "exp", Stage([](int) { return 1000; }));
    model.AddFunction("b", "exp", Stage([](int) { return 3000; }));
    model.SetLoss("sum", [](const at::Tensor& y, const at::Tensor&) { return y.sum(); });
    return model;
  }

  ProfileOptions Options(int repeats) {
    ProfileOptions options;
    options.warmup = 0;
    options.repeats = repeats;
    options.device = &device_;
    options.report = &report_;
    return options;
  }

  Chain Profiled(const ChainModel& model, int repeats) {
    const auto profile =
        ProfileChain(model, torch::ones({2, 4}), torch::zeros({1}), Options(repeats));
    EXPECT_TRUE(profile.ok()) << profile.status();
    return std::get<Chain>(profile.value().problem);
  }

  ClockedDevice device_;
  ProfileReport report_;
  double in_step_ = 1;
};

TEST_F(ProfileTimesTest, TimesAreReadOnceAfterEachPass) {
  const Chain chain = Profiled(TwoStages(), 2);
  // Three runs of each of four stages.
  EXPECT_THAT(device_.collected(), ElementsAre(12, 12));
  EXPECT_EQ(chain.stage(1).forward_time, Nanos(0));
  EXPECT_EQ(chain.stage(2).forward_time, Nanos(1000));
  EXPECT_EQ(chain.stage(2).backward_time, Nanos(2000));
  EXPECT_EQ(chain.stage(3).forward_time, Nanos(3000));
  EXPECT_EQ(chain.stage(3).backward_time, Nanos(6000));
  EXPECT_EQ(chain.stage(4).forward_time, Nanos(0));
}

TEST_F(ProfileTimesTest, AGraphsTimesAreReadOnceAfterEachPass) {
  GraphModel model("graph");
  const int x = model.AddInput("x");
  const int y = model.AddModule("fc", "linear", x, torch::nn::Linear(4, 4).ptr());
  const auto a = Stage([](int) { return 1000; });
  const int z = model.AddFunction("a", "exp", {y},
                                  [a](const std::vector<at::Tensor>& in) { return a(in[0]); });
  model.AddFunction("sum", "sum", {z},
                    [](const std::vector<at::Tensor>& in) { return in[0].sum(); });
  const auto profile = ProfileGraph(model, {torch::ones({2, 4})}, torch::zeros({1}), Options(3));
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_THAT(device_.collected(), ElementsAre(9, 1, 9, 1, 9, 1));
  const Graph& graph = std::get<Graph>(profile->problem);
  EXPECT_EQ(graph.vertex(z).forward_time, Nanos(1000));
  EXPECT_EQ(graph.vertex(z).backward_time, Nanos(2000));
  ASSERT_EQ(report_.stages.size(), 4U);
  EXPECT_EQ(report_.stages[static_cast<size_t>(z)].backward.median, Nanos(2000));
  EXPECT_TRUE(report_.calibration.applied) << report_.calibration.why_not;
  EXPECT_EQ(report_.calibration.step, Nanos(3000));
}

TEST_F(ProfileTimesTest, MediansComeWithTheirSpread) {
  ChainModel model("one");
  model.AddStage("fc", "linear", torch::nn::Linear(4, 4));
  // Two runs in each pass, both as long.
  model.AddFunction("a", "exp", Stage([](int call) { return 1000 * (1 + call / 2); }));
  model.SetLoss("sum", [](const at::Tensor& y, const at::Tensor&) { return y.sum(); });
  ProfileOptions options;
  options.warmup = 1;
  options.repeats = 5;
  options.calibrate = false;
  options.device = &device_;
  options.report = &report_;
  const auto profile = ProfileChain(model, torch::ones({2, 4}), torch::zeros({1}), options);
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(report_.passes, 5);
  ASSERT_EQ(report_.stages.size(), 3U);
  const StageTimes& times = report_.stages[1];
  EXPECT_EQ(times.forward.samples, 10);
  EXPECT_EQ(times.forward.lower_quartile, Nanos(3000));
  EXPECT_EQ(times.forward.median, Nanos(4000));
  EXPECT_EQ(times.forward.upper_quartile, Nanos(5000));
  EXPECT_EQ(times.backward.samples, 5);
  EXPECT_EQ(times.backward.median, Nanos(8000));
  EXPECT_EQ(std::get<Chain>(profile->problem).stage(2).forward_time, times.forward.median);
  EXPECT_FALSE(report_.calibration.applied);
  EXPECT_EQ(report_.calibration.why_not, "not asked for");
}

TEST_F(ProfileTimesTest, TheSumIsMadeThatOfWholeSteps) {
  in_step_ = 0.75;
  const Chain chain = Profiled(TwoStages(), 3);
  // A whole step after each pass.
  EXPECT_THAT(device_.collected(), ElementsAre(12, 1, 12, 1, 12, 1));
  const Calibration& calibration = report_.calibration;
  EXPECT_TRUE(calibration.applied) << calibration.why_not;
  EXPECT_EQ(calibration.stages, Nanos(12000));
  EXPECT_EQ(calibration.step, Nanos(9000));
  EXPECT_EQ(calibration.steps, 3);
  EXPECT_DOUBLE_EQ(calibration.factor, 0.75);
  EXPECT_DOUBLE_EQ(calibration.residual, 0);
  EXPECT_EQ(chain.ideal_time(), Nanos(9000));
  EXPECT_EQ(chain.stage(2).forward_time, Nanos(750));
  EXPECT_EQ(report_.stages[1].forward.upper_quartile, Nanos(750));
}

// Made to fit whole steps like all other times.
TEST_F(ProfileTimesTest, ARecomputeThatStopsTakesTheTimeToItsLastSavedTensor) {
  ChainModel model("stops");
  model.AddStage("fc", "linear", torch::nn::Linear(4, 4));
  model.AddFunction("early", "tanh", SavesEarly());
  model.AddFunction("all", "exp", Stage([](int) { return 1000; }));
  model.SetLoss("sum", [](const at::Tensor& y, const at::Tensor&) { return y.sum(); });
  const Chain chain = Profiled(model, 2);
  EXPECT_EQ(chain.stage(2).forward_time, Nanos(3000));
  EXPECT_EQ(chain.stage(2).recompute_saving_time, Nanos(1000));
  // It saves its output, which a recompute has to make.
  EXPECT_FALSE(chain.stage(3).stops());
  in_step_ = 0.75;
  const Chain calibrated = Profiled(model, 3);
  EXPECT_EQ(calibrated.stage(2).forward_time, Nanos(2250));
  EXPECT_EQ(calibrated.stage(2).recompute_saving_time, Nanos(750));
}

TEST_F(ProfileTimesTest, ARecomputeOfANodeStopsThereToo) {
  GraphModel model("stops");
  const int x = model.AddInput("x");
  const int y = model.AddModule("fc", "linear", x, torch::nn::Linear(4, 4).ptr());
  const auto early = SavesEarly();
  const int z = model.AddFunction(
      "early", "tanh", {y}, [early](const std::vector<at::Tensor>& in) { return early(in[0]); });
  model.AddFunction("sum", "sum", {z},
                    [](const std::vector<at::Tensor>& in) { return in[0].sum(); });
  const auto profile = ProfileGraph(model, {torch::ones({2, 4})}, torch::zeros({1}), Options(2));
  ASSERT_TRUE(profile.ok()) << profile.status();
  const Graph& graph = std::get<Graph>(profile->problem);
  EXPECT_EQ(graph.vertex(z).forward_time, Nanos(3000));
  EXPECT_EQ(graph.vertex(z).recompute_saving_time, Nanos(1000));
}

TEST_F(ProfileTimesTest, WhatIsLeftOverIsReported) {
  ChainModel model("drift");
  model.AddStage("fc", "linear", torch::nn::Linear(4, 4));
  // Two runs in a pass, one in the step after it.
  const int64_t times[] = {1000, 1000, 2000, 2000, 2000, 2000, 3000, 3000, 2000};
  model.AddFunction("a", "exp", Stage([&times](int call) { return times[call]; }));
  model.SetLoss("sum", [](const at::Tensor& y, const at::Tensor&) { return y.sum(); });
  EXPECT_EQ(Profiled(model, 3).ideal_time(), Nanos(6000));
  EXPECT_DOUBLE_EQ(report_.calibration.residual, 0.5);  // of 1/2, 0 and 1/2
}

TEST_F(ProfileTimesTest, AStepUnlikeItsStagesCalibratesNothing) {
  in_step_ = 0.25;
  const Chain chain = Profiled(TwoStages(), 3);
  EXPECT_EQ(chain.ideal_time(), Nanos(12000));
  EXPECT_FALSE(report_.calibration.applied);
  EXPECT_EQ(report_.calibration.step, Nanos(3000));
  EXPECT_THAT(report_.calibration.why_not, HasSubstr("0.25 times as long"));
}

TEST_F(ProfileTimesTest, AStepThatFailsDoesNotFailTheProfile) {
  ChainModel model = TwoStages();
  model.AddFunction("alone", "exp", [](const at::Tensor& x) {
    if (!BeginsAGraph(x)) throw std::runtime_error("not in company");
    return x.exp();
  });
  EXPECT_EQ(Profiled(model, 3).ideal_time(), Nanos(12000));
  EXPECT_FALSE(report_.calibration.applied);
  EXPECT_EQ(report_.calibration.step, Nanos(0));
  EXPECT_THAT(report_.calibration.why_not, HasSubstr("a whole step failed"));
  EXPECT_THAT(report_.calibration.why_not, HasSubstr("not in company"));
  // It is not tried again.
  EXPECT_THAT(device_.collected(), ElementsAre(15, 15, 15));
}

TEST_F(ProfileTimesTest, AStepThatDoesNotFitDoesNotFailTheProfile) {
  ChainModel model("much");
  model.AddStage("fc", "linear", torch::nn::Linear(256, 256));
  for (int i = 0; i < 6; ++i) {
    // Saves four times its output.
    model.AddFunction("s", "sin", [](const at::Tensor& x) { return x.sin().sin().sin().sin(); });
  }
  model.SetLoss("sum", [](const at::Tensor& y, const at::Tensor&) { return y.sum(); });
  const at::Tensor input = torch::ones({256, 256});
  const int64_t size = 256 * 256 * 4;
  TrackingAllocator* allocator = TrackingAllocator::Get();
  ProfileOptions options;
  options.repeats = 3;
  options.report = &report_;
  allocator->SetLimit(allocator->current() + Bytes(18 * size));
  const auto profile = ProfileChain(model, input, torch::zeros({1}), options);
  allocator->ClearLimit();
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_FALSE(report_.calibration.applied);
  EXPECT_THAT(report_.calibration.why_not, HasSubstr("does not fit into the memory"));
  EXPECT_GT(IdealTime(profile->problem), Nanos(0));
  const auto free = ProfileChain(model, input, torch::zeros({1}), options);
  ASSERT_TRUE(free.ok()) << free.status();
  EXPECT_EQ(report_.calibration.steps, 3) << report_.calibration.why_not;
}

TEST_F(ProfileTimesTest, StepsAreRunOnlyWhereTheySayMoreThanTheyCost) {
  const ChainModel model = TwoStages();
  Profiled(model, 2);
  EXPECT_THAT(report_.calibration.why_not, HasSubstr("3 passes at least"));
  EXPECT_EQ(report_.stages.size(), 4U);
  ProfileOptions options;
  options.device = &device_;
  options.report = &report_;
  const at::Tensor input = torch::ones({2, 4}).requires_grad_();
  ASSERT_TRUE(ProfileChain(model, input, torch::zeros({1}), options).ok());
  EXPECT_THAT(report_.calibration.why_not, HasSubstr("the input needs a gradient"));
  options.bytes_only = true;
  ASSERT_TRUE(ProfileChain(model, torch::ones({2, 4}), torch::zeros({1}), options).ok());
  EXPECT_EQ(report_.passes, 1);
  EXPECT_TRUE(report_.stages.empty());
}

TEST_F(ProfileTimesTest, StepsBesideThePassesLeaveTheModelAsItWas) {
  const TestNetwork network = MakeTestNetwork("norm_cnn");
  for (const at::Tensor& parameter : network.model.parameters()) parameter.mutable_grad().fill_(3);
  network.model.parameters()[0].mutable_grad().reset();
  const Digest parameters = ParameterDigest(network.model);
  const Digest gradients = GradientDigest(network.model);
  const Digest buffers = BufferDigest(network.model);
  const RandomState random = RandomState::Capture();
  ProfileOptions options;
  options.repeats = 3;
  options.report = &report_;
  const Bytes live = TrackingAllocator::Get()->current();
  ASSERT_TRUE(ProfileChain(network.model, network.input, network.target, options).ok());
  EXPECT_EQ(report_.calibration.steps, 3) << report_.calibration.why_not;
  EXPECT_EQ(TrackingAllocator::Get()->current(), live);
  EXPECT_EQ(ParameterDigest(network.model), parameters);
  EXPECT_EQ(GradientDigest(network.model), gradients);
  EXPECT_EQ(BufferDigest(network.model), buffers);
  EXPECT_TRUE(RandomState::Capture() == random);
}

TEST_F(ProfileTimesTest, ProgressCountsTheSteps) {
  std::vector<double> shares;
  ProfileOptions options;
  options.repeats = 3;
  options.progress = [&](double share) { shares.push_back(share); };
  ASSERT_TRUE(ProfileChain(TwoStages(), torch::ones({2, 4}), torch::zeros({1}), options).ok());
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_DOUBLE_EQ(shares.back(), 1.0);
}

TEST_F(ProfileTimesTest, TensorsOnAnotherDeviceAreRefused) {
  ProfileOptions options;
  options.device = &device_;
  const at::Tensor input = torch::ones({2, 4}, torch::TensorOptions().device(torch::kMeta));
  const absl::Status status = ProfileChain(TwoStages(), input, torch::zeros({1}), options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "an input is on meta, the device to profile on is cpu");
}

}  // namespace
}  // namespace stowage
