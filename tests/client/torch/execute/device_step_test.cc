// Steps on a device that runs later, on threads of its own: what they are timed by, how often they wait, what they take
// for the graph's, and what is left of those that fail.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "client/torch/execute/executor.h"
#include "client/torch/execute/plain_step.h"
#include "client/torch/execute/planned_module.h"
#include "client/torch/execute/run_backward.h"
#include "client/torch/execute/step_failure.h"
#include "client/torch/offload/later.h"
#include "client/torch/profile/graph_profiler.h"
#include "solvers/planner.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/measured_step.h"
#include "tests/client/device/test_device.h"
#include "tests/client/device/training_devices.h"
#include "tests/client/device/wait_count.h"
#include "tests/client/torch/error_of.h"
#include "tests/client/torch/held_backward.h"
#include "tests/client/torch/random_schedule.h"
#include "tests/client/torch/test_graphs.h"
#include "tests/client/torch/test_networks.h"
#include "tests/client/torch/training_outcome.h"

namespace stowage {
namespace {

namespace nn = torch::nn;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kSecond = 1'000'000'000;

std::atomic<int64_t> device_time{0};

// The test device is given work of so many seconds, by the clock below.
void Work(int seconds) {
  TestDevice::compute().Add([seconds] { device_time += seconds * kSecond; });
}

// Of the test device, while an object lives: stands still but for Work.
class WorkClock {
 public:
  WorkClock() {
    TestDevice::compute().UseClock([] {
      return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(device_time.load()));
    });
  }
  ~WorkClock() {
    TestDevice::Synchronize();
    TestDevice::compute().UseClock(nullptr);
  }
};

// A stage that works 2 seconds forward and 5 backward.
struct Working : torch::autograd::Function<Working> {
  static at::Tensor forward(AutogradContext*, const at::Tensor& x) {
    Work(2);
    return x.clone();
  }
  static variable_list backward(AutogradContext*, const variable_list& gradients) {
    Work(5);
    return {gradients[0].clone()};
  }
};

at::Tensor Sum(const at::Tensor& y, const at::Tensor& /*target*/) { return y.sum(); }

class StepTimeTest : public testing::Test {
 protected:
  // Of a step that is given to a device which still has 70 seconds of other work.
  template <class Step>
  static int64_t SecondsOf(const Step& step) {
    TestDevice::Synchronize();
    TestDevice::compute().Hold();
    Work(70);
    const absl::StatusOr<StepReport> report = step();
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? report->wall_time.Get().value() / kSecond : -1;
  }

