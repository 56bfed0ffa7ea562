#include "client/torch/execute/plan_cursor.h"

#include <ATen/Functions.h>
#include <ATen/SequenceNumber.h>
#include <ATen/TensorOperators.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/torch/base/autograd_node.h"
#include "client/torch/base/tensor_storage.h"
#include "client/torch/base/torch_status.h"
#include "client/torch/execute/movable_parts.h"
#include "client/torch/execute/packing_scope.h"
#include "client/torch/execute/run_backward.h"
#include "client/torch/execute/step_failure.h"
#include "client/torch/execute/used_parameters.h"
#include "client/torch/model/autocast_state.h"
#include "client/torch/model/model_state.h"
#include "client/torch/offload/device_use.h"

namespace stowage {

using torch::autograd::Edge;
using torch::autograd::Node;
using torch::autograd::variable_list;

namespace {

std::vector<std::vector<at::Tensor>> PartsToTellOf(const NodeRunner& runner,
                                                   const OnGradientReady& ready) {
  return ready ? runner.Parts() : std::vector<std::vector<at::Tensor>>();
}

bool AsksForGradient(const at::Tensor& tensor) {
  return tensor.defined() && tensor.requires_grad();
}

}  // namespace

void PlanCursor::CheckMayRun(const PlanCursor* cursor) {
  if (cursor == nullptr) {
    ThrowStatus(
        absl::FailedPreconditionError("Trying to backward through a planned step a second time: "
                                      "what it held for that is freed. "
                                      "Set retain_graph the first time."));
  }
  if (at::GradMode::is_enabled()) {
    cursor->plan_->open_backwards.Begin();  // autograd's queues have what else was ready
    ThrowStatus(absl::UnimplementedError("a planned step has no gradient of its gradient"));
  }
}

// Behind a node's own graph: what readers give to one of its outputs comes together here. Of an input, between the model's
// graph and the caller's.
class PlanCursor::Boundary : public Node {
 public:
  Boundary(std::shared_ptr<PlanCursor> cursor, NodeOutput made, Edge next, const at::Tensor& value)
      : cursor_(std::move(cursor)), made_(made) {
    add_next_edge(std::move(next));
    add_input_metadata(value);
  }

  // Behind `before`, with its number.
  Boundary(const Boundary& before, Edge next, const at::Tensor& value)
      : Node(before.sequence_nr()), cursor_(before.cursor_), made_(before.made_) {
    add_next_edge(std::move(next));
    add_input_metadata(value);
  }

  NodeOutput made() const { return made_; }

  // Of an output, where there are several on a device with a thread of autograd's own: a caller may begin his backward at
  // outputs themselves, and the engine hands roots over one by one. It holds its lock meanwhile, which it needs to go on
  // from a node: so a node of its own behind this one, with the same number, has the cursor reach v. None is reached before
  // all roots are there, to be taken in the order of their numbers, and this one still has the whole gradient of the output.
  void ReachFromBehind(const at::Tensor& value) {
    if (reaches_from_behind_) return;
    reaches_from_behind_ = true;
    Edge& next = next_edges()[0];
    next = Edge(MakeNode<Boundary>(*this, std::move(next), value), 0);
  }

  variable_list apply(variable_list&& gradients) override {
    const std::shared_ptr<PlanCursor> cursor = cursor_;
    CheckMayRun(cursor.get());
    if (!reaches_from_behind_) cursor->Reach(made_, gradients[0]);
    return std::move(gradients);
  }

  void release_variables() override { cursor_.reset(); }
  // What a profiler shows where the backward begins.
  std::string name() const override {
    return cursor_ == nullptr || reaches_from_behind_
               ? "StowageBoundary"
               : absl::StrCat("stowage backward ", cursor_->plan_->NumberOf(made_.node), ", ",
                              cursor_->plan_->NameOf(made_.node));
  }

 private:
  std::shared_ptr<PlanCursor> cursor_;
  NodeOutput made_;
  bool reaches_from_behind_ = false;
};

namespace {

std::vector<NodeOutput> AskingOf(const GraphModel& model, const torch::autograd::edge_list& edges) {
  std::vector<NodeOutput> asking;
  for (size_t i = 0; i < edges.size(); ++i) {
    if (edges[i].is_valid()) asking.push_back(model.inputs()[i]);
  }
  return asking;
}

}  // namespace

// All backwards of a plan, in its order.
class PlanCursor::WholeBackward : public Node {
 public:
  explicit WholeBackward(std::shared_ptr<PlanCursor> cursor) : cursor_(std::move(cursor)) {}

