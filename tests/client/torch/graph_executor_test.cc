// Graphs trained by plans of every solver, against plain training and the referee.
#include "client/torch/graph_executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/models/models.h"
#include "client/models/network_model.h"
#include "client/torch/graph_profiler.h"
#include "client/torch/model_state.h"
#include "client/torch/plain_step.h"
#include "client/torch/state_digest.h"
#include "client/torch/tracking_allocator.h"
#include "solvers/networks/networks.h"
#include "solvers/plan/gradient_sums.h"
#include "solvers/plan/graph_simulate.h"
#include "solvers/plan/graph_store_all.h"
#include "solvers/planner.h"

namespace stowage {
namespace {

namespace nn = torch::nn;

using testing::HasSubstr;

struct TestGraph {
  GraphModel model;
  std::vector<at::Tensor> inputs;
  at::Tensor target;
};

// Two inputs, two losses, a view, ops in place, a tensor with three readers, one read twice by the
// same node, random and stateful nodes, a frozen one, and a node that nobody trains by.
TestGraph Mixed() {
  GraphModel model("mixed");
  const int image = model.AddInput("image");
  const int scale = model.AddInput("scale");
  const auto conv = [](int64_t in, int64_t out) {
    return nn::Conv2d(nn::Conv2dOptions(in, out, 3).padding(1));
  };
  const int stem = model.AddModule("stem", "conv", image, conv(3, 8));
  const int norm = model.AddModule("norm", "batch_norm", stem, nn::BatchNorm2d(8));
  ModelNode relu;
  relu.name = "relu";
  relu.op_kind = "relu_";
  relu.inputs = {norm};
  relu.in_place = true;
  relu.forward = [](const std::vector<at::Tensor>& x) { return at::Tensor(x[0]).relu_(); };
  const int active = model.AddNode(relu);
  nn::Conv2d frozen = conv(8, 8);
  for (at::Tensor& parameter : frozen->parameters()) parameter.requires_grad_(false);
  const int branch = model.AddModule("frozen", "conv", active, frozen);
  const int dropped = model.AddFunction("drop", "dropout", {branch},
                                        [](const auto& x) { return at::dropout(x[0], 0.3, true); });
  const int square = model.AddFunction("square", "mul", {active, active},
                                       [](const auto& x) { return x[0] * x[1]; });
  const int sum = model.AddFunction("sum", "addcmul", {dropped, square, active, scale},
                                    [](const auto& x) { return x[0] + x[1] * x[3] + x[2]; });
  ModelNode add;
  add.name = "residual";
  add.op_kind = "add_";
  add.inputs = {sum, active};
  add.in_place = true;
  add.forward = [](const std::vector<at::Tensor>& x) { return at::Tensor(x[0]).add_(x[1]); };
  const int residual = model.AddNode(add);
  const int flat = model.AddFunction("flat", "flatten", {residual},
                                     [](const auto& x) { return x[0].flatten(1); });
  const int head = model.AddModule("head", "linear", flat, nn::Linear(8 * 16 * 16, 5));
  model.AddFunction("probabilities", "softmax", {head},
                    [](const auto& x) { return at::softmax(x[0].detach(), 1); });
  ModelNode loss;
  loss.name = "loss";
  loss.op_kind = "cross_entropy";
  loss.inputs = {head};
  loss.reads_target = true;
  loss.forward = [](const std::vector<at::Tensor>& x) {
    return nn::functional::cross_entropy(x[0], x[1]);
  };
  model.AddNode(loss);
  model.AddFunction("penalty", "mean", {square}, [](const auto& x) { return x[0].mean(); });
  return {std::move(model),
          {torch::randn({3, 3, 16, 16}), torch::rand({3, 1, 1, 1})},
          torch::randint(5, {3}, torch::kLong)};
}

TestGraph FromNetwork(const Network& network, const Sample& sample) {
  return {GraphModelOf(network), {sample.input}, sample.target};
}

TestGraph FromImages(const std::string& name, int64_t side) {
  NetworkOptions options;
  options.name = name;
  options.image = side;
  options.batch = 2;
  options.classes = 5;
  return FromNetwork(MakeNetwork(options).value(), MakeImageSample(2, side, 5, 1).value());
}

TestGraph Decoder() {
  DecoderOptions options;
  options.layers = 2;
  options.width = 16;
  options.heads = 2;
  options.length = 8;
  options.vocabulary = 20;
  options.batch = 2;
  return FromNetwork(MakeDecoder(options).value(), MakeTokenSample(2, 8, 20, 1).value());
}

TestGraph MakeTestGraph(const std::string& name) {
  torch::manual_seed(1);
  if (name == "mixed") return Mixed();
  if (name == "decoder") return Decoder();
  return FromImages(name, name == "resnet18" ? 96 : 16);
}

struct Outcome {
  double loss = 0;
  std::string gradients;
  std::string buffers;
  RandomState random = RandomState::Capture();
};

class GraphExecutorTest : public testing::TestWithParam<std::string> {
 protected:
  GraphExecutorTest()
      : graph_(MakeTestGraph(GetParam())),
        buffers_(BufferState::Capture(graph_.model.buffers())),
        random_(RandomState::Capture()) {}

  void Rewind() {
    buffers_.Restore();
    random_.Restore();
    graph_.model.ZeroGradients();
  }

