#include "client/torch/execute/planned_module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "client/torch/execute/plain_step.h"
#include "client/torch/memory/memory_meter.h"
#include "client/torch/profile/graph_profiler.h"
#include "solvers/planner.h"
#include "solvers/schedule/instance.h"
#include "tests/client/device/training_devices.h"
#include "tests/client/torch/autocast.h"
#include "tests/client/torch/error_of.h"
#include "tests/client/torch/test_graphs.h"
#include "tests/client/torch/training_outcome.h"

namespace stowage {
namespace {

namespace nn = torch::nn;
using testing::HasSubstr;
using LossOfBatch = std::function<at::Tensor()>;

// Two losses, tied weights, a tensor with three readers, dropout, statistics, an op in place.
GraphModel TwoLosses() {
  GraphModel model("two losses");
  const auto conv = [](int64_t in, int64_t out) {
    return nn::Conv2d(nn::Conv2dOptions(in, out, 3).padding(1));
  };
  const nn::Conv2d shared = conv(6, 6);
  const int image = model.AddInput("image");
  const int stem = model.AddModule("stem", "conv", image, conv(3, 6));
  const int norm = model.AddModule("norm", "batch_norm", stem, nn::BatchNorm2d(6));
  ModelNode relu;
  relu.name = "relu";
  relu.op_kind = "relu_";
  relu.inputs = {norm};
  relu.in_place = true;
  relu.forward = [](const std::vector<at::Tensor>& x) { return at::Tensor(x[0]).relu_(); };
  const int active = model.AddNode(relu);
  const int left = model.AddModule("left", "conv", active, shared);
  const int drop = model.AddFunction("drop", "dropout", {left},
                                     [](const auto& x) { return at::dropout(x[0], 0.3, true); });
  const int right = model.AddModule("right", "conv", drop, shared);
  const int sum = model.AddFunction("sum", "add", {active, right, drop},
                                    [](const auto& x) { return x[0] * x[1] + x[2]; });
  const int pool = model.AddFunction("pool", "avg_pool", {sum}, [](const auto& x) {
    return x[0].mean({2, 3});
  });
  const int head = model.AddModule("head", "linear", pool, nn::Linear(6, 4));
  model.AddFunction("penalty", "mean", {drop}, [](const auto& x) { return x[0].square().mean(); });
  ModelNode loss;
  loss.name = "loss";
  loss.op_kind = "cross_entropy";
  loss.inputs = {head};
  loss.reads_target = true;
  loss.forward = [](const std::vector<at::Tensor>& x) {
    return nn::functional::cross_entropy(x[0], x[1]);
  };
  model.AddNode(loss);
  return model;
}

using AutocastCase = std::tuple<bool, std::string>;  // autocast, device

class PlannedGraphTest : public testing::TestWithParam<AutocastCase> {
 protected:
  PlannedGraphTest()
      : autocast_(Autocast(autocast() && device_.has_autocast)),
        model_((torch::manual_seed(5), TwoLosses())) {
    input_ = torch::randn({3, 3, 12, 12}).to(device_.device);
    target_ = torch::randint(4, {3}, torch::kLong).to(device_.device);
    MoveTo(device_.device, model_);
    ProfileOptions options;
    options.bytes_only = true;
    options.device = device_.execution;
    profile_ = ProfileGraph(model_, {input_}, target_, options).value();
    start_.emplace(model_, device_.device);
  }
  void SetUp() override {
    SKIP_IF_MISSING(device_);
    if (autocast() && !device_.has_autocast) GTEST_SKIP() << "LibTorch has no autocast for it";
  }

  static bool autocast() { return std::get<0>(GetParam()); }
  ScopedAutocast Autocast(bool on) const {
    return ScopedAutocast(on, /*remember_casts=*/false, device_.device.type());
  }

  const Graph& graph() const { return std::get<Graph>(profile_->problem); }

  // One that recomputes.
  Schedule TightSchedule() const {
    const Graph fixed = WithFixedCosts(graph());
    const auto budget = ResolveBudget(fixed, ShareOfStoreAll{0.8}, PlanOptions());
    const auto plan = MakePlan(fixed, budget.value(), PlanOptions());
    EXPECT_TRUE(plan.ok()) << plan.status();
    EXPECT_GT(plan.value().prediction.recomputed_forwards, 0);
    return plan.value().schedule;
  }