  // The number of the input for the gradient of a loss.
  uint32_t Add(NodeOutput loss, const at::Tensor& value) {
    losses_.push_back(loss);
    return add_input_metadata(value);
  }

  variable_list apply(variable_list&& gradients) override {
    const std::shared_ptr<PlanCursor> cursor = cursor_;
    CheckMayRun(cursor.get());
    const OnBackwardsThread here(input_metadata(0).device());
    cursor->BackwardFrom(losses_, std::move(gradients));
    return {};
  }

  void release_variables() override { cursor_.reset(); }
  std::string name() const override { return "StowageBackward"; }

 private:
  std::shared_ptr<PlanCursor> cursor_;
  std::vector<NodeOutput> losses_;
};

PlanCursor::PlanCursor(std::shared_ptr<const StepPlan> plan, Inputs inputs, Tensors targets,
                       OnGradientReady ready)
    : plan_(std::move(plan)),
      model_(*plan_->model),
      targets_(std::move(targets)),
      runner_(plan_->model.get(), plan_->device->device()),
      inputs_(std::move(inputs)),
      put_(inputs_.sources.size()),
      tensors_(plan_->HoldNothing()),
      slots_(static_cast<size_t>(model_.size())),
      boundaries_(model_.ForEachOutput<NodePtrTo<Boundary>>()),
      ready_(std::move(ready)),
      complete_(PartsToTellOf(runner_, ready_), ready_),
      parameter_versions_("parameter", model_.parameters()),
      input_versions_("input", inputs_.sources) {
  Begin();
  if (inputs_.once) runner_.ExpectOnce(&plan_->runs_once);
  for (const NodeOutput made : model_.outputs()) outputs_.push_back({made, nullptr, {}, {}});
  if (!plan_->in_engine_order) {
    own_graphs_.resize(slots_.size());
    gradients_ = model_.ForEachOutput<at::Tensor>();
    runner_.BeginStep(targets_, ready_);
    return;
  }
  runner_.BeginForwards(targets_, AskingOf(model_, inputs_.edges));
  passages_.emplace(*plan_, tensors_.get());
}

PlanCursor::~PlanCursor() {
  try {
    Tell(WhyNotEnded(absl::CancelledError("the graph of the step went without a backward")));
  } catch (...) {
    // Whoever drops a graph wants to know nothing of it.
  }
  inputs_.sources.clear();  // what is lent is then wanted by nobody else
}

// A chain holds its input from the beginning; of a graph, there is an instruction for each.
void PlanCursor::Begin() {
  if (plan_->chain) PutSources(0);
}

void PlanCursor::PutSources(int v) {
  std::vector<at::Tensor> tensors;
  for (size_t i = 0; i < inputs_.sources.size(); ++i) {
    if (model_.inputs()[i].node != v) continue;
    at::Tensor& source = inputs_.sources[i];
    if (!inputs_.keeps && !inputs_.once) put_[i] = WeakTensor(source);
    tensors.push_back(inputs_.keeps ? source : std::exchange(source, {}));
  }
  tensors_->PutSource(v, tensors);
}

void PlanCursor::TakeSourcesBack() {
  std::vector<at::Tensor> back =
      inputs_.sources;  // all of them, or none is held by a backward that is refused
  for (size_t i = 0; i < put_.size(); ++i) {
    if (!back[i].defined()) back[i] = put_[i].Lock();
    if (back[i].defined()) continue;
    ThrowStatus(absl::FailedPreconditionError(
        absl::StrCat("a second backward runs the forward again, but nobody holds ",
                     plan_->NameOfSource(model_.inputs()[i]), " any more")));
  }
  inputs_.sources = std::move(back);
}

InstructionRunner PlanCursor::Runner() {
  return {plan_->device, [this](const Instruction& i) { Run(i); },
          [this](int number) { return plan_->Name(number); }, recorder_.get(), &thrown_};
}

absl::Status PlanCursor::RunUpTo(size_t end) {
  return RunInstructions(plan_->schedule, end, Runner(), &next_, &report_);
}

absl::Status PlanCursor::Forward() {
  for (size_t i = 0; i < inputs_.edges.size(); ++i) {
    if (!inputs_.edges[i].is_valid()) continue;
    const NodeOutput input = model_.inputs()[i];
    boundaries_[input] =
        MakeNode<Boundary>(shared_from_this(), input, inputs_.edges[i], tensors_->Value(input));
  }
  inputs_.edges.clear();
  failure_ = RunUpTo(plan_->first_backward);
  for (Output& output : outputs_) {
    output.boundary = boundaries_[output.made];
  }
  // They hold the cursor, as does the graph.
  for (int v = 0; v < model_.size(); ++v) {
    for (NodePtrTo<Boundary>& boundary : boundaries_.of(v)) boundary.reset();
  }
  if (!failure_.ok()) {
    losses_.clear();
    outputs_.clear();
    Release().IgnoreError();
  }
  return failure_;
}

// They share the memory of the tensors that the plan holds, and nothing else with them.
std::vector<at::Tensor> PlanCursor::InputsInGraph(int v) const {
  const std::vector<NodeOutput>& inputs = model_.node(v).inputs;
  std::vector<at::Tensor> passed;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto first =
        static_cast<size_t>(std::find(inputs.begin(), inputs.end(), inputs[i]) - inputs.begin());
    if (first < i) {
      passed.push_back(passed[first]);
      continue;
    }
    const at::Tensor& value = tensors_->Value(inputs[i]);
    passed.push_back(value.defined() ? value.variable_data() : value);
    const NodePtrTo<Boundary>& boundary = boundaries_[inputs[i]];
    if (boundary) torch::autograd::impl::set_gradient_edge(passed.back(), Edge(boundary, 0));
  }
  return passed;
}

