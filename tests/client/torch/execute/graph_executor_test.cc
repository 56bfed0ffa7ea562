// Graphs trained by plans of every solver, against plain training and the evaluator.
#include "client/torch/execute/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "client/torch/execute/planned_module.h"
#include "client/torch/execute/run_backward.h"
#include "client/torch/execute/step_plan.h"
#include "client/torch/model/model_state.h"
#include "client/torch/profile/graph_profiler.h"
#include "solvers/planner.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/gradient_sums.h"
#include "solvers/schedule/instance.h"
#include "tests/client/torch/autocast.h"
#include "tests/client/torch/error_of.h"
#include "tests/client/torch/network_case.h"
#include "tests/client/torch/test_graphs.h"

namespace stowage {
namespace {

namespace nn = torch::nn;

using testing::HasSubstr;

class GraphExecutorTest : public testing::TestWithParam<NetworkCase>, protected GraphTraining {
 protected:
  GraphExecutorTest()
      : GraphTraining(std::get<0>(GetParam()), TrainingDeviceNamed(std::get<1>(GetParam()))) {}
  void SetUp() override { SKIP_IF_MISSING(device_); }

  void ExpectPlansWithinBudgetsTrainAlike();
};

TEST_P(GraphExecutorTest, StoringAllIsPlainTraining) {
  const Profile profile = Profiled();
  const Graph& graph = std::get<Graph>(profile.problem);
  ExpectLikePlain(graph, StoreAllSchedule(graph), Plain());
}

void GraphExecutorTest::ExpectPlansWithinBudgetsTrainAlike() {
  const Profile profile = Profiled();
  const Graph& graph = std::get<Graph>(profile.problem);
  const Graph fixed = WithFixedCosts(graph);
  const GraphOutcome plain = Plain();
  int recomputing = 0;
  for (const double share : {0.85, 0.6}) {
    // Large graphs could be searched for minutes: the first schedule that fits will do.
    Schedule schedule;
    StopToken stop;
    PlanOptions options;
    options.solve.stop = &stop;
    options.solve.incumbent = [&](const Schedule& fits) {
      schedule = fits;
      stop.RequestStop();
    };
    const auto budget = ResolveBudget(fixed, ShareOfStoreAll{share}, PlanOptions());
    ASSERT_TRUE(budget.ok()) << budget.status();
    const auto plan = MakePlan(fixed, *budget, options);
    ASSERT_TRUE(plan.ok() || !schedule.empty()) << plan.status();
    if (plan.ok()) schedule = plan->schedule;
    if (schedule.empty()) continue;  // nothing fits
    SCOPED_TRACE(share);
    const absl::StatusOr<Simulation> simulation = Evaluator(fixed).Run(schedule);
    ASSERT_TRUE(simulation.ok()) << simulation.status();
    EXPECT_LE(simulation->peak, *budget);
    EXPECT_TRUE(GradientSums(graph).KeptBy(schedule));
    recomputing += simulation->recomputed_forwards > 0 ? 1 : 0;
    ExpectLikePlain(graph, schedule, plain);
  }
  EXPECT_GT(recomputing, 0);
}

TEST_P(GraphExecutorTest, PlansWithinBudgetsTrainAlike) { ExpectPlansWithinBudgetsTrainAlike(); }

// The casts that graphs save are in the profile, so measured memory is as predicted.
TEST_P(GraphExecutorTest, UnderAutocastAsWithout) {
  // Plain training that remembers casts sums up the gradients of tied weights in the type of the cast.
  if (!device_.has_autocast) GTEST_SKIP() << "LibTorch has no autocast for it";
  const ScopedAutocast autocast(true, /*remember_casts=*/graph_.model.tied_parameters().empty(),
                                device_.device.type());
  const Profile profile = Profiled();
  EXPECT_THAT(profile.device.math_settings, HasSubstr("autocast"));
  const Graph& graph = std::get<Graph>(profile.problem);
  ExpectLikePlain(graph, StoreAllSchedule(graph), Plain());
  ExpectPlansWithinBudgetsTrainAlike();
}

class GraphOrderTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { SKIP_IF_MISSING(device_); }