  LossOfBatch PlainLoop() {
    return [this] {
      at::Tensor sum;
      for (const at::Tensor& loss : PlainLosses(model_, {input_.clone()}, target_)) {
        sum = sum.defined() ? sum + loss : loss;
      }
      return sum;
    };
  }

  LossOfBatch PlannedLoop(PlannedModule* planned) {
    return [this, planned] { return planned->forward({input_.clone()}, target_); };
  }

  std::unique_ptr<PlannedModule> Make(const Schedule& schedule) {
    auto planned = PlannedModule::Create(&model_, graph(), schedule, device_.execution);
    EXPECT_TRUE(planned.ok()) << planned.status();
    return std::move(planned).value();
  }

  // Two batches at once, then their backwards, then another, of scaled losses.
  Outcome After(const LossOfBatch& forward) {
    start_->Rewind();
    const at::Tensor first = forward();
    const at::Tensor second = forward();
    {
      const torch::NoGradGuard no_grad;
      EXPECT_FALSE(forward().requires_grad());
    }
    const ScopedAutocast off = Autocast(false);
    (second * 0.5).backward();
    (first * 3).backward();
    return Outcome::Of(model_, first.item<double>(), device_.device);
  }

  const TrainingDevice& device_ = TrainingDeviceNamed(std::get<1>(GetParam()));
  const ScopedAutocast autocast_;
  GraphModel model_;
  at::Tensor input_;
  at::Tensor target_;
  std::optional<Profile> profile_;
  std::optional<Rewinder> start_;
};

TEST_P(PlannedGraphTest, LoopsAreThePlainOnes) {
  const Outcome plain = After(PlainLoop());
  ExpectGradients(model_);
  std::vector<Schedule> schedules = {StoreAllSchedule(graph())};
  const Graph fixed = WithFixedCosts(graph());
  for (const double share : {0.8, 0.6}) {
    const auto budget = ResolveBudget(fixed, ShareOfStoreAll{share}, PlanOptions());
    const auto plan = MakePlan(fixed, budget.value(), PlanOptions());
    ASSERT_TRUE(plan.ok()) << plan.status();
    if (plan->status == PlanStatus::kFound) schedules.push_back(plan->schedule);
  }
  ASSERT_GT(schedules.size(), 1U);
  for (const Schedule& schedule : schedules) {
    const auto planned = Make(schedule);
    const Bytes live = device_.live();
    ExpectEqual(plain, After(PlannedLoop(planned.get())));
    EXPECT_EQ(device_.live(), live);
  }
}

// The graph is the caller's own: autograd.grad finds the parameters in it, and hooks on them run once.
TEST_P(PlannedGraphTest, ItsGraphIsAnOrdinaryOne) {
  const LossOfBatch plain = PlainLoop();
  const auto planned = Make(TightSchedule());
  std::vector<at::Tensor> trained;
  for (const at::Tensor& parameter : model_.parameters()) {
    if (parameter.requires_grad()) trained.push_back(parameter);
  }
  const auto gradients = [&](const LossOfBatch& forward) {
    start_->Rewind();
    const at::Tensor loss = forward();
    const ScopedAutocast off = Autocast(false);
    return torch::autograd::grad({loss}, trained);
  };
  const std::vector<at::Tensor> expected = gradients(plain);
  const std::vector<at::Tensor> found = gradients(PlannedLoop(planned.get()));
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(found[i].equal(expected[i])) << i;
  for (const at::Tensor& parameter : trained) EXPECT_FALSE(parameter.grad().any().item<bool>());
  int hooked = 0;
  const unsigned hook = trained.front().register_hook([&](const at::Tensor&) { ++hooked; });
  const at::Tensor loss = PlannedLoop(planned.get())();
  {
    const ScopedAutocast off = Autocast(false);
    loss.backward();
  }
  trained.front().remove_hook(hook);
  EXPECT_EQ(hooked, 1);
}

TEST_P(PlannedGraphTest, ItsPeakIsThePlans) {
  for (const Schedule& schedule : {StoreAllSchedule(graph()), TightSchedule()}) {
    const auto planned = Make(schedule);
    start_->Rewind();
    const at::Tensor input = input_.clone();
    MemoryMeter* const meter = device_.meter();
    const Bytes before = device_.live();
    meter->ResetPeak();
    at::Tensor loss = planned->forward({input}, target_);
    {
      const ScopedAutocast off = Autocast(false);
      loss.backward();
    }
    // The caller holds the input, the two losses, their sum and its gradient; sums of tied parameters are no activations.
    int64_t took = (meter->peak() - before).value() + static_cast<int64_t>(input.nbytes());
    for (const at::Tensor& tied : model_.tied_parameters()) {
      took -= static_cast<int64_t>(tied.nbytes());
    }
    EXPECT_LE(took, planned->prediction().peak.value() + 32);
    // Elsewhere plans count whole blocks.
    if (device_.exact) {
      EXPECT_GE(took + kScalars.value(), planned->prediction().peak.value());
    }
  }
}

// Backwards through graphs that are kept, as the caller has them: `loss` makes one of a batch that he holds.
using Backwards = std::function<void(const LossOfBatch& loss)>;

class KeptGraphTest : public PlannedGraphTest {
 protected:
  // After these backwards, of which the first forward's loss is compared, too.
  Outcome AfterAll(const LossOfBatch& forward, const Backwards& backwards) {
    start_->Rewind();
    double first = 0;
    backwards([&] {
      const at::Tensor loss = forward();
      if (first == 0) first = loss.item<double>();
      return loss;
    });
    return Outcome::Of(model_, first, device_.device);
  }