void PlanCursor::InsertPassages(int v, const std::vector<Node*>& nodes, uint64_t number) {
  // Inputs of which v is the last reader: what comes after others have given something is a sum.
  std::vector<GradientPassages::End> ends;
  for (const NodeOutput input : model_.node(v).inputs) {
    const NodePtrTo<Boundary>& boundary = boundaries_[input];
    if (!boundary || plan_->last_reader[boundary->made()] > v) continue;
    const bool is_known =
        std::any_of(ends.begin(), ends.end(),
                    [&](const GradientPassages::End& end) { return end.boundary == boundary; });
    if (!is_known) ends.push_back({boundary, boundary->made()});
  }
  passages_->Insert(nodes, number, ends, new_gradients_ ? &*new_gradients_ : nullptr);
}

void PlanCursor::RunForExtras(int v, bool saves, const std::vector<at::Tensor>* outputs,
                              absl::FunctionRef<void()> forward) {
  if (!saves || !plan_->moves_extras[static_cast<size_t>(v)]) return forward();
  const SavedSlots& slots = slots_[static_cast<size_t>(v)];
  const auto owned = [&] {
    forward();
    return plan_->owns_memory[static_cast<size_t>(v)] ? Tensors(*outputs) : Tensors();
  };
  const bool warm = plan_->warm_nodes.Run(v);
  tensors_->PutExtras(v, MovableParts(
                             plan_->device, owned,
                             [&] { return slots.OwnStorages(plan_->device->device()); }, warm));
}

std::vector<at::Tensor> PlanCursor::Record(int v, bool saves, const std::vector<at::Tensor>& inputs,
                                           absl::FunctionRef<std::vector<at::Tensor>()> forward) {
  SavedSlots& slots = slots_[static_cast<size_t>(v)];
  const bool yields = plan_->never_drops[static_cast<size_t>(v)];
  std::vector<at::Tensor> outputs;
  if (inputs_.once && plan_->SavesForGood(v)) {
    {
      const OwnSavingScope saving(yields);
      outputs = forward();
    }
    slots.Hold(outputs);
    return outputs;
  }
  {
    // What must not run again is not dropped.
    const SavedSlots::Recording recording(&slots, saves || model_.node(v).must_keep, yields);
    outputs = forward();
  }
  slots.Settle(runner_.HeldByOthers(v, inputs, outputs), outputs);
  return outputs;
}

