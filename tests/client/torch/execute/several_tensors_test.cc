// Stages and nodes that make several tensors, side inputs and several targets: as chains and as graphs, against plain
// training and the evaluator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "client/torch/base/tensors.h"
#include "client/torch/execute/executor.h"
#include "client/torch/execute/plain_step.h"
#include "client/torch/execute/planned_module.h"
#include "client/torch/model/batch_shape.h"
#include "client/torch/model/chain_model.h"
#include "client/torch/profile/chain_profiler.h"
#include "client/torch/profile/found_state.h"
#include "client/torch/shapes/shape_profiler.h"
#include "solvers/model/canonical.h"
#include "solvers/planner.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "tests/client/device/training_devices.h"
#include "tests/client/torch/error_of.h"
#include "tests/client/torch/measured_peaks.h"
#include "tests/client/torch/network_case.h"
#include "tests/client/torch/random_schedule.h"
#include "tests/client/torch/test_graphs.h"
#include "tests/client/torch/training_outcome.h"

namespace stowage {
namespace {

namespace nn = torch::nn;
using testing::HasSubstr;

struct SeveralTensors {
  ChainModel model;
  Tensors inputs;
  Tensors targets;
};

at::Tensor BothLosses(const Tensors& outputs, const Tensors& targets) {
  return nn::functional::cross_entropy(outputs[0], targets[0]) +
         nn::functional::mse_loss(outputs[1], targets[1]);
}

template <class Module, class Part>
void List(const Module& module, Part* stage) {
  for (const at::Tensor& parameter : module->parameters()) stage->parameters.push_back(parameter);
  for (const at::Tensor& buffer : module->buffers()) stage->buffers.push_back(buffer);
}

// Blocks from (hidden, extra) to (hidden, extra): one that hands on what it gets, one whose output nobody reads, one with
// an output that is undefined and another that asks for no gradient.
SeveralTensors Pairs() {
  ChainModel model("pairs");
  const auto add = [&](std::string name, int outputs, StageFunction forward,
                       const std::vector<nn::Linear>& layers) {
    ModelStage stage;
    stage.op_kind = name;
    stage.name = std::move(name);
    stage.outputs = outputs;
    stage.forward = std::move(forward);
    for (const nn::Linear& layer : layers) List(layer, &stage);
    model.AddStage(std::move(stage));
  };
  nn::Linear left(16, 24), right(16, 24), mixed(24, 24), aside(24, 40), head(24, 5);
  nn::Linear gate(24, 24);
  add("open", 2,
      [left, right](const at::Tensor& x) mutable {
        return Tensors{left->forward(x).tanh(), right->forward(x).sigmoid()};
      },
      {left, right});
  add("mix", 2,
      [mixed](const Tensors& x) mutable {
        const at::Tensor hidden = mixed->forward(x[0]) * x[1];
        return Tensors{at::dropout(hidden, 0.3, true), x[1]};
      },
      {mixed});
  add("aside", 3,
      [aside](const Tensors& x) mutable {
        return Tensors{(x[0] * x[1]).exp(), aside->forward(x[0]).relu(), x[1].square()};
      },
      {aside});
  add("partly", 4,
      [gate](const Tensors& x) mutable {
        const at::Tensor gated = gate->forward(x[0]).sigmoid() * x[2];
        return Tensors{gated, at::Tensor(), (gated.detach() > 0.1).to(at::kLong), gated.cos()};
      },
      {gate});
  add("head", 2,
      [head](const Tensors& x) mutable {
        return Tensors{head->forward(x[0] * x[2]), x[3].sin()};
      },
      {head});
  model.SetLoss("both", BothLosses);
  return {std::move(model), torch::randn({6, 16}),
          Tensors{torch::randint(5, {6}, torch::kLong), torch::randn({6, 24})}};
}

// Attention under a mask, with positions; not every stage reads both.
SeveralTensors Attention() {
  constexpr int64_t kWidth = 12, kLength = 7;
  ChainModel model("attention");
  const int mask = model.AddSideInput("mask");
  const int positions = model.AddSideInput("positions");
  nn::Linear embed(5, kWidth);
  ModelStage open;
  open.name = open.op_kind = "embed";
  List(embed, &open);
  open.side_inputs = {positions};
  open.forward = [embed](const Tensors& x) mutable { return embed->forward(x[0]) + x[1].cos(); };
  model.AddStage(std::move(open));
  for (const std::string block : {"1", "2", "3"}) {
    nn::Linear in(kWidth, 3 * kWidth), out(kWidth, kWidth);
    ModelStage attention;
    attention.name = "attention" + block;
    attention.op_kind = "attention";
    List(in, &attention);
    List(out, &attention);
    attention.side_inputs = {mask};
    attention.forward = [in, out](const Tensors& x) mutable -> Tensors {
      const std::vector<at::Tensor> parts = in->forward(x[0]).chunk(3, -1);
      const at::Tensor scores = at::matmul(parts[0], parts[1].transpose(-1, -2)) * 0.3 + x[1];
      const at::Tensor weights = at::dropout(at::softmax(scores, -1), 0.2, true);
      return x[0] + out->forward(at::matmul(weights, parts[2]));
    };
    model.AddStage(std::move(attention));
  }
  nn::Linear head(kWidth, 5);
  ModelStage last;
  last.name = last.op_kind = "head";
  List(head, &last);
  last.side_inputs = {positions, mask};
  last.outputs = 2;
  last.forward = [head](const Tensors& x) mutable {
    return Tensors{head->forward((x[0] * x[1].sin()).mean(1)), at::matmul(x[2].exp(), x[0])};
  };
  model.AddStage(std::move(last));
  model.SetLoss("both", BothLosses);
  return {std::move(model),
          Tensors{torch::randn({3, kLength, 5}), torch::randn({kLength, kLength}),
                  torch::randn({3, kLength, kWidth})},
          Tensors{torch::randint(5, {3}, torch::kLong), torch::randn({3, kLength, kWidth})}};
}

SeveralTensors MakeSeveral(const std::string& name) {
  torch::manual_seed(3);
  return name == "pairs" ? Pairs() : Attention();
}

SeveralTensors MakeSeveral(const std::string& name, const TrainingDevice& device) {
  SeveralTensors made = MakeSeveral(name);
  MoveTo(device.device, made.model);
  for (Tensors* const tensors : {&made.inputs, &made.targets}) {
    for (at::Tensor& tensor : *tensors) tensor = tensor.to(device.device);
  }
  return made;
}

Tensors Copies(const Tensors& tensors) {
  Tensors copies;
  for (const at::Tensor& tensor : tensors) copies.push_back(tensor.clone());
  return copies;
}

class SeveralTensorsTest : public testing::TestWithParam<NetworkCase> {
 protected:
  SeveralTensorsTest()
      : device_(TrainingDeviceNamed(std::get<1>(GetParam()))),
        network_(MakeSeveral(std::get<0>(GetParam()), device_)),
        start_(network_.model, device_.device) {}
  void SetUp() override { SKIP_IF_MISSING(device_); }