  void ExpectLikePlain(const Backwards& backwards) {
    const auto train = [&](const LossOfBatch& forward) {
      return AfterAll(forward, [&](const LossOfBatch& loss) {
        const ScopedAutocast scope = Autocast(autocast());
        backwards(loss);
      });
    };
    const Outcome plain = train([this] {
      at::Tensor sum;
      for (const at::Tensor& loss : PlainLosses(model_, {input_}, target_)) {
        sum = sum.defined() ? sum + loss : loss;
      }
      return sum;
    });
    ExpectGradients(model_);
    for (const Schedule& schedule : {StoreAllSchedule(graph()), TightSchedule()}) {
      const auto planned = Make(schedule);
      const Bytes live = device_.live();
      ExpectEqual(plain, train([&] { return planned->forward({input_}, target_); }));
      EXPECT_EQ(device_.live(), live);
    }
  }

  void Backward(const at::Tensor& loss, bool keep) const {
    const ScopedAutocast off = Autocast(false);
    loss.backward({}, keep);
  }

  std::vector<at::Tensor> Trained() const {
    std::vector<at::Tensor> trained;
    for (const at::Tensor& parameter : model_.parameters()) {
      if (parameter.requires_grad()) trained.push_back(parameter);
    }
    return trained;
  }
};

TEST_P(KeptGraphTest, MayBeGoneThroughAgain) {
  ExpectLikePlain([this](const LossOfBatch& forward) {
    const at::Tensor loss = forward();
    Backward(loss, /*keep=*/true);
    Backward(loss * 3, /*keep=*/true);
    Backward(loss, /*keep=*/false);
    EXPECT_THAT(ErrorOf([&] { Backward(loss, false); }), HasSubstr("a second time"));
  });
}

TEST_P(KeptGraphTest, MayBeGoneThroughBetweenOthers) {
  ExpectLikePlain([this](const LossOfBatch& forward) {
    const at::Tensor first = forward();
    const at::Tensor second = forward();
    Backward(second, /*keep=*/true);
    Backward(first, /*keep=*/true);
    const at::Tensor third = forward();
    Backward(second, /*keep=*/false);
    Backward(third, /*keep=*/false);
    Backward(first, /*keep=*/false);
  });
}

// Autograd goes through the nodes alone that lead there.
TEST_P(KeptGraphTest, GradientsOfAPartAreThoseOfPlainTraining) {
  const std::vector<at::Tensor> trained = Trained();
  ExpectLikePlain([&](const LossOfBatch& forward) {
    const at::Tensor loss = forward();
    for (const size_t part : {trained.size() - 1, trained.size() / 2, size_t{0}}) {
      const ScopedAutocast off = Autocast(false);
      const at::Tensor gradient =
          torch::autograd::grad({loss}, {trained[part]}, {}, /*retain_graph=*/true)[0];
      trained[part].mutable_grad().add_(gradient);
    }
    Backward(loss, /*keep=*/false);
  });
}

TEST_P(KeptGraphTest, GradientsOfGradientsAreRefused) {
  for (const Schedule& schedule : {StoreAllSchedule(graph()), TightSchedule()}) {
    const auto planned = Make(schedule);
    const Bytes live = device_.live();
    {
      const at::Tensor loss = planned->forward({input_}, target_);
      const ScopedAutocast off = Autocast(false);
      EXPECT_THAT(ErrorOf([&] { loss.backward({}, true, /*create_graph=*/true); }),
                  HasSubstr("no gradient of its gradient"));
      EXPECT_THAT(ErrorOf([&] { torch::autograd::grad({loss}, Trained(), {}, true, true); }),
                  HasSubstr("no gradient of its gradient"));
    }
    // What autograd has left of them goes.
    const torch::NoGradGuard no_grad;
    planned->forward({input_}, target_);
    EXPECT_EQ(device_.live(), live);
  }
}

// What the plan has dropped and nobody else holds is not there to begin anew.
TEST_P(KeptGraphTest, AnInputThatIsGoneIsNotGoneThroughAgain) {
  for (const Schedule& schedule : {StoreAllSchedule(graph()), TightSchedule()}) {
    const auto planned = Make(schedule);
    const at::Tensor loss = planned->forward(input_.clone(), target_);
    Backward(loss, /*keep=*/true);
    EXPECT_THAT(ErrorOf([&] { Backward(loss, true); }), HasSubstr("nobody holds node 0 (image"));
  }
}

std::string NameOfAutocastCase(const testing::TestParamInfo<AutocastCase>& test) {
  const auto& [autocast, device] = test.param;
  return (autocast ? "autocast_" : "plain_") + device;
}

INSTANTIATE_TEST_SUITE_P(Devices, PlannedGraphTest,
                         testing::Combine(testing::Bool(), testing::Values("cpu", "test", "cuda")),
                         NameOfAutocastCase);
INSTANTIATE_TEST_SUITE_P(Devices, KeptGraphTest,
                         testing::Combine(testing::Bool(), testing::Values("cpu", "test", "cuda")),
                         NameOfAutocastCase);

// The same network without losses of its own: of what two of its nodes make the caller has one.
GraphModel TwoOutputs(bool with_hidden) {
  const GraphModel losses = TwoLosses();
  GraphModel model("two outputs");
  for (int v = 0; v < losses.size(); ++v) {
    const ModelNode& node = losses.node(v);
    if (losses.is_input(v)) {
      model.AddInput(node.name);
    } else if (node.name != "penalty" && node.name != "loss") {
      model.AddNode(node);
    }
  }
  model.MarkOutput(model.size() - 1);
  for (int v = 0; with_hidden && v < model.size(); ++v) {
    if (model.node(v).name == "drop") model.MarkOutput(v);
  }
  return model;
}

using OutputsCase = std::tuple<bool, std::string>;  // another node reads one of them; device

class GraphOutputsTest : public testing::TestWithParam<OutputsCase> {
 protected:
  GraphOutputsTest() : model_((torch::manual_seed(5), TwoOutputs(hidden()))) {
    input_ = torch::randn({3, 3, 12, 12}).to(device_.device);
    target_ = torch::randint(4, {3}, torch::kLong).to(device_.device);
    MoveTo(device_.device, model_);
    ProfileOptions options;
    options.bytes_only = true;
    options.device = device_.execution;
    profile_ = ProfileGraph(model_, {input_}, {}, options).value();
    start_.emplace(model_, device_.device);
  }
  void SetUp() override { SKIP_IF_MISSING(device_); }