  const TrainingDevice& device_ = TrainingDeviceNamed("test");
  const at::Tensor input_ = torch::randn({4, 8}).to(device_.device);
  const at::Tensor target_ = torch::zeros({1}).to(device_.device);
};

TEST_F(StepTimeTest, IsWhatTheDeviceDoesForAStepOfAChain) {
  ChainModel model("working");
  model.AddStage("fc", "linear", nn::Linear(8, 8));
  // Saves something of its own, or it would not run again.
  model.AddFunction("work", "work",
                    [](const at::Tensor& x) { return Working::apply(x).tanh() * 2; });
  model.SetLoss("sum", Sum);
  MoveTo(device_.device, model);
  const Chain chain = ChainWithTimes(model, input_, target_, device_.execution);
  const auto executor =
      Executor::Create(&model, chain, RecomputeAll(chain), device_.execution).value();
  const WorkClock clock;
  const StepMeters meters(device_.execution);
  EXPECT_EQ(SecondsOf([&] { return PlainStep(model, input_, target_, meters); }), 2 + 5);
  EXPECT_EQ(SecondsOf([&] { return executor->Step(input_, target_); }), 2 + 2 + 5);
}

TEST_F(StepTimeTest, IsWhatTheDeviceDoesForAStepOfAGraph) {
  GraphModel model("working");
  const int x = model.AddInput("x");
  const int fc = model.AddModule("fc", "linear", x, nn::Linear(8, 8));
  const int work =
      model.AddFunction("work", "work", {fc}, [](const auto& in) { return Working::apply(in[0]); });
  model.AddFunction("loss", "sum", {work}, [](const auto& in) { return in[0].sum(); });
  MoveTo(device_.device, model);
  ProfileOptions options;
  options.bytes_only = true;
  options.device = device_.execution;
  const Profile profile = ProfileGraph(model, {input_}, target_, options).value();
  const Graph& graph = std::get<Graph>(profile.problem);
  const auto executor =
      Executor::Create(&model, graph, StoreAllSchedule(graph), device_.execution).value();
  const WorkClock clock;
  const StepMeters meters(device_.execution);
  EXPECT_EQ(SecondsOf([&] { return PlainGraphStep(model, {input_}, target_, meters); }), 2 + 5);
  EXPECT_EQ(SecondsOf([&] { return executor->Step({input_.clone()}, target_); }), 2 + 5);
}

// Of two stages: the second multiplies matrices, and what it saves of its own goes to the host and comes back.
class MovingStepTest : public testing::Test {
 protected:
  MovingStepTest() {
    ModelStage scale;
    scale.name = scale.op_kind = "scale";
    const at::Tensor weight = torch::ones({8}).requires_grad_();
    scale.parameters = {weight};
    scale.forward = [weight](const at::Tensor& x) { return x * weight; };
    model_.AddStage(std::move(scale));
    model_.AddFunction("block", "matmul_exp", [this](const at::Tensor& x) {
      if (hides_) hidden_.push_back(at::empty({1024}, x.options()));
      return x.matmul(x).exp().exp();
    });
    model_.SetLoss("sum", Sum);
    MoveTo(device_->device(), model_);
    const Chain chain = ChainWithTimes(model_, input_, input_, device_.get());
    const Schedule schedule = {ForwardSave(1),
                               ForwardSave(2),
                               OffloadStart(TensorKind::kSaved, 2, 1),
                               OffloadWait(TensorKind::kSaved, 2, 1),
                               ForwardSave(3),
                               Backward(3),
                               PrefetchStart(TensorKind::kSaved, 2, 1),
                               PrefetchWait(TensorKind::kSaved, 2, 1),
                               Backward(2),
                               Backward(1)};
    executor_ = Executor::Create(&model_, chain, schedule, device_.get()).value();
  }

  absl::Status Step() { return executor_->Step(input_, input_).status(); }

  const std::unique_ptr<TestDevice> device_ =
      TestDevice::Create(FastLink(/*full_duplex=*/true)).value();
  const at::Tensor input_ = torch::rand({8, 8}).to(device_->device());
  ChainModel model_{"moving"};
  bool hides_ = false;
  std::vector<at::Tensor> hidden_;
  std::unique_ptr<Executor> executor_;
};

TEST_F(MovingStepTest, AWorkspaceThatAThreadTakesIsNotTheGraphs) {
  const int64_t before = TestDevice::memory().stats().requested_bytes;
  absl::Status status;
  std::thread([&] { status = Step(); }).join();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_GE(TestDevice::memory().stats().requested_bytes, before + TestDevice::kWorkspaceBytes);
}

TEST_F(MovingStepTest, WhatAGraphHoldsEachTimeCannotMove) {
  hides_ = true;
  EXPECT_TRUE(Step().ok());
  const absl::Status status = Step();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  const auto failure = GetStepFailure(status);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->fault, StepFault::kImmovable);
  hides_ = false;
  EXPECT_TRUE(Step().ok());
}