std::vector<at::Tensor> PlanCursor::FirstForwardAlone(int v, bool saves) {
  SavedNode& graph = own_graphs_[static_cast<size_t>(v)];
  const std::vector<at::Tensor> inputs = ValuesOfInputs(v);
  RunForExtras(v, saves, &graph.outputs, [&] {
    Record(v, saves, inputs, [&] {
      graph = runner_.ForwardSaving(v, inputs);
      return graph.outputs;
    });
  });
  NoteOutputs(v, graph.outputs);
  return WithoutGraphs(graph.outputs);
}

std::vector<at::Tensor> PlanCursor::FirstForward(int v, bool saves) {
  if (!plan_->in_engine_order) return FirstForwardAlone(v, saves);
  // The engine runs what has a higher number first.
  const uint64_t number = at::sequence_number::get_and_increment();
  std::vector<at::Tensor> outputs;
  std::vector<Node*> nodes;
  const auto run = [&] {
    const std::vector<at::Tensor> inputs = InputsInGraph(v);
    outputs = Record(v, saves, inputs, [&] { return runner_.ForwardInGraph(v, inputs); });
    nodes = NodesIn(v, outputs);
    // What must not run twice may run a backward of its own in its forward, which no graph shows.
    if (!model_.node(v).must_keep) CheckUsedParameters(nodes, model_.node(v).parameters);
  };
  RunForExtras(v, saves, &outputs, run);
  PutBoundaries(v, outputs, nodes, number);
  NoteOutputs(v, outputs);
  return WithoutGraphs(outputs);
}

void PlanCursor::PutBoundaries(int v, const std::vector<at::Tensor>& outputs,
                               const std::vector<Node*>& nodes, uint64_t number) {
  if (runner_.hands_on(v)) {
    // Its readers give to its input what they give to it.
    boundaries_[v] = boundaries_[model_.node(v).inputs.front()];
    return;
  }
  InsertPassages(v, nodes, number);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!AsksForGradient(outputs[i])) continue;
    const NodeOutput made(v, static_cast<int>(i));
    boundaries_[made] = MakeNode<Boundary>(
        shared_from_this(), made, torch::autograd::impl::gradient_edge(outputs[i]), outputs[i]);
  }
}

std::vector<Node*> PlanCursor::NodesIn(int v, const std::vector<at::Tensor>& outputs) const {
  std::vector<const Node*> ends;
  for (const NodeOutput input : model_.node(v).inputs) ends.push_back(boundaries_[input].get());
  return NodesOf(outputs, ends);
}

void PlanCursor::NoteOutputs(int v, const std::vector<at::Tensor>& made) {
  for (Output& output : outputs_) {
    if (output.made.node != v) continue;
    // A caller who writes over what he gets of it is found out where the backward needs it.
    const at::Tensor& tensor = made[static_cast<size_t>(output.made.index)];
    if (tensor.defined()) output.version = torch::autograd::impl::version_counter(tensor);
  }
}

void PlanCursor::KeepOutputsIn(int v) {
  for (Output& output : outputs_) {
    if (output.kept.defined() || plan_->OwnerOf(output.made.node) != v) continue;
    if (runner_.has_run(output.made.node)) output.kept = tensors_->Share(output.made);
  }
}

std::vector<at::Tensor> PlanCursor::ValuesOfInputs(int v) const {
  std::vector<at::Tensor> inputs;
  for (const NodeOutput input : model_.node(v).inputs) inputs.push_back(tensors_->Value(input));
  return inputs;
}

void PlanCursor::CheckMayRunAgain(int v) const {
  parameter_versions_.CheckUnchanged(plan_->parameters[static_cast<size_t>(v)]);
  const std::vector<NodeOutput>& read = model_.node(v).inputs;
  const auto is_source = [this](NodeOutput input) { return model_.is_input(input.node); };
  if (std::any_of(read.begin(), read.end(), is_source)) input_versions_.CheckUnchanged();
}

std::vector<at::Tensor> PlanCursor::ForwardAgain(int v, bool saves) {
  const std::vector<at::Tensor> inputs = ValuesOfInputs(v);
  if (!saves) return runner_.Forward(v, inputs);
  SavedSlots& slots = slots_[static_cast<size_t>(v)];
  std::vector<at::Tensor> outputs;
  const auto run = [&] {
    SavedSlots::Refilling refilling(&slots);
    outputs = WithoutGraphs(runner_.RunWithGraph(v, inputs).outputs);
    refilling.Check();
  };
  RunForExtras(v, saves, &outputs, run);
  return outputs;
}

