#include "client/torch/graph_executor.h"

#include <stdexcept>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/torch/graph_tensors.h"
#include "client/torch/model_state.h"
#include "client/torch/node_runner.h"
#include "client/torch/one_stream.h"
#include "client/torch/torch_status.h"
#include "client/torch/tracking_allocator.h"
#include "solvers/plan/graph_simulate.h"

namespace stowage {
namespace {

bool SameInputs(const ModelNode& node, const Vertex& vertex) {
  if (node.inputs.size() != vertex.inputs.size()) return false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] != vertex.inputs[i].vertex) return false;
  }
  return true;
}

absl::Status CheckGraph(const GraphModel& model, const Graph& graph) {
  if (!model.status().ok()) return model.status();
  if (graph.size() != model.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the graph has ", graph.size(), " vertices, the model ", model.size()));
  }
  for (int v = 0; v < graph.size(); ++v) {
    const Vertex& vertex = graph.vertex(v);
    if (vertex.op_kind == model.node(v).op_kind && SameInputs(model.node(v), vertex)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the graph says '", vertex.op_kind, "' with ", vertex.inputs.size(),
                     " inputs where the model has ", model.Describe(v), " or others"));
  }
  return absl::OkStatus();
}

Bytes BytesOf(const std::vector<at::Tensor>& tensors) {
  Bytes bytes;
  for (const at::Tensor& tensor : tensors) bytes += Bytes(static_cast<int64_t>(tensor.nbytes()));
  return bytes;
}

}  // namespace

struct GraphExecutor::StepState {
  NodeRunner runner;
  GraphTensors tensors;
  std::vector<at::Tensor> sources;  // by vertex
  StepReport report;
};

GraphExecutor::GraphExecutor(const GraphModel* model, Graph graph, Schedule schedule,
                             Simulation prediction, MemoryMeter* meter)
    : model_(model),
      graph_(std::move(graph)),
      schedule_(std::move(schedule)),
      prediction_(prediction),
      meter_(meter) {}

absl::StatusOr<std::unique_ptr<GraphExecutor>> GraphExecutor::Create(const GraphModel* model,
                                                                     Graph graph, Schedule schedule,
                                                                     MemoryMeter* meter) {
  absl::Status status = CheckOneStream(schedule);
  if (status.ok()) status = CheckGraph(*model, graph);
  if (!status.ok()) return status;
  absl::StatusOr<Simulation> prediction = SimulateGraph(graph, schedule);
  if (!prediction.ok()) return prediction.status();
  absl::StatusOr<MemoryMeter*> used_meter = MeterOrInstalled(meter);
  if (!used_meter.ok()) return used_meter.status();
  return std::unique_ptr<GraphExecutor>(new GraphExecutor(
      model, std::move(graph), std::move(schedule), *std::move(prediction), *used_meter));
}

void GraphExecutor::RunForward(const Instruction& instruction, StepState* state) {
  const int v = instruction.stage - 1;
  GraphTensors& tensors = state->tensors;
  if (model_->is_input(v)) {
    tensors.PutSource(v, std::move(state->sources[static_cast<size_t>(v)]));
    return;
  }
  const bool first = !tensors.Value(v).defined();
  // A graph that holds nothing of its own costs nothing, and the backward may want it.
  if (instruction.op == Op::kForwardKeepAll || graph_.vertex(v).extra_saved == Bytes(0)) {
    tensors.PutSaved(v, state->runner.ForwardSaving(v, tensors.Inputs(v)));
  } else {
    tensors.PutPlain(v, state->runner.Forward(v, tensors.Inputs(v)));
  }
  const at::Tensor& value = tensors.Value(v);
  if (first && model_->is_output(v) && value.numel() == 1) {
    state->report.loss += value.item<double>();
  }
}