  Chain Profiled(const Tensors& inputs) {
    ProfileOptions options;
    options.bytes_only = true;
    options.device = device_.execution;
    auto profile = ProfileChain(network_.model, inputs, network_.targets, options);
    EXPECT_TRUE(profile.ok()) << profile.status();
    return std::get<Chain>(std::move(profile).value().problem);
  }

  Outcome Plain() {
    start_.Rewind();
    const auto report =
        PlainStep(network_.model, network_.inputs, network_.targets, device_.meter());
    EXPECT_TRUE(report.ok()) << report.status();
    return Outcome::Of(network_.model, report.value().loss, device_.device);
  }

  void ExpectLikePlain(const Chain& chain, const Schedule& schedule, const Outcome& plain,
                       ExecutionDevice* device) {
    SCOPED_TRACE(Text(schedule));
    const auto executor = Executor::Create(&network_.model, chain, schedule, device,
                                           BatchShape::Of(network_.inputs, network_.targets));
    ASSERT_TRUE(executor.ok()) << executor.status();
    start_.Rewind();
    const Bytes live = device_.meter()->current();
    const auto report = (*executor)->Step(Copies(network_.inputs), network_.targets);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(device_.meter()->current(), live);
    ExpectEqual(plain, Outcome::Of(network_.model, report->loss, device_.device));
    const Simulation& predicted = (*executor)->prediction();
    EXPECT_LE(report->peak, predicted.peak);
    EXPECT_LE(report->offloaded, predicted.offloaded);
    EXPECT_LE(report->prefetched, predicted.prefetched);
    // Elsewhere plans count whole blocks.
    if (device_.exact) {
      EXPECT_GE(report->peak, predicted.peak);
      EXPECT_GE(report->offloaded, predicted.offloaded);
      EXPECT_GE(report->prefetched, predicted.prefetched);
    }
    EXPECT_EQ(report->recomputed_forwards, predicted.recomputed_forwards);
  }