void PlanCursor::ForwardStopped(int v) {
  const std::vector<at::Tensor> none;
  RunForExtras(v, /*saves=*/true, &none, [&] {
    runner_.ForwardStopped(v, ValuesOfInputs(v), &slots_[static_cast<size_t>(v)]);
  });
}

void PlanCursor::RunForward(const Instruction& instruction) {
  const int v = plan_->NodeOf(instruction);
  if (v == model_.size()) return;  // a loss that the caller has run
  if (model_.is_input(v)) return PutSources(v);
  const bool keeps = instruction.op == Op::kForwardSave;
  // A graph that holds nothing of its own costs nothing, and the backward may want it.
  const bool saves = keeps || plan_->saves_nothing[static_cast<size_t>(v)];
  const bool again = runner_.has_run(v);
  if (again) CheckMayRunAgain(v);
  if (plan_->stops[next_] && !slots_[static_cast<size_t>(v)].saves_output()) {
    return ForwardStopped(v);
  }
  tensors_->PutOutputs(v, again ? ForwardAgain(v, saves) : FirstForward(v, saves), keeps);
  if (!again && !plan_->callers_loss()) AddLosses(v);
}

void PlanCursor::AddLosses(int v) {
  for (int i = 0; i < model_.node(v).outputs; ++i) {
    if (model_.StartsBackward({v, i}, tensors_->Value({v, i}))) AddLoss({v, i});
  }
}

// The step goes on without waiting for its value.
void PlanCursor::AddLoss(NodeOutput made) {
  const at::Tensor& value = tensors_->Value(made);
  const NodePtrTo<Boundary>& boundary = boundaries_[made];
  Loss loss{made,
            0,
            at::Tensor(),
            value.sizes().vec(),
            value.options(),
            boundary ? Edge(boundary, 0) : Edge()};
  loss.on_host = loss_.Add(value);
  if (!loss.on_host.defined()) loss.value = value.item<double>();
  losses_.push_back(std::move(loss));
}

void PlanCursor::Measure(Bytes input, bool by_instruction) {
  ExecutionDevice* const device = plan_->device;
  if (by_instruction) recorder_ = std::make_shared<StepRecorder>(device, input);
  refusals_.emplace(device->meter());
  if (!by_instruction && plan_->in_engine_order) new_gradients_.emplace(model_, device->meter());
  base_ = device->meter()->current() - input;
  meter_.emplace(device->meter(), input, device->MakeTimer(), device->host());
}

void PlanCursor::FinishMeasuring() {
  meter_->Stop();
  meter_->Finish(loss_, &report_);
  if (new_gradients_) report_.peak = new_gradients_->TakePeak() - base_;
}

StepEnd PlanCursor::MeasuredEnd() const {
  StepReport report = report_;
  report.forwards = runner_.forwards();
  report.recomputed_forwards = runner_.recomputed_forwards();
  report.offloaded = tensors_->copies().offloaded();
  report.prefetched = tensors_->copies().prefetched();
  if (!recorder_) return {report, {}};
  return {report, Later<MeasuredStep>(
                      [recorder = recorder_, time = report.wall_time] {
                        return time.ready() && recorder->Passed();
                      },
                      [recorder = recorder_, plan = plan_, report] {
                        return recorder->Finish(plan->schedule, report);
                      })};
}

void PlanCursor::Tell(const absl::Status& status) {
  if (!ended_) return;
  const OnStepEnd ended = std::exchange(ended_, {});
  if (status.ok()) FinishMeasuring();
  StepEnd end = status.ok() ? MeasuredEnd() : StepEnd{status, {}};
  // A graph that is kept may be gone through again.
  recorder_.reset();
  new_gradients_.reset();
  ended(std::move(end));
}

// Of a step that ended in what is the caller's.
absl::Status PlanCursor::WhyNotEnded(const absl::Status& otherwise) const {
  ExecutionDevice* const device = plan_->device;
  const std::optional<MemoryRefusal> refusal = refusals_ ? refusals_->Last() : std::nullopt;
  if (!ended_ || !refusal) return otherwise;
  const size_t at = std::min(next_, plan_->schedule.size() - 1);
  const Instruction& instruction = plan_->schedule[at];
  absl::Status status = absl::ResourceExhaustedError(
      absl::StrCat("instruction ", at, " (", ToString(instruction), "), ",
                   plan_->Name(instruction.stage), ": ", WordsOfRefusal(*refusal)));
  SetStepFailure(RefusedStepFailure(at, *refusal, device), &status);
  return status;
}