  const TrainingDevice& device_ = TrainingDeviceNamed(GetParam());
};

// The mask asks for no gradient, though the model cannot know it: what reads it saves as much again as at first.
TEST_P(GraphOrderTest, GradientsAreAskedForAgainWhereTheyWereAtFirst) {
  torch::manual_seed(7);
  GraphModel model("mask");
  const int x = model.AddInput("x");
  const int wide = model.AddModule("wide", "linear", x, nn::Linear(8, 64));
  const int mask = model.AddFunction("mask", "positive", {wide}, [](const auto& in) {
    return (in[0].detach() > 0).to(in[0].scalar_type());
  });
  const int gated = model.AddFunction("gated", "gate", {wide, mask}, [](const auto& in) {
    return (in[0] * in[1]).tanh().exp() + in[1].exp();
  });
  model.AddFunction("loss", "sum", {gated}, [](const auto& in) { return in[0].sum(); });
  struct Training : GraphTraining {
    Training(TestGraph graph, const TrainingDevice& device)
        : GraphTraining(std::move(graph), device) {}
    void Run(int wide, int gated) {
      const Profile profile = Profiled();
      const Graph& graph = std::get<Graph>(profile.problem);
      Schedule schedule = StoreAllSchedule(graph);
      const auto at = [&](Op op, int v) {
        return std::find_if(schedule.begin(), schedule.end(),
                            [&](const Instruction& i) { return i.op == op && i.stage == v + 1; });
      };
      // What is computed again reads what its backward alone would not.
      schedule.erase(at(Op::kDiscard, wide));
      schedule.insert(at(Op::kBackward, gated) + 1, Discard(TensorKind::kActivation, wide + 1));
      schedule.insert(at(Op::kForwardSave, gated) + 1, Discard(TensorKind::kSaved, gated + 1));
      schedule.insert(at(Op::kBackward, gated), ForwardSave(gated + 1));
      ExpectLikePlain(graph, schedule, Plain());
    }
  };
  Training(TestGraph{std::move(model), {torch::randn({16, 8})}, torch::zeros({1})}, device_)
      .Run(wide, gated);
}

// A node that nobody trains by may run first when backwards have begun.
TEST_P(GraphOrderTest, WhatTrainsNothingMayRunAmongTheBackwards) {
  struct Training : GraphTraining {
    explicit Training(const TrainingDevice& device) : GraphTraining("mixed", device) {}
    void Run() {
      const Profile profile = Profiled();
      const Graph& graph = std::get<Graph>(profile.problem);
      Schedule schedule;
      Schedule late;
      for (const Instruction& instruction : StoreAllSchedule(graph)) {
        const std::string& name = graph_.model.node(instruction.stage - 1).name;
        const bool idle = name == "probabilities" && instruction.op != Op::kBackward;
        const bool read = name == "head" && instruction.op == Op::kDiscard;
        (idle || read ? late : schedule).push_back(instruction);
      }
      ASSERT_FALSE(late.empty());
      const auto first = std::find_if(schedule.begin(), schedule.end(), [](const Instruction& i) {
        return i.op == Op::kBackward && i.stage != 13;
      });
      schedule.insert(first + 1, late.begin(), late.end());
      const auto run = Evaluator(graph).Run(schedule);
      ASSERT_TRUE(run.ok()) << run.status();
      ExpectLikePlain(graph, schedule, Plain());
    }
  };
  Training(device_).Run();
}

// Two losses: where backwards come in another order than autograd's (StepPlan::in_engine_order), all of them are one
// node of the caller's graph (WholeBackward), which drives them as the plan has it.
TEST_P(GraphOrderTest, BackwardsInAnotherOrderThanAutogradsAreDrivenByThePlan) {
  torch::manual_seed(3);
  GraphModel model("fork");
  const int x = model.AddInput("x");
  const int fork = model.AddModule("fork", "linear", x, nn::Linear(8, 32));
  const int left = model.AddFunction(
      "left", "tanh", {fork}, [](const auto& in) { return at::dropout(in[0].tanh(), 0.3, true); });
  model.AddFunction("left_loss", "sum", {left}, [](const auto& in) { return in[0].sum(); });
  const int right = model.AddModule("right", "linear", fork, nn::Linear(32, 4));
  model.AddFunction("right_loss", "mean", {right}, [](const auto& in) { return in[0].mean(); });
  struct Training : GraphTraining {
    Training(TestGraph graph, const TrainingDevice& device)
        : GraphTraining(std::move(graph), device) {}
    // All backwards of a whole step are on the thread that autograd has for the device, which none of them has to wake up.
    void ExpectOnOneThread(const Graph& graph, const Schedule& schedule) const {
      std::thread::id of_device;
      RunOnBackwardsThread(device_.device, [&] { of_device = std::this_thread::get_id(); });
      const auto executor =
          Executor::Create(&graph_.model, graph, schedule, device_.execution).value();
      int told = 0;
      executor->TellReadyGradients([&](const at::Tensor&) {
        EXPECT_EQ(std::this_thread::get_id(), of_device);
        ++told;
      });
      ASSERT_TRUE(executor->Step(Inputs(), {}).ok());
      EXPECT_EQ(told, 4);
    }

    // Who walks the graph from the loss finds the one node, and nothing behind it.
    void ExpectNoPathToParameters(const at::Tensor& loss) const {
      const at::Tensor weight = graph_.model.parameters().at(0);
      EXPECT_THAT(ErrorOf([&] { torch::autograd::grad({loss}, {weight}, {}, true); }),
                  HasSubstr("appears to not have been used"));
      loss.backward({}, /*retain_graph=*/true, /*create_graph=*/false, {{weight}});
      EXPECT_EQ(weight.grad().abs().sum().item<double>(), 0);
    }

    void Run() {
      const Profile profile = Profiled();
      const Graph& graph = std::get<Graph>(profile.problem);
      const GraphOutcome plain = Plain();
      for (const bool as_autograd : {true, false}) {
        SCOPED_TRACE(as_autograd);
        Schedule schedule;
        for (int v = 0; v < graph.size(); ++v) schedule.push_back(ForwardSave(v + 1));
        const std::vector<int> order =
            as_autograd ? std::vector<int>{5, 4, 3, 2, 1, 0} : std::vector<int>{3, 2, 5, 4, 1, 0};
        for (const int v : order) schedule.push_back(Backward(v + 1));
        EXPECT_EQ(MakeGraphPlan(&graph_.model, graph, schedule,
                                DeviceOrInstalled(device_.execution).value())
                      ->in_engine_order,
                  as_autograd);
        const auto planned =
            PlannedModule::Create(&graph_.model, graph, schedule, device_.execution).value();
        Rewind();
        const std::vector<at::Tensor> inputs = Inputs();
        const at::Tensor loss = planned->forward(inputs);
        const auto& losses = loss.grad_fn()->next_edges();
        EXPECT_EQ(losses[0].function->name() == "StowageBackward", !as_autograd)
            << losses[0].function->name();
        EXPECT_EQ(losses[0].function == losses[1].function, !as_autograd);
        if (!as_autograd) ExpectNoPathToParameters(loss);
        loss.backward({}, /*retain_graph=*/true);
        const GraphOutcome done = After(loss.item<double>());
        EXPECT_EQ(done.gradients, plain.gradients);
        EXPECT_TRUE(done.random == plain.random);
        const std::string again = ErrorOf([&] { loss.backward({}, /*retain_graph=*/true); });
        const std::string refused = "another order than autograd's, which it cannot do";
        EXPECT_THAT(again, HasSubstr(as_autograd ? "nothing" : refused));
        EXPECT_THAT(ErrorOf([&] { loss.backward({}, true, /*create_graph=*/true); }),
                    HasSubstr("no gradient of its gradient"));
        ExpectOnOneThread(graph, schedule);
      }
    }
  };
  Training(TestGraph{std::move(model), {torch::randn({16, 8})}, {}}, device_).Run();
}

INSTANTIATE_TEST_SUITE_P(Devices, GraphOrderTest, testing::Values("cpu", "test", "cuda"),
                         [](const auto& device) { return device.param; });

class GraphFailureTest : public GraphExecutorTest {
 protected:
  ~GraphFailureTest() override { device_.ClearLimit(); }
};

TEST_P(GraphFailureTest, AfterOutOfMemoryAtAnyPointTheNextStepIsRight) {
  if (!device_.limits_memory()) GTEST_SKIP() << "its memory has no limit to the byte";
  const Profile profile = Profiled();
  const Graph& graph = std::get<Graph>(profile.problem);
  const GraphOutcome plain = Plain();
  auto executor =
      Executor::Create(&graph_.model, graph, StoreAllSchedule(graph), device_.execution).value();
  const int64_t peak = executor->prediction().peak.value();
  int failures = 0;
  for (int64_t extra = 0; extra < peak; extra += peak / 60) {
    Rewind();
    std::vector<at::Tensor> inputs = Inputs();
    const Bytes live = meter_->current();
    device_.LimitMemory(Bytes(extra));
    const absl::Status status = executor->Step(inputs, graph_.target).status();
    device_.ClearLimit();
    if (status.ok()) continue;
    ++failures;
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_EQ(meter_->current(), live) << "after " << extra << " bytes";
    EXPECT_TRUE(BufferState::Capture(graph_.model.buffers()) == buffers_);
    EXPECT_TRUE(RandomState::Capture(device_.device) == random_);
  }
  EXPECT_GT(failures, 30);
  ExpectLikePlain(graph, StoreAllSchedule(graph), plain);
}

// By a plan that recomputes, where there is one: its peak is enough, and a little less is not.
TEST_P(GraphFailureTest, ALimitOf64BytesBelowThePeakFailsAndMends) {
  if (!device_.exact) GTEST_SKIP() << "its memory has no limit to the byte";
  const Profile profile = Profiled();
  const Graph& graph = std::get<Graph>(profile.problem);
  const Graph fixed = WithFixedCosts(graph);
  const GraphOutcome plain = Plain();
  std::vector<Schedule> schedules = {StoreAllSchedule(graph)};
  StopToken stop;
  PlanOptions options;
  options.solve.stop = &stop;
  options.solve.incumbent = [&](const Schedule& fits) {
    if (schedules.size() == 1) schedules.push_back(fits);
    stop.RequestStop();
  };
  const auto budget = ResolveBudget(fixed, ShareOfStoreAll{0.9}, PlanOptions());
  ASSERT_TRUE(budget.ok()) << budget.status();
  const auto plan = MakePlan(fixed, *budget, options);
  if (plan.ok() && plan->status == PlanStatus::kFound && schedules.size() == 1) {
    schedules.push_back(plan->schedule);
  }
  ASSERT_EQ(schedules.size(), 2u);
  for (const Schedule& schedule : schedules) {
    auto executor = Executor::Create(&graph_.model, graph, schedule, device_.execution).value();
    for (const int64_t below : {64, -64}) {  // a scalar or two are nobody's plan
      Rewind();
      const Bytes before = meter_->current();
      std::vector<at::Tensor> inputs = Inputs();
      const Bytes live = meter_->current();
      device_.LimitMemory(before + executor->prediction().peak - live - Bytes(below));
      const auto report = executor->Step(inputs, graph_.target);
      device_.ClearLimit();
      EXPECT_EQ(report.ok(), below < 0) << report.status();
      if (!report.ok()) {
        EXPECT_TRUE(absl::IsResourceExhausted(report.status())) << report.status();
        EXPECT_EQ(meter_->current(), live);
      }
    }
    ExpectLikePlain(graph, schedule, plain);
  }
}

// Two read a tensor; the backward of `wide`, plain training's first, takes the most memory. Run second, it
// has its summand beside the other one, of which its profile does not know: why solvers keep the order
// (solvers/schedule/gradient_sums.h).
class GraphSumsTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { SKIP_IF_MISSING(device_); }