// The engine runs what has a higher number first, if it has it: the thread of the device must not begin with the root
// that it happens to get first.
TEST(DeviceBackward, RootsComeInTheOrderOfTheirNumbers) {
  static auto* const order = new std::vector<int64_t>();
  struct Noting : torch::autograd::Function<Noting> {
    static at::Tensor forward(AutogradContext* context, const at::Tensor& x, int64_t number) {
      context->saved_data["number"] = number;
      return x.clone();
    }
    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
      order->push_back(context->saved_data["number"].toInt());
      return {gradients[0], at::Tensor()};
    }
  };
  constexpr int64_t kRoots = 200;
  const at::Tensor x = torch::ones({1}).to(TrainingDeviceNamed("test").device).requires_grad_();
  std::vector<at::Tensor> roots;
  torch::autograd::edge_list places;
  std::vector<int64_t> expected;
  for (int64_t i = 0; i < kRoots; ++i) {
    roots.push_back(Noting::apply(x, i));
    places.push_back(torch::autograd::impl::gradient_edge(roots.back()));
    expected.insert(expected.begin(), i);
  }
  const std::vector<at::Tensor> gradients(kRoots, at::ones_like(x));
  for (const auto& run : std::vector<std::function<void()>>{
           [&] { RunBackward(roots, {}); }, [&] { RunBackwardAt(places, gradients); },
           [&] { RunBackwardFrom(places, gradients); }}) {
    order->clear();
    run();
    EXPECT_EQ(*order, expected);
    // The graph is used up.
    for (int64_t i = 0; i < kRoots; ++i) {
      roots[static_cast<size_t>(i)] = Noting::apply(x, i);
      places[static_cast<size_t>(i)] =
          torch::autograd::impl::gradient_edge(roots[static_cast<size_t>(i)]);
    }
  }
}

// Autograd's thread for the device holds that backward's gradient while the forward goes on, or not any more.
TEST(InnerBackward, AStageWithOneTakesTheSameEachTime) {
  const TrainingDevice& device = TrainingDeviceNamed("test");
  ChainModel model("inner");
  model.AddStage("fc", "linear", nn::Linear(64, 64));
  ModelStage stage;
  stage.name = stage.op_kind = "inner";
  stage.must_keep = true;
  stage.forward = [](const at::Tensor& x) {
    at::Tensor slope = torch::autograd::grad({x.pow(2).sum()}, {x}, {}, true)[0].detach().sum();
    return x.exp().exp() * slope;
  };
  model.AddStage(std::move(stage));
  model.SetLoss("sum", Sum);
  MoveTo(device.device, model);
  const at::Tensor input = torch::rand({32, 64}).to(device.device);
  const Chain chain = ChainWithTimes(model, input, input, device.execution);
  const auto executor =
      Executor::Create(&model, chain, StoreAllSchedule(chain), device.execution).value();
  Bytes peak;
  for (int step = 0; step < 40; ++step) {
    const auto report = executor->Step(input, input);
    ASSERT_TRUE(report.ok()) << report.status();
    if (step == 0) peak = report->peak_blocks;
    EXPECT_EQ(report->peak_blocks, peak) << step;
    EXPECT_EQ(
        ChainWithTimes(model, input, input, device.execution).stage(2).forward_saving_overhead,
        chain.stage(2).forward_saving_overhead);
  }
}

// What a backward that failed left in the queue of the device's thread, and what that thread ran last.
TEST(DeviceBackward, EmptyQueuesWaitsForTheDevicesThread) {
  const c10::Device device = TrainingDeviceNamed("test").device;
  // Of the calling thread's queue, too.
  const HeldBackward held(device, /*others=*/2);
  EmptyQueues(device);
  EXPECT_TRUE(held.has_ended());
}

TEST(DeviceBackward, EndsWhenTheDevicesThreadHasLetGo) {
  const c10::Device device = TrainingDeviceNamed("test").device;
  { const HeldBackward counts(device); }
  const at::Tensor x = torch::ones({4}).to(device).requires_grad_();
  for (const bool fails : {false, true}) {
    const at::Tensor y = x.exp().sum();
    y.register_hook([fails](const at::Tensor& gradient) {
      TORCH_CHECK(!fails, "a hook fails");
      return gradient;
    });
    const int64_t before = BackwardsAsked();
    EXPECT_EQ(ErrorOf([&] { RunBackward({y}, {}); }) == "nothing", !fails);
    EXPECT_EQ(BackwardsAsked() - before, fails ? 3 : 2);
  }
}