void PlanCursor::EndBackward(bool well) {
  told_to_finish_ = false;
  if (well || runs_backward_) plan_->open_backwards.End();
  if (!well) {
    // A backward of its own is told of by who runs it.
    if (runs_backward_) return;
    return Tell(failure_.ok() ? WhyNotEnded(absl::AbortedError("the caller's backward failed"))
                              : failure_);
  }
  const absl::Status status = Finish();
  if (!status.ok()) Release().IgnoreError();
  Tell(status);
  if (!status.ok()) ThrowStatus(status, thrown_);
}

std::vector<at::Tensor> PlanCursor::TakeLosses() {
  const std::vector<Loss> taken = std::exchange(losses_, {});
  NodePtrTo<WholeBackward> whole;
  if (!plan_->in_engine_order) whole = MakeNode<WholeBackward>(shared_from_this());
  std::vector<at::Tensor> losses;
  for (const Loss& loss : taken) {
    losses.push_back(loss.on_host.defined()
                         ? loss.on_host.to(loss.options.device(), /*non_blocking=*/true)
                         : at::full(loss.sizes, loss.value, loss.options));
    Edge edge = loss.edge;
    if (whole && runner_.gives_gradient(loss.made)) {
      edge = Edge(whole, whole->Add(loss.made, losses.back()));
    }
    if (edge.is_valid()) torch::autograd::impl::set_gradient_edge(losses.back(), edge);
  }
  return losses;
}

std::vector<at::Tensor> PlanCursor::TakeOutputs() {
  std::vector<Output> taken = std::exchange(outputs_, {});
  NodePtrTo<WholeBackward> whole;
  if (!plan_->in_engine_order) whole = MakeNode<WholeBackward>(shared_from_this());
  std::vector<at::Tensor> outputs;
  for (Output& output : taken) {
    outputs.push_back(output.kept.defined() ? std::move(output.kept)
                                            : tensors_->Share(output.made));
    if (!outputs.back().defined()) continue;
    torch::autograd::impl::set_version_counter(outputs.back(), output.version);
    Edge edge(output.boundary, 0);
    if (whole && runner_.gives_gradient(output.made)) {
      edge = Edge(whole, whole->Add(output.made, outputs.back()));
    } else if (!whole && output.boundary && taken.size() > 1 && !outputs.back().is_cpu()) {
      output.boundary->ReachFromBehind(outputs.back());
    }
    if (edge.is_valid()) torch::autograd::impl::set_gradient_edge(outputs.back(), edge);
  }
  return outputs;
}

void PlanCursor::Run(const Instruction& instruction) {
  switch (instruction.op) {
    case Op::kForwardSave:
    case Op::kForwardNoSave:
      return RunForward(instruction);
    case Op::kForwardNoSaveFreeInput:
      RunForward(instruction);
      return tensors_->Run(Discard(TensorKind::kActivation, instruction.stage - 1));
    case Op::kBackward: {
      const int v = plan_->NodeOf(instruction);
      return plan_->in_engine_order ? SkipBackward(v) : RunOwnBackward(v);
    }
    case Op::kDiscard:
    case Op::kDropSavedKeepOutput:
      if (instruction.tensor == TensorKind::kSaved) {
        slots_[static_cast<size_t>(plan_->NodeOf(instruction))].Drop();
      } else {
        KeepOutputsIn(plan_->NodeOf(instruction));
      }
      return tensors_->Run(instruction);
    case Op::kOffloadStart:
      if (instruction.tensor == TensorKind::kActivation) {
        KeepOutputsIn(plan_->NodeOf(instruction));
      }
      return tensors_->Run(instruction);
    case Op::kOffloadWait:
    case Op::kPrefetchStart:
    case Op::kPrefetchWait:
      return tensors_->Run(instruction);
  }
}

// No gradient has come to v, and none will; or the caller's loss has given his own.
void PlanCursor::SkipBackward(int v) {
  tensors_->FinishBackward(v);
  if (v == model_.size()) return;
  slots_[static_cast<size_t>(v)].Drop();
  complete_.Finish(v);
}

