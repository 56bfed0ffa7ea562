#include "client/torch/graph_executor.h"

#include <stdexcept>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/torch/model_state.h"
#include "client/torch/saved_tensor_scope.h"
#include "client/torch/step_run.h"
#include "client/torch/torch_status.h"
#include "solvers/model/field_error.h"
#include "solvers/schedule/evaluator.h"

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

}  // namespace

GraphExecutor::GraphExecutor(std::shared_ptr<const GraphPlan> plan, Simulation prediction)
    : plan_(std::move(plan)),
      model_(plan_->model),
      graph_(plan_->graph),
      schedule_(plan_->schedule),
      device_(plan_->device),
      in_engine_order_(IsInEngineOrder(*plan_)),
      prediction_(prediction) {}

absl::StatusOr<std::unique_ptr<GraphExecutor>> GraphExecutor::Create(const GraphModel* model,
                                                                     Graph graph, Schedule schedule,
                                                                     ExecutionDevice* device) {
  if (!graph.has_backwards()) {
    return FieldError("profile.dag", "set", "must be a graph: autograd runs the backwards");
  }
  const absl::StatusOr<ExecutionDevice*> used = DeviceOrInstalled(device);
  if (!used.ok()) return used.status();
  absl::Status status = CheckCarriedOut(schedule, **used);
  if (status.ok()) status = CheckGraph(*model, graph);
  if (!status.ok()) return status;
  const TransferModel* const link = (*used)->link();
  absl::StatusOr<Simulation> prediction = link == nullptr
                                              ? Evaluator(graph).Run(schedule)
                                              : Evaluator(Instance(graph, *link)).Run(schedule);
  if (!prediction.ok()) return prediction.status();
  return std::unique_ptr<GraphExecutor>(new GraphExecutor(
      MakeGraphPlan(model, std::move(graph), std::move(schedule), *used), *prediction));
}

void GraphExecutor::ForwardSaving(int v, StepState* state) {
  SavedNode saved;
  const auto run = [&] {
    saved = state->runner.ForwardSaving(v, state->tensors.Inputs(v));
    return graph_.storage(v) == v ? saved.output : at::Tensor();
  };
  std::vector<StoragePtr> extras;
  if (plan_->moves_extras[static_cast<size_t>(v)]) {
    extras = MovableParts(device_, run);
  } else {
    run();
  }
  state->tensors.PutSaved(v, std::move(saved), std::move(extras));
}

void GraphExecutor::RunForward(const Instruction& instruction, StepState* state) {
  const int v = instruction.stage - 1;
  GraphTensors& tensors = state->tensors;
  if (model_->is_input(v)) {
    tensors.PutSource(v, std::exchange(state->sources[static_cast<size_t>(v)], {}));
    return;
  }
  const bool first = !tensors.Value(v).defined();
  // A graph that holds nothing of its own costs nothing, and the backward may want it.
  if (instruction.op == Op::kForwardSave || graph_.vertex(v).extra_saved == Bytes(0)) {
    ForwardSaving(v, state);
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
  if (runner.Giver(v) != v) {
    state->runner.PassBackward(v);
    return tensors.DropSaved(v);
  }
  at::Tensor gradient = tensors.TakeGradient(v);
  const at::Tensor& value = tensors.Value(v);
  if (state->seed.defined() && model_->is_output(v) && value.numel() == 1) {
    gradient = state->seed.to(value.scalar_type()).reshape(value.sizes());
  }
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
    case Op::kForwardSave:
    case Op::kForwardNoSave:
      RunForward(instruction, state);
      break;
    case Op::kBackward:
      RunBackward(v, state);
      break;
    case Op::kDiscard:
      state->tensors.Discard(instruction.tensor, v);
      break;
    case Op::kOffloadStart:
    case Op::kOffloadWait:
    case Op::kPrefetchStart:
    case Op::kPrefetchWait:
      state->tensors.Transfer(instruction);
      break;
    case Op::kForwardNoSaveFreeInput:
    case Op::kDropSavedKeepOutput:
      throw std::logic_error("no instruction of graphs passed Create");
  }
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
    absl::Status status = CheckIsOn(*device_, inputs[i], model_->Describe(v));
    if (!status.ok()) return status;
    const Bytes bytes(static_cast<int64_t>(inputs[i].nbytes()));
    if (bytes <= graph_.vertex(v).output) continue;
    return absl::InvalidArgumentError(absl::StrCat(model_->Describe(v), " has ", bytes.value(),
                                                   " bytes, in the profile ",
                                                   graph_.vertex(v).output.value()));
  }
  return absl::OkStatus();
}