  static bool hidden() { return std::get<0>(GetParam()); }

  const Graph& graph() const { return std::get<Graph>(profile_->problem); }

  // Store-all, and one that recomputes.
  std::vector<Schedule> Schedules() const {
    const Graph fixed = WithFixedCosts(graph());
    const auto budget = ResolveBudget(fixed, ShareOfStoreAll{0.8}, PlanOptions());
    const auto plan = MakePlan(fixed, budget.value(), PlanOptions()).value();
    EXPECT_GT(plan.prediction.recomputed_forwards, 0);
    return {StoreAllSchedule(graph()), plan.schedule};
  }

  std::unique_ptr<PlannedModule> Make(const Schedule& schedule) {
    auto planned = PlannedModule::Create(&model_, graph(), schedule, device_.execution);
    EXPECT_TRUE(planned.ok()) << planned.status();
    return std::move(planned).value();
  }

  Outcome After(const std::function<std::vector<at::Tensor>()>& forward) {
    start_->Rewind();
    at::Tensor loss;
    for (int step = 0; step < 2; ++step) {
      const std::vector<at::Tensor> outputs = forward();
      EXPECT_EQ(outputs.size(), hidden() ? 2U : 1U);
      loss = nn::functional::cross_entropy(outputs[0], target_);
      if (hidden()) loss = loss + outputs[1].square().mean() * 3;
      (loss * 0.5).backward();
    }
    {
      const torch::NoGradGuard no_grad;
      EXPECT_FALSE(forward()[0].requires_grad());
    }
    return Outcome::Of(model_, loss.item<double>(), device_.device);
  }