  const TrainingDevice& device_;
  SeveralTensors network_;
  Rewinder start_;
};

TEST_P(SeveralTensorsTest, ChainsTrainAsPlainTrainingDoesWithinThePrediction) {
  const Chain chain = Profiled(network_.inputs);
  const Outcome plain = Plain();
  std::vector<Schedule> schedules = {StoreAllSchedule(chain), RecomputeAll(chain)};
  std::mt19937 random(4);
  for (int i = 0; i < 25; ++i) {
    schedules.push_back(Disturb(chain, RandomPersistentSchedule(chain, &random), i % 4, &random));
  }
  for (const Schedule& schedule : schedules) {
    ExpectLikePlain(chain, schedule, plain, device_.execution);
    if (HasFailure()) return;
  }
}

TEST_P(SeveralTensorsTest, ChainsCopyAllThatAStageMade) {
  const Chain chain = Profiled(network_.inputs);
  const Outcome plain = Plain();
  const int schedules = device_.exact ? 25 : 10;
  std::mt19937 random(9);
  int trips = 0;
  for (int i = 0; i < schedules; ++i) {
    const auto device = MakeLinkedDevice(device_, FastLink(i % 2 == 1));
    const Schedule schedule =
        WithTrips(chain, *device->link(), RandomPersistentSchedule(chain, &random), 4, &random);
    ExpectLikePlain(chain, schedule, plain, device.get());
    for (const Instruction& instruction : schedule) {
      trips += instruction.op == Op::kOffloadStart ? 1 : 0;
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(trips, 2 * schedules);
}

// A loop of the caller's, who gets all outputs, trains by some of them, and asks for the gradients of inputs.
TEST_P(SeveralTensorsTest, PlannedModulesGiveAllOutputsAndGradientsOfInputs) {
  Tensors inputs = network_.inputs;
  for (at::Tensor& input : inputs) input = input.clone().requires_grad_();
  const Chain chain = Profiled(inputs);
  std::mt19937 random(6);
  std::vector<Schedule> schedules = {StoreAllSchedule(chain), RecomputeAll(chain)};
  for (int i = 0; i < 6; ++i) schedules.push_back(RandomPersistentSchedule(chain, &random));
  for (const bool by_all : {true, false}) {
    // What is behind the inputs is the caller's, too.
    const auto train = [&](const auto& forward) {
      start_.Rewind();
      for (at::Tensor& input : inputs) input.mutable_grad().reset();
      Tensors given;
      for (const at::Tensor& input : inputs) given.push_back(input * 1.5);
      const std::vector<at::Tensor> outputs = forward(given);
      at::Tensor loss = nn::functional::cross_entropy(outputs[0], network_.targets[0]);
      if (by_all) loss = loss + outputs[1].square().mean();
      loss.backward();
      std::vector<at::Tensor> gradients;
      for (const at::Tensor& input : inputs) gradients.push_back(input.grad());
      return std::make_pair(
          Outcome::Of(network_.model, loss.template item<double>(), device_.device), gradients);
    };
    const auto plain = train([&](const Tensors& x) { return PlainForwardAll(network_.model, x); });
    for (const Schedule& schedule : schedules) {
      SCOPED_TRACE(Text(schedule));
      const auto planned =
          PlannedModule::Create(&network_.model, chain, schedule, device_.execution);
      ASSERT_TRUE(planned.ok()) << planned.status();
      const auto outcome = train([&](const Tensors& x) { return (*planned)->ForwardAll(x); });
      ExpectEqual(plain.first, outcome.first);
      for (size_t i = 0; i < inputs.size(); ++i) {
        ASSERT_EQ(plain.second[i].defined(), outcome.second[i].defined()) << i;
        if (!plain.second[i].defined()) continue;
        EXPECT_TRUE(plain.second[i].equal(outcome.second[i])) << i;
      }
      if (HasFailure()) return;
    }
  }
}

// What no loss comes to gets no gradient, not one of zeros, as in plain training.
TEST_P(SeveralTensorsTest, ParametersOfWhatNobodyReadsStayWithoutGradients) {
  const Chain chain = Profiled(network_.inputs);
  const auto planned =
      PlannedModule::Create(&network_.model, chain, RecomputeAll(chain), device_.execution);
  ASSERT_TRUE(planned.ok()) << planned.status();
  const auto without = [&] {
    std::vector<bool> undefined;
    for (const at::Tensor& parameter : network_.model.parameters()) {
      undefined.push_back(!parameter.grad().defined());
      parameter.mutable_grad().reset();
    }
    return undefined;
  };
  without();
  const auto train = [&](const auto& forward) {
    const std::vector<at::Tensor> outputs = forward(Copies(network_.inputs));
    nn::functional::cross_entropy(outputs[0], network_.targets[0]).backward();
    return without();
  };
  const auto plain = train([&](const Tensors& x) { return PlainForwardAll(network_.model, x); });
  EXPECT_EQ(train([&](const Tensors& x) { return (*planned)->ForwardAll(x); }), plain);
  network_.model.EnsureGradients();
}

TEST_P(SeveralTensorsTest, ShapesTellWhatRunningTells) {
  if (device_.execution != nullptr) GTEST_SKIP() << "of the CPU's kernels";
  const auto shapes = ChainFromShapes(network_.model, network_.inputs, network_.targets);
  ASSERT_TRUE(shapes.ok()) << shapes.status();
  ProfileOptions options;
  options.bytes_only = true;
  const auto measured = ProfileChain(network_.model, network_.inputs, network_.targets, options);
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_EQ(CanonicalBytes(*shapes, {}), CanonicalBytes(*measured, {}));
}

INSTANTIATE_TEST_SUITE_P(Networks, SeveralTensorsTest,
                         testing::Combine(testing::Values("pairs", "attention"),
                                          testing::Values("cpu", "test", "cuda")),
                         NameOfNetworkCase);

// Of nodes: views that are split off, outputs with several readers, one that nobody reads, a loss beside an output.
TestGraph Branches() {
  torch::manual_seed(8);
  GraphModel model("branches");
  const int pair = model.AddInput("pair", 2);
  const int stem = model.AddModule("stem", "linear", pair, nn::Linear(6, 12));
  const int split = model.AddFunction(
      "split", "chunk", {stem}, [](const Tensors& x) { return x[0].chunk(3, 1); }, 3);
  const int scored = model.AddFunction(
      "scored", "scores", {{split, 0}, {split, 1}, {pair, 1}},
      [](const Tensors& x) {
        const at::Tensor scores = at::matmul(x[0], x[1].t()) + x[2];
        return Tensors{at::softmax(scores, 1), scores.logsumexp(1), scores.abs()};
      },
      3);
  const int mixed =
      model.AddFunction("mixed", "matmul", {scored, {split, 2}},
                        [](const Tensors& x) { return at::matmul(x[0], x[1]).tanh(); });
  const int scaled =
      model.AddFunction("scaled", "scale", {mixed, {scored, 1}, {split, 2}},
                        [](const Tensors& x) { return x[0] * x[1].unsqueeze(1).sigmoid() + x[2]; });
  nn::Linear wide(4, 10);
  ModelNode last;
  last.name = "last";
  last.op_kind = "linear and penalty";
  last.inputs = {scaled, {scored, 1}};
  last.outputs = 2;
  List(wide, &last);
  last.forward = [wide](const Tensors& x) mutable {
    return Tensors{wide->forward(x[0]), x[1].square().mean()};
  };
  const int out = model.AddNode(std::move(last));
  ModelNode loss;
  loss.name = "loss";
  loss.op_kind = "both";
  loss.inputs = {out};
  loss.reads_target = true;
  loss.forward = [](const Tensors& x) {
    return nn::functional::cross_entropy(x[0], x[1]) + nn::functional::mse_loss(x[0], x[2]);
  };
  model.AddNode(std::move(loss));
  return {std::move(model),
          {torch::randn({5, 6}), torch::randn({5, 5})},
          Tensors{torch::randint(10, {5}, torch::kLong), torch::randn({5, 10})}};
}

TestGraph MakeGraphOf(const std::string& name) {
  if (name == "branches") return Branches();
  SeveralTensors chain = MakeSeveral(name);
  return {chain.model.InLine(), chain.inputs, chain.targets};
}

class SeveralTensorsGraphTest : public testing::TestWithParam<NetworkCase>,
                                protected GraphTraining {
 protected:
  SeveralTensorsGraphTest()
      : GraphTraining(MakeGraphOf(std::get<0>(GetParam())),
                      TrainingDeviceNamed(std::get<1>(GetParam()))) {}
  void SetUp() override { SKIP_IF_MISSING(device_); }
};

TEST_P(SeveralTensorsGraphTest, GraphsTrainAsPlainTrainingDoesWithinThePrediction) {
  const Profile profile = Profiled();
  const Graph& graph = std::get<Graph>(profile.problem);
  const GraphOutcome plain = Plain();
  ExpectLikePlain(graph, StoreAllSchedule(graph), plain);
  const Graph fixed = WithFixedCosts(graph);
  std::mt19937 random(2);
  int recomputing = 0;
  for (const double share : {0.9, 0.8, 0.7, 0.6}) {
    const auto budget = ResolveBudget(fixed, ShareOfStoreAll{share}, PlanOptions());
    ASSERT_TRUE(budget.ok()) << budget.status();
    const auto plan = MakePlan(fixed, *budget, PlanOptions());
    ASSERT_TRUE(plan.ok()) << plan.status();
    if (plan->status != PlanStatus::kFound) continue;
    SCOPED_TRACE(Text(plan->schedule));
    recomputing += plan->prediction.recomputed_forwards > 0 ? 1 : 0;
    ExpectLikePlain(graph, plan->schedule, plain);
    if (HasFailure()) return;
    for (int i = 0; i < (device_.exact ? 8 : 2); ++i) {
      const auto device = MakeLinkedDevice(device_, FastLink(i % 2 == 1));
      const Schedule moving = WithTrips(graph, *device->link(), plan->schedule, 3, &random);
      SCOPED_TRACE(Text(moving));
      ExpectLikePlain(graph, moving, plain, device.get());
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(recomputing, 0);
}

INSTANTIATE_TEST_SUITE_P(Networks, SeveralTensorsGraphTest,
                         testing::Combine(testing::Values("pairs", "attention", "branches"),
                                          testing::Values("cpu", "test", "cuda")),
                         NameOfNetworkCase);

TEST(SeveralTensorsRules, StepsOfAnotherNumberOrShapeAreRefused) {
  SeveralTensors made = MakeSeveral("attention");
  ProfileOptions options;
  options.bytes_only = true;
  const Profile profile = ProfileChain(made.model, made.inputs, made.targets, options).value();
  const Chain& chain = std::get<Chain>(profile.problem);
  const auto executor = Executor::Create(&made.model, chain, StoreAllSchedule(chain), nullptr,
                                         BatchShape::Of(made.inputs, made.targets));
  ASSERT_TRUE(executor.ok()) << executor.status();
  const auto words = [&](const Tensors& inputs, const Tensors& targets) {
    const absl::Status status = (*executor)->Step(inputs, targets).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  Tensors other = made.targets;
  other[1] = torch::randn({3, 7, 13});
  EXPECT_THAT(words(made.inputs, other), HasSubstr("target 1 is Float[3, 7, 13], the plan is for"));
  EXPECT_THAT(words(made.inputs, made.targets.front()), HasSubstr("there are 1 targets"));
  EXPECT_THAT(words(made.inputs.front(), made.targets), HasSubstr("there are 1 inputs"));
  other = made.inputs;
  other[1] = torch::randn({8, 8});
  EXPECT_THAT(words(other, made.targets), HasSubstr("input 1 is Float[8, 8]"));
  other[2] = at::Tensor();
  EXPECT_THAT(words(other, made.targets), HasSubstr("the side input positions is an undefined"));
  EXPECT_TRUE((*executor)->Step(made.inputs, made.targets).ok());
}

TEST(SeveralTensorsRules, AStageReadsSideInputsThatThereAre) {
  ChainModel model("wrong");
  ModelStage stage;
  stage.name = "first";
  stage.op_kind = "relu";
  stage.side_inputs = {1};
  stage.forward = [](const Tensors& x) { return x[0].relu(); };
  model.AddSideInput("mask");
  model.AddStage(stage);
  model.SetLoss("sum", [](const at::Tensor& y, const at::Tensor&) { return y.sum(); });
  const Tensors inputs{torch::ones({2}), torch::ones({2})};
  const absl::Status status = ProfileChain(model, inputs, at::Tensor()).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("stage 1 (first, relu): reads side input 1"));
}

TEST(SeveralTensorsRules, AStageReturnsAsManyAsItSays) {
  ChainModel model("wrong");
  ModelStage stage;
  stage.name = "first";
  stage.op_kind = "pair";
  stage.forward = [](const Tensors& x) { return Tensors{x[0].relu(), x[0].exp()}; };
  model.AddStage(stage);
  model.SetLoss("sum", [](const at::Tensor& y, const at::Tensor&) { return y.sum(); });
  const absl::Status status = ProfileChain(model, torch::ones({2}), at::Tensor()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("returned 2 tensors, the model has 1"));
}

TEST(SeveralTensorsRules, NodesReadWhatThereIs) {
  GraphModel model("wrong");
  const int x = model.AddInput("x");
  model.AddFunction("reads", "relu", {{x, 1}}, [](const Tensors& in) { return in[0].relu(); });
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("reads tensor 1 of node 0"));
  GraphModel marked("marked");
  const int pair = marked.AddFunction(
      "pair", "pair", {marked.AddInput("x")},
      [](const Tensors& in) {
        return Tensors{in[0].relu(), in[0].exp()};
      },
      2);
  marked.MarkOutput({pair, 1});
  EXPECT_TRUE(marked.status().ok());
  EXPECT_FALSE(marked.is_output({pair, 0}));
  marked.MarkOutput({pair, 2});
  EXPECT_FALSE(marked.status().ok());
}

// What stages use is found whatever they take and make.
TEST(SeveralTensorsRules, WhatStagesUseIsFound) {
  SeveralTensors made = MakeSeveral("attention");
  ChainModel bare("bare");
  bare.AddSideInput("mask");
  bare.AddSideInput("positions");
  for (int l = 1; l <= made.model.length(); ++l) {
    ModelStage stage = made.model.stage(l);
    stage.parameters.clear();
    stage.op_kind.clear();
    bare.AddStage(std::move(stage));
  }
  bare.SetLoss("", BothLosses);
  const absl::Status found = FindState(made.inputs, made.targets, &bare);
  ASSERT_TRUE(found.ok()) << found;
  for (int l = 1; l <= bare.length(); ++l) {
    EXPECT_EQ(bare.stage(l).parameters.size(), made.model.stage(l).parameters.size()) << l;
    EXPECT_FALSE(bare.stage(l).op_kind.empty());
  }
}

}  // namespace
}  // namespace stowage