std::vector<at::Tensor> GraphExecutor::SourcesOf(std::vector<at::Tensor> inputs,
                                                 const at::Tensor& target, bool lent) const {
  std::vector<at::Tensor> sources(static_cast<size_t>(model_->size()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto v = static_cast<size_t>(model_->inputs()[i]);
    const bool is_target = StoragePtrOf(inputs[i]) == StoragePtrOf(target);
    const bool lends =
        CanLend(inputs[i], *device_) && (lent ? !is_target : IsSoleHolder(inputs[i]));
    const bool copies = plan_->moves_source[v] && !lends;
    sources[v] = copies ? inputs[i].clone() : std::move(inputs[i]);
  }
  return sources;
}

GraphExecutor::StepState GraphExecutor::Begin(std::vector<at::Tensor> inputs,
                                              const at::Tensor& target, bool lent) const {
  StepState state{NodeRunner(model_), GraphTensors(&graph_, device_), {}, {}, {}};
  state.runner.BeginStep(target, gradient_ready_);
  state.sources = SourcesOf(std::move(inputs), target, lent);
  return state;
}

absl::Status GraphExecutor::RunUpTo(size_t end, StepState* state) {
  const InstructionRunner runner{device_, [&](const Instruction& i) { Run(i, state); },
                                 [this](int number) { return model_->Describe(number - 1); },
                                 state->recorder.get()};
  return RunInstructions(schedule_, end, runner, &state->next, &state->report);
}

absl::StatusOr<StepReport> GraphExecutor::StepByAutograd(std::vector<at::Tensor> inputs,
                                                         const at::Tensor& target) {
  try {
    model_->EnsureGradients();
    StateGuard before(model_->buffers());
    Bytes bytes;
    for (const at::Tensor& input : inputs) bytes += Bytes(static_cast<int64_t>(input.nbytes()));
    const auto cursor = std::make_shared<GraphCursor>(
        plan_, SourcesOf(std::move(inputs), target, /*lent=*/true), target, gradient_ready_);
    if (measured_ != nullptr) cursor->RecordInto(std::make_unique<StepRecorder>(device_, bytes));
    const StepMeter meter(device_->meter(), bytes, device_->host());
    absl::Status status = cursor->Forward();
    if (status.ok()) status = cursor->Backward();
    StepReport report = cursor->report();
    meter.Finish(&report);
    const absl::Status released = cursor->Release();
    if (status.ok()) status = released;
    if (!status.ok()) return status;
    report.forwards = cursor->runner().forwards();
    report.recomputed_forwards = cursor->runner().recomputed_forwards();
    report.offloaded = cursor->copies().offloaded();
    report.prefetched = cursor->copies().prefetched();
    before.Dismiss();
    if (measured_ != nullptr) *measured_ = cursor->recorder()->Finish(schedule_, report);
    return report;
  } catch (...) {
    return CurrentExceptionToStatus("training step", absl::StatusCode::kInternal);
  }
}

absl::StatusOr<StepReport> GraphExecutor::Step(std::vector<at::Tensor> inputs,
                                               const at::Tensor& target) {
  absl::Status fits = CheckInputs(inputs);
  if (!fits.ok()) return fits;
  if (in_engine_order_) return StepByAutograd(std::move(inputs), target);
  try {
    model_->EnsureGradients();
    StateGuard before(model_->buffers());
    Bytes bytes;
    for (const at::Tensor& input : inputs) bytes += Bytes(static_cast<int64_t>(input.nbytes()));
    StepState state = Begin(std::move(inputs), target, /*lent=*/true);
    if (measured_ != nullptr) state.recorder = std::make_unique<StepRecorder>(device_, bytes);
    const StepMeter step(device_->meter(), bytes, device_->host());
    absl::Status status = RunUpTo(schedule_.size(), &state);
    step.Finish(&state.report);
    state.sources.clear();
    const absl::Status released = state.tensors.Release();
    if (status.ok()) status = released;
    if (!status.ok()) return status;
    state.report.forwards = state.runner.forwards();
    state.report.recomputed_forwards = state.runner.recomputed_forwards();
    state.report.offloaded = state.tensors.copies().offloaded();
    state.report.prefetched = state.tensors.copies().prefetched();
    before.Dismiss();
    if (state.recorder) *measured_ = state.recorder->Finish(schedule_, state.report);
    return state.report;
  } catch (...) {
    return CurrentExceptionToStatus("training step", absl::StatusCode::kInternal);
  }
}

}  // namespace stowage