// A model with two outputs, losses both, and a caller who begins the backward at them.
class TwoRootsTest : public testing::TestWithParam<std::string> {
 protected:
  TwoRootsTest() {
    torch::manual_seed(3);
    const int x = model_.AddInput("x");
    const int trunk = model_.AddModule("trunk", "linear", x, nn::Linear(8, 8));
    for (const char* const name : {"first", "second"}) {
      const int head = model_.AddModule(name, "linear", trunk, nn::Linear(8, 4));
      model_.MarkOutput(model_.AddFunction(
          name, "loss", {head}, [](const auto& in) { return in[0].tanh().square().mean(); }));
    }
    MoveTo(device_.device, model_);
  }
  void SetUp() override { SKIP_IF_MISSING(device_); }

  std::vector<at::Tensor> TakeGradients() const {
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& parameter : model_.parameters()) {
      gradients.push_back(parameter.grad().cpu());
      parameter.mutable_grad() = at::Tensor();
    }
    return gradients;
  }

  const TrainingDevice& device_ = TrainingDeviceNamed(GetParam());
  GraphModel model_{"two roots"};
  const at::Tensor input_ = torch::randn({5, 8}).to(device_.device);
};

// LibTorch's engine hands the roots over one by one, and the device's thread runs what it has got. The roots between, which
// are older than the step, keep it busy handing over while it has the first loss and not yet the second.
TEST_P(TwoRootsTest, MayComeInAnyOrder) {
  const at::Tensor other = torch::ones({1}).to(device_.device).requires_grad_();
  const Profile profile = [this] {
    ProfileOptions options;
    options.bytes_only = true;
    options.device = device_.execution;
    return ProfileGraph(model_, {input_}, {}, options).value();
  }();
  const Graph& graph = std::get<Graph>(profile.problem);
  const auto planned =
      PlannedModule::Create(&model_, graph, StoreAllSchedule(graph), device_.execution).value();
  std::vector<at::Tensor> expected;
  for (int step = 0; step < 8; ++step) {
    std::vector<at::Tensor> roots;
    for (int i = 0; i < 2000; ++i) roots.push_back(other * 1);
    const std::vector<at::Tensor> losses = planned->ForwardAll({input_});
    roots.insert(roots.begin(), losses[0]);
    roots.push_back(losses[1]);
    ASSERT_EQ(ErrorOf([&] { torch::autograd::backward(roots); }), "nothing");
    const std::vector<at::Tensor> gradients = TakeGradients();
    if (step == 0) expected = gradients;
    for (size_t i = 0; i < gradients.size(); ++i) EXPECT_TRUE(gradients[i].equal(expected[i]));
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, TwoRootsTest, testing::Values("cpu", "test", "cuda"),
                         [](const auto& device) { return device.param; });

// Of a graph with two losses, under the caller's own backward.
class CallersBackwardTest : public testing::TestWithParam<std::string>, protected GraphTraining {
 protected:
  CallersBackwardTest() : GraphTraining("mixed", TrainingDeviceNamed(GetParam())) {
    const Profile profile = Profiled();
    const Graph& graph = std::get<Graph>(profile.problem);
    planned_ =
        PlannedModule::Create(&graph_.model, graph, StoreAllSchedule(graph), device_.execution)
            .value();
    plain_ = Plain();
  }
  ~CallersBackwardTest() override { device_.ClearLimit(); }
  void SetUp() override { SKIP_IF_MISSING(device_); }

  // Whether a backward that may take so much more than the forward left runs out of memory.
  bool BackwardFails(Bytes more) {
    Rewind();
    const at::Tensor loss = planned_->forward(Inputs(), graph_.target);
    device_.LimitMemory(more);
    bool failed = false;
    try {
      loss.backward();
    } catch (const c10::OutOfMemoryError&) {
      failed = true;
    }
    device_.ClearLimit();
    return failed;
  }

  std::unique_ptr<PlannedModule> planned_;
  GraphOutcome plain_;
};

TEST_P(CallersBackwardTest, MayGoThroughAKeptGraphAgain) {
  const std::vector<at::Tensor> inputs = Inputs();
  const auto train = [&](const std::function<at::Tensor()>& forward) {
    Rewind();
    const at::Tensor first = forward();
    const at::Tensor second = forward();
    first.backward({}, /*retain_graph=*/true);
    second.backward({}, /*retain_graph=*/true);
    first.backward();
    second.backward();
    return After(0);
  };
  const GraphOutcome plain = train([&] {
    at::Tensor sum;
    for (const at::Tensor& loss : PlainLosses(graph_.model, inputs, graph_.target)) {
      sum = sum.defined() ? sum + loss : loss;
    }
    return sum;
  });
  const GraphOutcome planned = train([&] { return planned_->forward(inputs, graph_.target); });
  EXPECT_EQ(planned.gradients, plain.gradients);
  EXPECT_TRUE(planned.random == plain.random);
}

TEST_P(CallersBackwardTest, WhatOneThatFailedLeftIsGoneAfterTheNextForward) {
  if (!device_.limits_memory()) GTEST_SKIP() << "its memory has no limit to the byte";
  const int64_t peak = planned_->prediction().peak.value();
  const Bytes live = meter_->current();
  int failures = 0;
  int left = 0;
  for (int64_t more = 0; more < peak; more += peak / 60) {
    if (!BackwardFails(Bytes(more))) continue;
    ++failures;
    left += meter_->current() > live ? 1 : 0;
    {
      const torch::NoGradGuard no_grad;
      planned_->forward(Inputs(), graph_.target);
    }
    EXPECT_EQ(meter_->current(), live) << more;
  }
  EXPECT_GT(failures, 3);
  // Elsewhere the device's thread lets go of it at some time.
  if (device_.device.is_cpu()) {
    EXPECT_GT(left, 0);
  }
  Rewind();
  const at::Tensor loss = planned_->forward(Inputs(), graph_.target);
  loss.backward();
  EXPECT_EQ(After(0).gradients, plain_.gradients);
}

TEST_P(CallersBackwardTest, WhatOneThatFailedLeftIsGoneWithTheModule) {
  if (!device_.limits_memory()) GTEST_SKIP() << "its memory has no limit to the byte";
  const Bytes live = meter_->current();
  int failures = 0;
  for (int64_t more = 0; more < 100'000; more += 10'000) {
    failures += BackwardFails(Bytes(more)) ? 1 : 0;
  }
  EXPECT_GT(failures, 0);
  planned_.reset();
  EXPECT_EQ(meter_->current(), live);
}

INSTANTIATE_TEST_SUITE_P(Devices, CallersBackwardTest, testing::Values("cpu", "test", "cuda"),
                         [](const auto& device) { return device.param; });

// Whether planned steps wait for the device where a loop of plain training does not, which reads no loss.
class Waits {
 protected:
  // Of the second and third step.
  template <class Step>
  static int64_t WaitsOf(c10::Device device, const Step& step) {
    step();
    const WaitCount waits(device);
    step();
    step();
    return waits.count();
  }
};

class WaitsTest : public testing::TestWithParam<std::string>, protected Waits {
 protected:
  void SetUp() override { SKIP_IF_MISSING(device_); }

  const TrainingDevice& device_ = TrainingDeviceNamed(GetParam());
};

TEST_P(WaitsTest, OfPlannedModulesAreThoseOfThePlainLoop) {
  for (const std::string name : {"plain_cnn", "norm_cnn", "tied"}) {
    SCOPED_TRACE(name);
    const TestNetwork network = MakeTestNetwork(name, device_);
    const ChainModel& model = network.model;
    const Chain chain = ChainWithTimes(model, network.input, network.target, device_.execution);
    const auto planned =
        PlannedModule::Create(&model, chain, RecomputeAll(chain), device_.execution).value();
    const auto train = [&](const auto& forward) {
      return WaitsOf(device_.device,
                     [&] { model.loss()(forward(network.input), network.target).backward(); });
    };
    const int64_t plain = train([&](const at::Tensor& x) { return PlainForward(model, x); });
    EXPECT_EQ(train([&](const at::Tensor& x) { return planned->forward(x); }), plain);
    // Those that are told of, and measured by instruction.
    int ended = 0;
    for (const bool measures : {false, true}) {
      EXPECT_EQ(train([&](const at::Tensor& x) {
                  return planned
                      ->BeginStep({x}, {}, measures,
                                  [&ended](const StepEnd& end) { ended += end.report.ok(); })
                      .value()
                      .front();
                }),
                plain)
          << measures;
    }
    EXPECT_EQ(ended, 6);
  }
}

TEST_P(WaitsTest, OfWholeStepsAreThoseOfThePlainLoop) {
  for (const std::string name : {"plain_cnn", "norm_cnn", "tied"}) {
    SCOPED_TRACE(name);
    const TestNetwork network = MakeTestNetwork(name, device_);
    const ChainModel& model = network.model;
    const Chain chain = ChainWithTimes(model, network.input, network.target, device_.execution);
    const auto executor =
        Executor::Create(&model, chain, RecomputeAll(chain), device_.execution).value();
    const int64_t plain = WaitsOf(device_.device, [&] {
      model.loss()(PlainForward(model, network.input), network.target).backward();
    });
    Later<MeasuredStep> measured;
    for (Later<MeasuredStep>* const into :
         {static_cast<Later<MeasuredStep>*>(nullptr), &measured}) {
      executor->MeasureInto(into);
      EXPECT_EQ(WaitsOf(device_.device,
                        [&] {
                          const auto report = executor->Step(network.input, network.target);
                          ASSERT_TRUE(report.ok()) << report.status();
                        }),
                plain)
          << (into != nullptr);
    }
    EXPECT_TRUE(CheckMeasuredStep(measured, RecomputeAll(chain)).ok());
    EXPECT_EQ(WaitsOf(device_.device,
                      [&] {
                        const auto report = PlainStep(model, network.input, network.target,
                                                      StepMeters(device_.execution));
                        ASSERT_TRUE(report.ok()) << report.status();
                      }),
              plain);
  }
}

// What a forward that may run again keeps, and what its recompute puts back, buffers say, waits for no copies of plans.
TEST(HostCopiesTest, ComputeHasThoseOfPlainSteps) {
  const TrainingDevice& device = TrainingDeviceNamed("test");
  const TestNetwork network = MakeTestNetwork("norm_cnn", device);
  const ChainModel& model = network.model;
  const Chain chain = ChainWithTimes(model, network.input, network.target, device.execution);
  const auto planned =
      PlannedModule::Create(&model, chain, RecomputeAll(chain), device.execution).value();
  const auto train = [&](const auto& forward) {
    const int64_t before = TestDevice::host_copies();
    model.loss()(forward(network.input), network.target).backward();
    return TestDevice::host_copies() - before;
  };
  ASSERT_FALSE(model.buffers().empty());
  const int64_t plain = train([&](const at::Tensor& x) { return PlainForward(model, x); });
  EXPECT_EQ(train([&](const at::Tensor& x) { return planned->forward(x); }), plain);
  // The loss that a whole step reports.
  const auto executor =
      Executor::Create(&model, chain, RecomputeAll(chain), device.execution).value();
  const int64_t before = TestDevice::host_copies();
  ASSERT_TRUE(executor->Step(network.input, network.target).ok());
  EXPECT_EQ(TestDevice::host_copies() - before, plain);
}

INSTANTIATE_TEST_SUITE_P(Devices, WaitsTest, testing::Values("test", "cuda"),
                         [](const auto& device) { return device.param; });

class GraphWaitsTest : public testing::TestWithParam<std::string>,
                       protected Waits,
                       protected GraphTraining {
 protected:
  GraphWaitsTest()
      : GraphTraining("mixed", TrainingDeviceNamed(GetParam())), profile_(Profiled()) {}
  void SetUp() override { SKIP_IF_MISSING(device_); }

  const Graph& graph() const { return std::get<Graph>(profile_.problem); }

  // Of whole steps, and of a loop of the caller's.
  void ExpectThoseOfPlainSteps(const Schedule& schedule, ExecutionDevice* device) {
    SCOPED_TRACE(Text(schedule));
    const int64_t plain = WaitsOf(device_.device, [&] {
      SumOf(PlainLosses(graph_.model, Inputs(), graph_.target)).backward();
    });
    const auto executor = Executor::Create(&graph_.model, graph(), schedule, device);
    ASSERT_TRUE(executor.ok()) << executor.status();
    EXPECT_EQ(WaitsOf(device_.device,
                      [&] { ASSERT_TRUE((*executor)->Step(Inputs(), graph_.target).ok()); }),
              plain);
    const auto planned = PlannedModule::Create(&graph_.model, graph(), schedule, device);
    ASSERT_TRUE(planned.ok()) << planned.status();
    EXPECT_EQ(
        WaitsOf(device_.device, [&] { (*planned)->forward(Inputs(), graph_.target).backward(); }),
        plain);
  }

  const Profile profile_;
};

TEST_P(GraphWaitsTest, OfPlannedGraphsAreThoseOfPlainSteps) {
  ExpectThoseOfPlainSteps(StoreAllSchedule(graph()), device_.execution);
}

TEST_P(GraphWaitsTest, OfPlansThatRecomputeToo) {
  const Graph fixed = WithFixedCosts(graph());
  int recomputing = 0;
  for (const double share : {0.85, 0.7, 0.6}) {
    const auto budget = ResolveBudget(fixed, ShareOfStoreAll{share}, PlanOptions());
    ASSERT_TRUE(budget.ok()) << budget.status();
    const auto plan = MakePlan(fixed, *budget, PlanOptions());
    ASSERT_TRUE(plan.ok()) << plan.status();
    if (plan->prediction.recomputed_forwards == 0) continue;  // or nothing fits
    ++recomputing;
    ExpectThoseOfPlainSteps(plan->schedule, device_.execution);
  }
  EXPECT_GT(recomputing, 0);
}

TEST_P(GraphWaitsTest, OfPlansThatCopyToo) {
  const auto linked = MakeLinkedDevice(device_, FastLink(/*full_duplex=*/true));
  const Schedule store_all = StoreAllSchedule(graph());
  std::mt19937 random(13);
  const Schedule moving = WithTrips(graph(), *linked->link(), store_all, 8, &random);
  ASSERT_GT(moving.size(), store_all.size());
  ExpectThoseOfPlainSteps(moving, linked.get());
}

INSTANTIATE_TEST_SUITE_P(Devices, GraphWaitsTest, testing::Values("test", "cuda"),
                         [](const auto& device) { return device.param; });

// On a device that stands still until it is told to go on.
class LateDeviceTest : public testing::Test {
 protected:
  LateDeviceTest() {
    const Chain chain =
        ChainWithTimes(network_.model, network_.input, network_.target, device_.execution);
    schedule_ = RecomputeAll(chain);
    executor_ = Executor::Create(&network_.model, chain, schedule_, device_.execution).value();
    EXPECT_TRUE(executor_->Step(network_.input, network_.target).ok());  // warm
  }
  ~LateDeviceTest() override { GoOn(); }

  static void StandStill() {
    TestDevice::Synchronize();
    TestDevice::compute().Hold();
  }
  static void GoOn() {
    TestDevice::compute().Resume();
    TestDevice::Synchronize();
  }

  const TrainingDevice& device_ = TrainingDeviceNamed("test");
  const TestNetwork network_ = MakeTestNetwork("plain_cnn", device_);
  Schedule schedule_;
  std::unique_ptr<Executor> executor_;
};

TEST_F(LateDeviceTest, LossAndTimesComeWhenItHasDoneTheStep) {
  Later<MeasuredStep> measured;
  executor_->MeasureInto(&measured);
  network_.model.ZeroGradients();
  StandStill();
  const auto first = executor_->Step(network_.input, network_.target);
  ASSERT_TRUE(first.ok()) << first.status();
  const Later<MeasuredStep> of_first = measured;
  const auto second = executor_->Step(network_.input, network_.target);
  ASSERT_TRUE(second.ok()) << second.status();
  for (const StepReport* const report : {&*first, &*second}) {
    EXPECT_FALSE(report->loss.ready());
    EXPECT_FALSE(report->wall_time.ready());
    // Nothing of the device is in these.
    EXPECT_GT(report->peak, Bytes(0));
    EXPECT_EQ(report->count(Op::kBackward), network_.model.length() + 1);
  }
  EXPECT_FALSE(of_first.ready());
  EXPECT_FALSE(measured.ready());
  GoOn();
  const WaitCount waits(device_.device);
  for (const StepReport* const report : {&*first, &*second}) {
    EXPECT_TRUE(report->loss.ready());
    EXPECT_TRUE(report->wall_time.ready());
    EXPECT_GT(report->wall_time, Nanos(0));
  }
  EXPECT_EQ(of_first.Get().step_time, first->wall_time.Get());
  EXPECT_TRUE(CheckMeasuredStep(of_first, schedule_).ok());
  EXPECT_TRUE(CheckMeasuredStep(measured, schedule_).ok());
  EXPECT_EQ(waits.count(), 0);
  network_.model.ZeroGradients();
  const auto plain =
      PlainStep(network_.model, network_.input, network_.target, StepMeters(device_.execution));
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(first->loss, plain->loss);
  EXPECT_EQ(second->loss, plain->loss);
}

TEST_F(LateDeviceTest, WhoReadsATimeWaitsForItsStep) {
  StandStill();
  const auto report = executor_->Step(network_.input, network_.target);
  ASSERT_TRUE(report.ok()) << report.status();
  const WaitCount waits(device_.device);
  EXPECT_GT(report->wall_time, Nanos(0));
  EXPECT_EQ(waits.count(), 1);
  EXPECT_TRUE(report->loss.ready());
  EXPECT_EQ(waits.count(), 1);
}

// Which is the host's where nobody said which device the step is on.
TEST_F(LateDeviceTest, ALossComesWithItsDeviceWhateverClockTheStepGoesBy) {
  const auto expected =
      PlainStep(network_.model, network_.input, network_.target, StepMeters(device_.execution));
  ASSERT_TRUE(expected.ok()) << expected.status();
  StandStill();
  const auto report = PlainStep(network_.model, network_.input, network_.target, device_.meter());
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->wall_time.ready());
  EXPECT_FALSE(report->loss.ready());
  const WaitCount waits(device_.device);
  EXPECT_EQ(report->loss, expected->loss);
  EXPECT_EQ(waits.count(), 1);
}