void GraphExecutor::RunBackward(int v, StepState* state) {
  GraphTensors& tensors = state->tensors;
  if (model_->is_input(v)) return;
  const NodeRunner& runner = state->runner;
  if (runner.Giver(v) != v) return tensors.DropSaved(v);
  at::Tensor gradient = tensors.TakeGradient(v);
  const std::vector<int>& inputs = model_->node(v).inputs;
  std::vector<at::Tensor> running;
  for (const int input : inputs) running.push_back(tensors.TakeGradient(runner.Giver(input)));
  running =
      state->runner.Backward(v, tensors.TakeSaved(v), std::move(gradient), std::move(running));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (running[i].defined()) tensors.PutGradient(runner.Giver(inputs[i]), std::move(running[i]));
  }
}

void GraphExecutor::Run(const Instruction& instruction, StepState* state) {
  const int v = instruction.stage - 1;
  switch (instruction.op) {
    case Op::kForwardKeepAll:
    case Op::kForwardKeepInput:
      RunForward(instruction, state);
      break;
    case Op::kBackward:
      RunBackward(v, state);
      break;
    case Op::kDiscard:
      instruction.tensor == TensorKind::kSaved ? state->tensors.DropSaved(v)
                                               : state->tensors.DropTensor(v);
      break;
    case Op::kForwardKeepNothing:
    case Op::kReduce:
    case Op::kOffloadStart:
    case Op::kOffloadWait:
    case Op::kPrefetchStart:
    case Op::kPrefetchWait:
      throw std::logic_error("no instruction of graphs passed Create");
  }
  ++state->report.counts[static_cast<size_t>(instruction.op)];
}

absl::Status GraphExecutor::RunAll(StepState* state) {
  for (size_t i = 0; i < schedule_.size(); ++i) {
    try {
      Run(schedule_[i], state);
    } catch (...) {
      return CurrentExceptionToStatus(absl::StrCat("instruction ", i, " (", ToString(schedule_[i]),
                                                   "), ", model_->Describe(schedule_[i].stage - 1)),
                                      absl::StatusCode::kInternal);
    }
  }
  return absl::OkStatus();
}

absl::Status GraphExecutor::CheckInputs(const std::vector<at::Tensor>& inputs) const {
  if (inputs.size() != model_->inputs().size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "there are ", inputs.size(), " inputs, the model reads ", model_->inputs().size()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int v = model_->inputs()[i];
    if (!inputs[i].defined()) {
      return absl::InvalidArgumentError(
          absl::StrCat(model_->Describe(v), " is an undefined tensor"));
    }
    const Bytes bytes(static_cast<int64_t>(inputs[i].nbytes()));
    if (bytes <= graph_.vertex(v).output) continue;
    return absl::InvalidArgumentError(absl::StrCat(model_->Describe(v), " has ", bytes.value(),
                                                   " bytes, in the profile ",
                                                   graph_.vertex(v).output.value()));
  }
  return absl::OkStatus();
}

absl::StatusOr<StepReport> GraphExecutor::Step(std::vector<at::Tensor> inputs,
                                               const at::Tensor& target) {
  absl::Status fits = CheckInputs(inputs);
  if (!fits.ok()) return fits;
  try {
    model_->EnsureGradients();
    StateGuard before(model_->buffers());
    const StepMeter step(meter_, BytesOf(inputs));
    StepState state{NodeRunner(model_), GraphTensors(&graph_), {}, {}};
    state.sources.resize(static_cast<size_t>(model_->size()));
    for (size_t i = 0; i < inputs.size(); ++i) {
      state.sources[static_cast<size_t>(model_->inputs()[i])] = std::move(inputs[i]);
    }
    state.runner.BeginStep(target);
    absl::Status status = RunAll(&state);
    if (!status.ok()) return status;
    step.Finish(&state.report);
    state.report.forwards = state.runner.forwards();
    state.report.recomputed_forwards = state.runner.recomputed_forwards();
    before.Dismiss();
    return state.report;
  } catch (...) {
    return CurrentExceptionToStatus("training step", absl::StatusCode::kInternal);
  }
}

}  // namespace stowage