  const TrainingDevice& device_ = TrainingDeviceNamed(std::get<1>(GetParam()));
  GraphModel model_;
  at::Tensor input_;
  at::Tensor target_;
  std::optional<Profile> profile_;
  std::optional<Rewinder> start_;
};

TEST_P(GraphOutputsTest, TheCallersLossDrivesTheBackward) {
  const Outcome plain = After([&] { return PlainOutputs(model_, {input_.clone()}, {}); });
  ExpectGradients(model_);
  for (const Schedule& schedule : Schedules()) {
    const auto planned = Make(schedule);
    const Bytes live = device_.live();
    ExpectEqual(plain, After([&] { return planned->ForwardAll({input_.clone()}); }));
    EXPECT_EQ(device_.live(), live);
  }
}

TEST_P(GraphOutputsTest, ItsPeakIsThePlans) {
  for (const Schedule& schedule : Schedules()) {
    const auto planned = Make(schedule);
    start_->Rewind();
    at::Tensor input = input_.clone();
    MemoryMeter* const meter = device_.meter();
    Bytes before = device_.live() - Bytes(static_cast<int64_t>(input.nbytes()));
    for (const at::Tensor& tied : model_.tied_parameters()) {
      before += Bytes(static_cast<int64_t>(tied.nbytes()));
    }
    std::vector<at::Tensor> inputs;
    inputs.push_back(std::move(input));
    meter->ResetPeak();
    // A loss that holds nothing but itself.
    const at::Tensor loss = planned->ForwardAll(std::move(inputs))[0].sum();
    loss.backward();
    const Bytes took = meter->peak() - before;
    EXPECT_LE(took, planned->prediction().peak + Bytes(8));
    // Elsewhere plans count whole blocks.
    if (!hidden() && device_.exact) {
      EXPECT_GE(took, planned->prediction().peak);
    }
  }
}

// Of the caller's losses each by itself, or the backward in two parts.
TEST_P(GraphOutputsTest, OutputsMayBeginBackwardsOneByOne) {
  const auto steps = [&](const std::function<std::vector<at::Tensor>()>& forward) {
    start_->Rewind();
    std::vector<at::Tensor> outputs = forward();
    for (const at::Tensor& output : outputs) output.square().mean().backward({}, true);
    const at::Tensor loss = outputs[0].sin().sum() + outputs.back().cos().sum();
    const std::vector<at::Tensor> gradients =
        torch::autograd::grad({loss}, outputs, {}, /*retain_graph=*/true);
    torch::autograd::backward(outputs, gradients);
    return Outcome::Of(model_, loss.item<double>(), device_.device);
  };
  const Outcome plain = steps([&] { return PlainOutputs(model_, {input_}, {}); });
  ExpectGradients(model_);
  for (const Schedule& schedule : Schedules()) {
    const auto planned = Make(schedule);
    const Bytes live = device_.live();
    ExpectEqual(plain, steps([&] { return planned->ForwardAll({input_}); }));
    EXPECT_EQ(device_.live(), live);
  }
}

// Of an output that others read, too: what autograd.grad and hooks see of it is what comes by all ways.
TEST_P(GraphOutputsTest, GradientsOfOutputsAreThePlainOnes) {
  const auto gradients = [&](const std::function<std::vector<at::Tensor>()>& forward) {
    start_->Rewind();
    const std::vector<at::Tensor> outputs = forward();
    const at::Tensor loss = outputs.front().sin().sum() + outputs.back().cos().sum();
    std::vector<at::Tensor> seen =
        torch::autograd::grad({loss}, outputs, {}, /*retain_graph=*/true);
    for (const at::Tensor& output : outputs) {
      output.register_hook([&seen](const at::Tensor& gradient) { seen.push_back(gradient); });
    }
    loss.backward();
    return seen;
  };
  const std::vector<at::Tensor> plain =
      gradients([&] { return PlainOutputs(model_, {input_}, {}); });
  for (const Schedule& schedule : Schedules()) {
    const auto planned = Make(schedule);
    const std::vector<at::Tensor> found = gradients([&] { return planned->ForwardAll({input_}); });
    ASSERT_EQ(found.size(), plain.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(found[i].equal(plain[i])) << i;
  }
}

// An output that nobody's loss reads gets no gradient, and what the caller keeps of one is his.
TEST_P(GraphOutputsTest, OutputsMayBeLeftOutOrKept) {
  const auto forwards = [&](const std::function<std::vector<at::Tensor>()>& forward) {
    start_->Rewind();
    const std::vector<at::Tensor> outputs = forward();
    outputs.back().square().sum().backward();
    return Outcome::Of(model_, outputs.front().sum().item<double>(), device_.device);
  };
  const Outcome plain = forwards([&] { return PlainOutputs(model_, {input_.clone()}, {}); });
  for (const Schedule& schedule : Schedules()) {
    const auto planned = Make(schedule);
    ExpectEqual(plain, forwards([&] { return planned->ForwardAll({input_.clone()}); }));
  }
}

TEST_P(GraphOutputsTest, WhatHasNoLossIsNoWholeStep) {
  const auto executor =
      Executor::Create(&model_, graph(), StoreAllSchedule(graph()), device_.execution).value();
  const absl::Status status = executor->Step(input_.clone(), {}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  const auto planned = Make(StoreAllSchedule(graph()));
  EXPECT_EQ(ErrorOf([&] { planned->forward(input_.clone()); }) == "nothing", !hidden());
  GraphModel wrong("wrong");
  wrong.MarkOutput(wrong.AddInput("image"));
  EXPECT_TRUE(absl::IsInvalidArgument(wrong.status()));
}

std::string NameOfOutputsCase(const testing::TestParamInfo<OutputsCase>& test) {
  const auto& [hidden, device] = test.param;
  return (hidden ? "hidden_" : "last_") + device;
}

INSTANTIATE_TEST_SUITE_P(Devices, GraphOutputsTest,
                         testing::Combine(testing::Bool(), testing::Values("cpu", "test", "cuda")),
                         NameOfOutputsCase);

class PlannedGraphRulesTest : public PlannedGraphTest {};

TEST_P(PlannedGraphRulesTest, WhatItCannotDoIsSaid) {
  const auto planned = Make(StoreAllSchedule(graph()));
  const LossOfBatch forward = PlannedLoop(planned.get());
  EXPECT_THAT(ErrorOf([&] { planned->forward(std::vector<at::Tensor>(), target_); }),
              HasSubstr("there are 0 inputs"));
  EXPECT_THAT(ErrorOf([&] { planned->forward({input_.clone().requires_grad_()}, target_); }),
              HasSubstr("asks for a gradient"));
  const at::Tensor loss = forward();
  {
    const torch::NoGradGuard no_grad;
    at::Tensor(model_.parameters()[0]).mul_(2);
  }
  EXPECT_THAT(ErrorOf([&] { loss.backward(); }), HasSubstr("parameter 0 of a planned step"));
}

TEST_P(PlannedGraphRulesTest, ALossThatComesAfterABackwardIsRefused) {
  Schedule schedule = StoreAllSchedule(graph());
  // The first loss is forward and backward done before the second begins.
  const auto first = static_cast<int32_t>(graph().size()) - 1;
  const auto step = [&](Op op, int32_t stage) {
    return std::find_if(schedule.begin(), schedule.end(), [&](const Instruction& instruction) {
      return instruction.op == op && instruction.stage == stage;
    });
  };
  schedule.erase(step(Op::kBackward, first));
  schedule.insert(step(Op::kForwardSave, first + 1), Backward(first));
  const absl::Status status =
      PlannedModule::Create(&model_, graph(), schedule, device_.execution).status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("comes before the forward of node"));
}

INSTANTIATE_TEST_SUITE_P(Devices, PlannedGraphRulesTest,
                         testing::Combine(testing::Values(false),
                                          testing::Values("cpu", "test", "cuda")),
                         NameOfAutocastCase);

}  // namespace
}  // namespace stowage