void PlanCursor::RunOwnBackward(int v) {
  if (model_.is_input(v)) return;
  tensors_->BeginBackward(v);
  slots_[static_cast<size_t>(v)].LetGo();
  SavedNode graph = std::move(own_graphs_[static_cast<size_t>(v)]);
  if (runner_.hands_on(v)) {
    // Its readers have given to its input what they gave to it.
    runner_.PassBackward(v);
  } else {
    const std::vector<NodeOutput>& inputs = model_.node(v).inputs;
    std::vector<at::Tensor> running;
    for (const NodeOutput input : inputs) running.push_back(std::move(GradientOf(input)));
    std::vector<at::Tensor> given(gradients_.of(v).size());
    given.swap(gradients_.of(v));
    running = runner_.Backward(v, std::move(graph), std::move(given), std::move(running), starts_);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (running[i].defined()) GradientOf(inputs[i]) = std::move(running[i]);
    }
  }
  tensors_->FinishBackward(v);
  slots_[static_cast<size_t>(v)].Drop();
}

void PlanCursor::BackwardFrom(const std::vector<NodeOutput>& losses,
                              std::vector<at::Tensor> gradients) {
  if (!failure_.ok()) ThrowStatus(failure_, thrown_);
  if (next_ > plan_->first_backward) BeginAgain();
  plan_->open_backwards.Begin();
  WhenBackwardEnds([cursor = shared_from_this()](bool well) { cursor->EndBackward(well); });
  CheckMayBegin();
  for (size_t i = 0; i < losses.size(); ++i) {
    if (!gradients[i].defined()) continue;
    at::Tensor& given = GradientOf(losses[i]);
    given = given.defined() ? given + gradients[i] : std::move(gradients[i]);
  }
  failure_ = RunUpTo(plan_->schedule.size());
  if (failure_.ok()) return;
  Release().IgnoreError();
  ThrowStatus(failure_, thrown_);
}

void PlanCursor::CheckMayBegin() const {
  parameter_versions_.CheckUnchanged();
  input_versions_.CheckUnchanged();
}

void PlanCursor::BeginAgain() {
  if (inputs_.once) {
    ThrowStatus(
        absl::InternalError("the backwards of a step came in another order than its plan's"));
  }
  if (!plan_->in_engine_order) {
    ThrowStatus(absl::UnimplementedError(
        "Trying to backward a second time through a planned graph whose backwards come in another "
        "order than autograd's, which it cannot do"));
  }
  for (int v = 0; v < model_.size(); ++v) {
    if (plan_->recomputable[static_cast<size_t>(v)]) continue;
    ThrowStatus(absl::FailedPreconditionError(
        absl::StrCat("a second backward runs the forward again, but ", plan_->NameOf(v),
                     " must not run twice in a step")));
  }
  TakeSourcesBack();
  for (SavedSlots& slots : slots_) slots.Drop();
  const absl::Status has_sources = tensors_->Release();
  if (!has_sources.ok()) ThrowStatus(has_sources);
  Begin();
  passages_->BeginAgain(model_);
  complete_ = CompleteGradients(PartsToTellOf(runner_, ready_), ready_);
  next_ = 0;
}

bool PlanCursor::IsInBackwardOf(int v) const {
  return in_backward_ && plan_->NodeOf(plan_->schedule[next_]) == v;
}

void PlanCursor::Reach(NodeOutput made, const at::Tensor& gradient) {
  const int v = made.node;
  if (!failure_.ok()) ThrowStatus(failure_, thrown_);
  // Another of its outputs was reached before.
  if (told_to_finish_ && IsInBackwardOf(v)) {
    if (plan_->chain) held_gradients_.push_back(gradient);
    return;
  }
  if (!told_to_finish_) {
    told_to_finish_ = true;
    plan_->open_backwards.Begin();
    WhenBackwardEnds([cursor = shared_from_this()](bool well) { cursor->EndBackward(well); });
    CheckMayBegin();
  }
  FinishBackward();
  if (model_.is_input(v)) return;
  const size_t at = plan_->backward_at[static_cast<size_t>(v)];
  if (next_ > at) BeginAgain();
  if (next_ < at) failure_ = RunUpTo(at);
  if (!failure_.ok()) {
    Release().IgnoreError();
    ThrowStatus(failure_, thrown_);
  }
  if (recorder_) recorder_->Start();
  in_backward_ = true;
  // The accounting of chains has it to the end of the backward.
  if (plan_->chain) held_gradients_ = {gradient};
  tensors_->BeginBackward(v);
  slots_[static_cast<size_t>(v)].LetGo();
}