  // So that nobody but the step holds them.
  std::vector<at::Tensor> Inputs() const {
    std::vector<at::Tensor> inputs;
    for (const at::Tensor& input : graph_.inputs) inputs.push_back(input.clone());
    return inputs;
  }

  Outcome After(const StepReport& report) const {
    return {report.loss, GradientDigest(graph_.model).ToHex(), BufferDigest(graph_.model).ToHex(),
            RandomState::Capture()};
  }

  Outcome Plain() {
    Rewind();
    const auto report = PlainGraphStep(graph_.model, Inputs(), graph_.target);
    EXPECT_TRUE(report.ok()) << report.status();
    return After(*report);
  }

  Profile Profiled() {
    ProfileOptions options;
    options.bytes_only = true;
    auto profile = ProfileGraph(graph_.model, graph_.inputs, graph_.target, options);
    EXPECT_TRUE(profile.ok()) << profile.status();
    return *std::move(profile);
  }

  void ExpectLikePlain(const Graph& graph, const Schedule& schedule, const Outcome& plain) {
    auto executor = GraphExecutor::Create(&graph_.model, graph, schedule);
    ASSERT_TRUE(executor.ok()) << executor.status();
    Rewind();
    const Bytes live = TrackingAllocator::Get()->current();
    const auto report = (*executor)->Step(Inputs(), graph_.target);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(TrackingAllocator::Get()->current(), live);
    const Outcome planned = After(*report);
    EXPECT_EQ(planned.loss, plain.loss);
    EXPECT_EQ(planned.gradients, plain.gradients);
    EXPECT_EQ(planned.buffers, plain.buffers);
    EXPECT_TRUE(planned.random == plain.random);
    EXPECT_LE(report->peak, (*executor)->prediction().peak);
    EXPECT_GE(static_cast<double>(report->peak.value()),
              0.99 * static_cast<double>((*executor)->prediction().peak.value()));
    EXPECT_EQ(report->count(Op::kBackward), graph.size());
  }

  TestGraph graph_;
  BufferState buffers_;
  RandomState random_;
};

TEST_P(GraphExecutorTest, StoringAllIsPlainTraining) {
  const Profile profile = Profiled();
  const Graph& graph = std::get<Graph>(profile.problem);
  ExpectLikePlain(graph, StoreAllSchedule(graph), Plain());
}

TEST_P(GraphExecutorTest, PlansWithinBudgetsTrainAlike) {
  const Profile profile = Profiled();
  const Graph& graph = std::get<Graph>(profile.problem);
  const Outcome plain = Plain();
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
    const auto budget = ResolveBudget(profile, Budget(ShareOfStoreAll{share}), PlanOptions());
    ASSERT_TRUE(budget.ok()) << budget.status();
    const auto plan = MakePlan(profile, *budget, options);
    ASSERT_TRUE(plan.ok() || !schedule.empty()) << plan.status();
    if (plan.ok()) schedule = plan->schedule;
    if (schedule.empty()) continue;  // nothing fits
    SCOPED_TRACE(share);
    const absl::StatusOr<Simulation> simulation = SimulateGraph(graph, schedule);
    ASSERT_TRUE(simulation.ok()) << simulation.status();
    EXPECT_LE(simulation->peak, *budget);
    EXPECT_TRUE(GradientSums(graph).KeptBy(schedule));
    recomputing += simulation->recomputed_forwards > 0 ? 1 : 0;
    ExpectLikePlain(graph, schedule, plain);
  }
  EXPECT_GT(recomputing, 0);
}

class GraphFailureTest : public GraphExecutorTest {};

TEST_P(GraphFailureTest, AfterOutOfMemoryAtAnyPointTheNextStepIsRight) {
  const Profile profile = Profiled();
  const Graph& graph = std::get<Graph>(profile.problem);
  const Outcome plain = Plain();
  auto executor = GraphExecutor::Create(&graph_.model, graph, StoreAllSchedule(graph)).value();
  TrackingAllocator* const meter = TrackingAllocator::Get();
  const int64_t peak = executor->prediction().peak.value();
  int failures = 0;
  for (int64_t extra = 0; extra < peak; extra += peak / 60) {
    Rewind();
    std::vector<at::Tensor> inputs = Inputs();
    const Bytes live = meter->current();
    meter->SetLimit(live + Bytes(extra));
    const absl::Status status = executor->Step(inputs, graph_.target).status();
    meter->ClearLimit();
    if (status.ok()) continue;
    ++failures;
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_EQ(meter->current(), live) << "after " << extra << " bytes";
    EXPECT_TRUE(BufferState::Capture(graph_.model.buffers()) == buffers_);
    EXPECT_TRUE(RandomState::Capture() == random_);
  }
  EXPECT_GT(failures, 30);
  ExpectLikePlain(graph, StoreAllSchedule(graph), plain);
}

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

INSTANTIATE_TEST_SUITE_P(Mixed, GraphFailureTest, testing::Values("mixed"));

INSTANTIATE_TEST_SUITE_P(Graphs, GraphExecutorTest,
                         testing::Values("mixed", "decoder", "resnet18", "nasnet_a", "darts_v2"),
                         [](const auto& graph) { return graph.param; });

}  // namespace
}  // namespace stowage