  const TrainingDevice& device_ = TrainingDeviceNamed(GetParam());
};

TEST_P(GraphSumsTest, TakeWhatTheProfileSaysInPlainTrainingsOrder) {
  GraphModel model("fork");
  const int x = model.AddInput("x");
  const int fork = model.AddModule("fork", "linear", x, nn::Linear(8, 256));
  const int narrow =
      model.AddFunction("narrow", "mul", {fork}, [](const auto& in) { return in[0] * 2; });
  model.AddFunction("narrow_loss", "sum", {narrow}, [](const auto& in) { return in[0].sum(); });
  const int wide = model.AddFunction("wide", "tanh", {fork}, [](const auto& in) {
    return in[0].repeat({1, 8}).tanh().view({-1, 8, 256}).sum(1);
  });
  model.AddFunction("wide_loss", "sum", {wide}, [](const auto& in) { return in[0].sum(); });
  MoveTo(device_.device, model);
  const at::Tensor input = torch::ones({64, 8}).to(device_.device);
  const at::Tensor target = torch::zeros({1}).to(device_.device);
  ProfileOptions options;
  options.bytes_only = true;
  options.device = device_.execution;
  const auto profile = ProfileGraph(model, {input}, target, options);
  ASSERT_TRUE(profile.ok()) << profile.status();
  const Graph& graph = std::get<Graph>(profile->problem);

  const auto peak_over_predicted = [&](const std::vector<int>& backwards) {
    Schedule schedule;
    for (int v = 0; v < graph.size(); ++v) schedule.push_back(ForwardSave(v + 1));
    for (const int v : backwards) schedule.push_back(Backward(v + 1));
    auto executor = Executor::Create(&model, graph, schedule, device_.execution);
    EXPECT_TRUE(executor.ok()) << executor.status();
    EXPECT_EQ(GradientSums(graph).KeptBy(schedule), backwards[1] == wide);
    const auto report = executor.value()->Step({input.clone()}, target);
    EXPECT_TRUE(report.ok()) << report.status();
    return report.value().peak - executor.value()->prediction().peak;
  };
  const Bytes summand = graph.vertex(fork).output_gradient;
  EXPECT_LE(peak_over_predicted({5, 4, 3, 2, 1, 0}), Bytes(0));
  const Bytes over = peak_over_predicted({3, 2, 5, 4, 1, 0});
  EXPECT_LE(over, summand);
  // Elsewhere plans count whole blocks.
  EXPECT_GE(over, device_.exact ? summand : Bytes(1));
}