// On whatever thread; here after the executor is gone.
TEST_F(LateDeviceTest, AReportMayOutliveItsExecutor) {
  Later<MeasuredStep> measured;
  executor_->MeasureInto(&measured);
  StandStill();
  const StepReport report = executor_->Step(network_.input, network_.target).value();
  executor_.reset();
  std::thread([&] {
    EXPECT_GT(report.loss, 0.0);
    EXPECT_TRUE(CheckMeasuredStep(measured, schedule_).ok());
  }).join();
  EXPECT_GT(report.wall_time, Nanos(0));
}

// Its marks are nobody's; the host does not wait for what the device still has to do of it.
TEST_F(LateDeviceTest, AStepThatFailsLeavesNoTimeAndWaitsForNothing) {
  bool fails = false;
  ChainModel model("fails");
  model.AddStage("fc", "linear", nn::Linear(8, 8));
  model.AddFunction("may fail", "tanh", [&fails](const at::Tensor& x) {
    TORCH_CHECK(!fails, "as it is told to");
    return x.tanh();
  });
  model.SetLoss("sum", Sum);
  MoveTo(device_.device, model);
  const at::Tensor input = torch::rand({4, 8}).to(device_.device);
  const Chain chain = ChainWithTimes(model, input, input, device_.execution);
  const auto executor =
      Executor::Create(&model, chain, StoreAllSchedule(chain), device_.execution).value();
  Later<MeasuredStep> measured;
  executor->MeasureInto(&measured);
  EXPECT_TRUE(executor->Step(input, input).ok());
  const MeasuredStep before = measured;
  fails = true;
  StandStill();
  {
    const WaitCount waits(device_.device);
    EXPECT_FALSE(executor->Step(input, input).ok());
    EXPECT_EQ(waits.count(), 0);
  }
  EXPECT_EQ(measured.Get(), before);
  fails = false;
  const auto next = executor->Step(input, input);
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_FALSE(next->wall_time.ready());
  GoOn();
  EXPECT_EQ(measured.Get().step_time, next->wall_time.Get());
}

}  // namespace
}  // namespace stowage