void PlanCursor::FinishBackward() {
  if (!in_backward_) return;
  in_backward_ = false;
  held_gradients_.clear();
  const int v = plan_->NodeOf(plan_->schedule[next_]);
  for (const NodeOutput input : model_.node(v).inputs) {
    passages_->HasGradient(runner_.GradientOwner(input));
  }
  SkipBackward(v);
  if (recorder_) recorder_->Stop();
  ++report_.counts[static_cast<size_t>(Op::kBackward)];
  ++next_;
}

absl::Status PlanCursor::Finish() {
  if (!failure_.ok()) return failure_;
  if (next_ == plan_->schedule.size()) return absl::OkStatus();
  FinishBackward();
  failure_ = RunUpTo(plan_->schedule.size());
  return failure_;
}

absl::Status PlanCursor::Backward() {
  if (!plan_->in_engine_order) {
    starts_ = true;
    const auto run = [this] { failure_ = RunUpTo(plan_->schedule.size()); };
    const c10::Device device = plan_->device->device();
    // A backward for each node: as many that another thread runs make a step wait for that thread to wake up as often.
    if (device.is_cpu()) {
      run();
    } else {
      RunOnBackwardsThread(device, run);
    }
    return failure_;
  }
  torch::autograd::edge_list roots;
  std::vector<at::Tensor> gradients;
  const DeviceUse use(plan_->device->device());
  runs_backward_ = true;
  try {
    for (const Loss& loss : std::exchange(losses_, {})) {
      if (!loss.edge.is_valid()) continue;
      roots.push_back(loss.edge);
      gradients.push_back(at::ones(loss.sizes, loss.options));
    }
    const AutocastScope off(AutocastState::Capture().Off());
    if (!roots.empty()) RunBackwardFrom(std::move(roots), std::move(gradients));
    if (failure_.ok()) failure_ = Finish();
  } catch (...) {
    if (failure_.ok() && next_ < plan_->schedule.size()) {
      failure_ = CurrentInstructionFailure(plan_->schedule, next_, Runner());
    } else if (failure_.ok()) {
      // What others do then, as c10d's Reducer, which waits for other ranks: the plan has no part in it.
      failure_ = absl::InternalError(
          CurrentExceptionToStatus("the end of the backward", absl::StatusCode::kInternal)
              .message());
    }
  }
  return failure_;
}

absl::Status PlanCursor::Release() {
  held_gradients_.clear();
  for (SavedSlots& slots : slots_) slots.Drop();
  outputs_.clear();
  own_graphs_.assign(own_graphs_.size(), {});
  gradients_.clear();
  inputs_.sources.clear();
  return tensors_->Release();
}

absl::StatusOr<StepReport> RunStep(const std::shared_ptr<const StepPlan>& plan,
                                   std::vector<at::Tensor> sources, const Tensors& targets,
                                   Bytes input_bytes, const OnGradientReady& ready,
                                   Later<MeasuredStep>* measured) {
  try {
    ExecutionDevice* const device = plan->device;
    StateGuard before(plan->model->buffers(), device->device());
    const auto cursor = std::make_shared<PlanCursor>(
        plan, PlanCursor::Inputs{std::move(sources), {}, /*keeps=*/false, /*once=*/true}, targets,
        ready);
    cursor->Measure(input_bytes, measured != nullptr);
    absl::Status status = cursor->Forward();
    if (status.ok()) status = cursor->Backward();
    if (status.ok()) cursor->FinishMeasuring();
    const absl::Status released = cursor->Release();
    if (status.ok()) status = released;
    if (!status.ok()) return status;
    before.Dismiss();
    StepEnd end = cursor->MeasuredEnd();
    if (measured != nullptr) *measured = std::move(end.measured);
    return end.report;
  } catch (...) {
    return CurrentExceptionToStatus("training step", absl::StatusCode::kInternal);
  }
}

}  // namespace stowage