INSTANTIATE_TEST_SUITE_P(Devices, GraphSumsTest, testing::Values("cpu", "test", "cuda"),
                         [](const auto& device) { return device.param; });

TEST(ProfileGraph, AModelWithoutAScalarToTrainByIsRefused) {
  GraphModel model("no loss");
  const int x = model.AddInput("x");
  model.AddModule("head", "linear", x, nn::Linear(4, 3));
  ProfileOptions options;
  options.bytes_only = true;
  const absl::Status status =
      ProfileGraph(model, {torch::ones({2, 4})}, torch::zeros({1}), options).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("nothing to train by"));
}

// All of it follows from what is trained.
TEST(ProfileGraph, OnlyWhatAGradientComesToHasOne) {
  GraphModel model("gate");
  const int x = model.AddInput("x");
  const int head = model.AddModule("head", "linear", x, nn::Linear(4, 64));
  const int gate =
      model.AddFunction("gate", "gt", {head}, [](const auto& in) { return in[0] > 0; });
  ModelNode sizes;
  sizes.name = sizes.op_kind = "zeros_like";
  sizes.inputs = {head};
  sizes.detached = true;
  sizes.forward = [](const auto& in) { return at::zeros_like(in[0]); };
  const int zeros = model.AddNode(std::move(sizes));
  const int kept = model.AddFunction("kept", "where", {gate, head, zeros},
                                     [](const auto& in) { return at::where(in[0], in[1], in[2]); });
  const int loss =
      model.AddFunction("loss", "sum", {kept}, [](const auto& in) { return in[0].square().sum(); });
  const int best =
      model.AddFunction("best", "argmax", {kept}, [](const auto& in) { return in[0].argmax(1); });
  ProfileOptions options;
  options.bytes_only = true;
  const auto profile = ProfileGraph(model, {torch::ones({2, 4})}, torch::zeros({1}), options);
  ASSERT_TRUE(profile.ok()) << profile.status();
  const Graph& graph = std::get<Graph>(profile->problem);
  for (const int v : {head, kept, loss}) {
    EXPECT_EQ(graph.vertex(v).output_gradient, graph.vertex(v).output) << v;
  }
  for (const int v : {x, gate, zeros, best}) {
    EXPECT_GT(graph.vertex(v).output, Bytes(0)) << v;
    EXPECT_EQ(graph.vertex(v).output_gradient, Bytes(0)) << v;
  }
}

INSTANTIATE_TEST_SUITE_P(Mixed, GraphFailureTest,
                         testing::Combine(testing::Values("mixed"),
                                          testing::Values("cpu", "test", "cuda")),
                         NameOfNetworkCase);

INSTANTIATE_TEST_SUITE_P(Graphs, GraphExecutorTest,
                         testing::Combine(testing::Values("mixed", "decoder", "grad_kernels",
                                                          "resnet18", "nasnet_a", "darts_v2"),
                                          testing::Values("cpu")),
                         NameOfNetworkCase);
INSTANTIATE_TEST_SUITE_P(OnOtherDevices, GraphExecutorTest,
                         testing::Combine(testing::Values("mixed", "decoder", "grad_kernels"),
                                          testing::Values("test", "cuda")),
                         NameOfNetworkCase);

}  // namespace
}  // namespace stowage
