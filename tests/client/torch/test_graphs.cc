#include "tests/client/torch/test_graphs.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <array>
#include <utility>

#include "client/models/models.h"
#include "client/models/network_model.h"
#include "client/torch/execute/executor.h"
#include "client/torch/execute/plain_step.h"
#include "client/torch/model/state_digest.h"
#include "client/torch/profile/graph_profiler.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/zoo/networks.h"
#include "tests/client/torch/measured_peaks.h"

namespace stowage {
namespace {

namespace nn = torch::nn;

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

TestGraph GradKernelsGraph() {
  GraphModel model("grad_kernels");
  const auto by_grad_mode = [](const std::vector<at::Tensor>& x) {
    return at::GradMode::is_enabled() && x[0].requires_grad() ? (x[0] / 3) * 0.7 : x[0] * (0.7 / 3);
  };
  const int image = model.AddInput("image");
  int last = model.AddModule("fc", "linear", image, nn::Linear(12, 16));
  for (const std::string block : {"1", "2", "3"}) {
    const int scaled = model.AddFunction("scaled" + block, "scale", {last}, by_grad_mode);
    const nn::LSTM lstm(nn::LSTMOptions(16, 16).batch_first(true));
    ModelNode recurrent;
    recurrent.name = "recurrent" + block;
    recurrent.op_kind = "lstm";
    recurrent.inputs = {scaled};
    recurrent.parameters = lstm->parameters();
    recurrent.forward = [lstm](const std::vector<at::Tensor>& x) {
      return std::get<0>(nn::LSTM(lstm)(x[0]));
    };
    const int after = model.AddNode(recurrent);
    last = model.AddFunction("sum" + block, "add", {after, scaled},
                             [](const auto& x) { return (x[0] + x[1]).tanh(); });
  }
  const int head = model.AddModule("head", "linear", last, nn::Linear(16, 4));
  model.AddFunction("loss", "mean", {head}, [](const auto& x) { return x[0].pow(2).mean(); });
  return {std::move(model), {torch::randn({5, 7, 12})}, {}};
}

TestGraph FromNetwork(const Network& network, const Sample& sample, c10::Device device) {
  NetworkModelOptions options;
  options.device = device;
  return {GraphModelOf(network, options), {sample.input}, sample.target};
}

TestGraph FromImages(const std::string& name, int64_t side, c10::Device device) {
  NetworkOptions options;
  options.name = name;
  options.image = side;
  options.batch = 2;
  options.classes = 5;
  return FromNetwork(MakeNetwork(options).value(), MakeImageSample(2, side, 5, 1).value(), device);
}

TestGraph Decoder(c10::Device device) {
  DecoderOptions options;
  options.layers = 2;
  options.width = 16;
  options.heads = 2;
  options.length = 8;
  options.vocabulary = 20;
  options.batch = 2;
  return FromNetwork(MakeDecoder(options).value(), MakeTokenSample(2, 8, 20, 1).value(), device);
}

}  // namespace

TestGraph MakeTestGraph(const std::string& name, c10::Device device) {
  torch::manual_seed(1);
  if (name == "mixed") {
    TestGraph mixed = Mixed();
    // A gradient that several readers make is counted whole from the first of them on. Of "square" the first is a sum's, which
    // takes four bytes until the others are added.
    mixed.over_predicted = Bytes(24576) + kScalars;
    return mixed;
  }
  if (name == "grad_kernels") return GradKernelsGraph();
  if (name == "decoder") return Decoder(device);
  return FromImages(name, name == "resnet18" ? 96 : 16, device);
}

Graph WithFixedCosts(const Graph& graph) {
  GraphSpec spec{graph.name(), {}};
  for (int v = 0; v < graph.size(); ++v) {
    spec.vertices.push_back(graph.vertex(v));
    Vertex& vertex = spec.vertices.back();
    for (GraphInput& input : vertex.inputs) {
      input.vertex = graph.vertex(static_cast<int>(input.vertex)).id;
    }
    vertex.forward_time = Nanos(20000);
    vertex.backward_time = Nanos(40000);
    vertex.forward_overhead = vertex.forward_saving_overhead = vertex.backward_overhead = Bytes(0);
    if (!vertex.stops()) continue;
    vertex.recompute_saving_time = Nanos(15000);
    vertex.recompute_saving_overhead = Bytes(0);
  }
  return Graph::Create(std::move(spec)).value();
}

GraphTraining::GraphTraining(TestGraph graph, const TrainingDevice& device)
    : device_(device),
      meter_(device.meter()),
      graph_((MoveTo(device.device, graph.model), std::move(graph))),
      buffers_(BufferState::Capture(graph_.model.buffers())),
      random_(RandomState::Capture(device.device)) {
  for (at::Tensor& input : graph_.inputs) input = input.to(device.device);
  for (at::Tensor& target : graph_.target) {
    if (target.defined()) target = target.to(device.device);
  }
}

void GraphTraining::Rewind() {
  buffers_.Restore();
  random_.Restore();
  graph_.model.ZeroGradients();
}

std::vector<at::Tensor> GraphTraining::Inputs() const {
  std::vector<at::Tensor> inputs;
  for (const at::Tensor& input : graph_.inputs) inputs.push_back(input.clone());
  return inputs;
}

Bytes GraphTraining::InputBytes() const {
  Bytes bytes;
  for (const at::Tensor& input : graph_.inputs)
    bytes += Bytes(static_cast<int64_t>(input.nbytes()));
  return bytes;
}

GraphOutcome GraphTraining::After(double loss) const {
  return {loss, GradientDigest(graph_.model).ToHex(), BufferDigest(graph_.model).ToHex(),
          RandomState::Capture(device_.device)};
}

GraphOutcome GraphTraining::Plain() {
  Rewind();
  const auto report = PlainGraphStep(graph_.model, Inputs(), graph_.target, meter_);
  EXPECT_TRUE(report.ok()) << report.status();
  return After(report.value().loss);
}

Profile GraphTraining::Profiled() {
  ProfileOptions options;
  options.bytes_only = true;
  options.device = device_.execution;
  auto profile = ProfileGraph(graph_.model, graph_.inputs, graph_.target, options);
  EXPECT_TRUE(profile.ok()) << profile.status();
  return std::move(profile).value();
}

StepReport GraphTraining::ExpectLikePlain(const Graph& graph, const Schedule& schedule,
                                          const GraphOutcome& plain, ExecutionDevice* device) {
  if (device == nullptr) device = device_.execution;
  auto executor = Executor::Create(&graph_.model, graph, schedule, device);
  EXPECT_TRUE(executor.ok()) << executor.status();
  if (!executor.ok()) return {};
  Rewind();
  Later<MeasuredStep> measured;
  (*executor)->MeasureInto(&measured);
  const Bytes live = meter_->current();
  const auto report = (*executor)->Step(Inputs(), graph_.target);
  EXPECT_TRUE(report.ok()) << report.status();
  if (!report.ok()) return {};
  EXPECT_EQ(meter_->current(), live);
  const GraphOutcome planned = After(report->loss);
  EXPECT_EQ(planned.loss, plain.loss);
  EXPECT_EQ(planned.gradients, plain.gradients);
  EXPECT_EQ(planned.buffers, plain.buffers);
  EXPECT_TRUE(planned.random == plain.random);
  const Simulation& predicted = (*executor)->prediction();
  EXPECT_LE(report->peak, predicted.peak);
  EXPECT_LE(report->offloaded, predicted.offloaded);
  EXPECT_LE(report->prefetched, predicted.prefetched);
  EXPECT_LE(report->host_peak, predicted.host_peak);
  // Elsewhere plans count whole blocks.
  if (device_.exact) {
    EXPECT_GE(report->peak + graph_.over_predicted, predicted.peak);
    EXPECT_GE(report->offloaded, predicted.offloaded);
    EXPECT_GE(report->prefetched, predicted.prefetched);
    EXPECT_GE(report->host_peak, predicted.host_peak);
  }
  std::vector<TimelinePoint> timeline;
  const TransferModel* const link = device != nullptr ? device->link() : nullptr;
  const auto simulated = link != nullptr
                             ? Evaluator(Instance(graph, *link)).Run(schedule, &timeline)
                             : Evaluator(graph).Run(schedule, &timeline);
  EXPECT_TRUE(simulated.ok()) << simulated.status();
  ExpectPeaksAsPredicted(schedule, measured, timeline, InputBytes());
  std::array<int, 10> counts{};
  for (const Instruction& instruction : schedule) ++counts[static_cast<size_t>(instruction.op)];
  EXPECT_EQ(report->counts, counts);
  return *report;
}

}  // namespace stowage
