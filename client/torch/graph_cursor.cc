#include "client/torch/graph_cursor.h"

#include <ATen/Functions.h>
#include <ATen/SequenceNumber.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/torch/autocast_state.h"
#include "client/torch/device_use.h"
#include "client/torch/passed_input.h"
#include "client/torch/run_backward.h"
#include "client/torch/saved_tensor_scope.h"
#include "client/torch/tensor_storage.h"
#include "client/torch/torch_status.h"

namespace stowage {

using torch::autograd::Edge;
using torch::autograd::Node;
using torch::autograd::variable_list;

std::shared_ptr<const GraphPlan> MakeGraphPlan(const GraphModel* model, Graph graph,
                                               Schedule schedule, ExecutionDevice* device) {
  const auto size = static_cast<size_t>(graph.size());
  GraphPlan plan{model, std::move(graph), std::move(schedule), device, {}, {}, {}, {}};
  plan.moves_extras.resize(size);
  plan.moves_source.resize(size);
  plan.backward_at.resize(size);
  const std::vector<bool> trains = model->NeedGradients();
  plan.last_reader.assign(size, -1);
  for (int v = 0; v < model->size(); ++v) {
    for (const int input : model->node(v).inputs) {
      if (trains[static_cast<size_t>(v)]) plan.last_reader[static_cast<size_t>(input)] = v;
    }
  }
  plan.first_backward = plan.schedule.size();
  for (size_t i = 0; i < plan.schedule.size(); ++i) {
    const Instruction& instruction = plan.schedule[i];
    const size_t v = static_cast<size_t>(instruction.stage) - 1;
    if (instruction.op == Op::kOffloadStart) {
      (instruction.tensor == TensorKind::kSaved ? plan.moves_extras : plan.moves_source)[v] = true;
    } else if (instruction.op == Op::kBackward) {
      plan.backward_at[v] = i;
      plan.first_backward = std::min(plan.first_backward, i);
    }
  }
  return std::make_shared<const GraphPlan>(std::move(plan));
}

bool IsInEngineOrder(const GraphPlan& plan) {
  const std::vector<bool> trains = plan.model->NeedGradients();
  std::vector<bool> has_run(trains.size(), false);
  size_t last = trains.size();
  size_t first = 0;
  for (size_t i = 0; i < plan.schedule.size(); ++i) {
    const Instruction& instruction = plan.schedule[i];
    const auto v = static_cast<size_t>(instruction.stage) - 1;
    if (IsForward(instruction.op)) {
      if (trains[v] && !has_run[v]) {
        if (v < first || i > plan.first_backward) return false;
        first = v;
      }
      has_run[v] = true;
    } else if (instruction.op == Op::kBackward && trains[v]) {
      if (v > last) return false;
      last = v;
    }
  }
  return true;
}

namespace {

std::vector<at::Tensor> Defined(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> defined;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined()) defined.push_back(tensor);
  }
  return defined;
}

}  // namespace

// Behind a node's own graph: what readers give to its output comes together here.
class GraphCursor::Boundary : public Node {
 public:
  Boundary(std::shared_ptr<GraphCursor> cursor, int v, const at::Tensor& output)
      : cursor_(std::move(cursor)), v_(v) {
    add_next_edge(torch::autograd::impl::gradient_edge(output));
    add_input_metadata(output);
  }

  int vertex() const { return v_; }

  variable_list apply(variable_list&& gradients) override {
    if (at::GradMode::is_enabled()) {
      ThrowStatus(absl::UnimplementedError("a planned step has no gradient of its gradient"));
    }
    const std::shared_ptr<GraphCursor> cursor = cursor_;
    if (cursor == nullptr) {
      ThrowStatus(
          absl::FailedPreconditionError("Trying to backward through a planned step a second time: "
                                        "what it held for that is freed. "
                                        "Set retain_graph the first time."));
    }
    cursor->Reach(v_);
    return std::move(gradients);
  }

  void release_variables() override { cursor_.reset(); }
  // What a profiler shows where the backward begins.
  std::string name() const override {
    return cursor_ == nullptr
               ? "StowageBoundary"
               : absl::StrCat("stowage backward ", v_ + 1, ", ", cursor_->model_.Describe(v_));
  }

 private:
  std::shared_ptr<GraphCursor> cursor_;
  int v_;
};

// On the one edge from a node's own graph to something that no later node reads. Gives what comes memory of its own: the
// plan counts it so, while autograd would let gradients share theirs.
class GraphCursor::Passage : public Node {
 public:
  // Runs after all of the node's own graph, whose numbers are higher: what is shared in there is not any more then.
  Passage(std::weak_ptr<GraphCursor> cursor, const std::shared_ptr<Boundary>& to,
          const at::Tensor& value, uint64_t number)
      : Node(number), cursor_(std::move(cursor)), v_(to->vertex()) {
    add_next_edge(Edge(to, 0));
    add_input_metadata(value);
  }

  variable_list apply(variable_list&& gradients) override {
    const std::shared_ptr<GraphCursor> cursor = cursor_.lock();
    if (cursor == nullptr || !gradients[0].defined() || at::GradMode::is_enabled())
      return std::move(gradients);
    if (cursor->has_gradient_[static_cast<size_t>(v_)]) return std::move(gradients);
    return {GradientWithOwnMemory(std::move(gradients[0]))};
  }

  std::string name() const override { return "StowagePassage"; }

 private:
  std::weak_ptr<GraphCursor> cursor_;
  int v_;
};

// On an edge to the accumulator of a parameter that several nodes use. The sum of what they give waits there until the
// last of them has run: in memory that is there from the beginning, as that of gradients is.
class GraphCursor::TiedPassage : public Node {
 public:
  TiedPassage(std::shared_ptr<TiedSum> sum, const std::shared_ptr<Node>& accumulator,
              const at::Tensor& parameter, uint64_t number)
      : Node(std::numeric_limits<uint64_t>::max() - 1 - number), sum_(std::move(sum)) {
    add_next_edge(Edge(accumulator, 0));
    add_input_metadata(parameter);
  }

  variable_list apply(variable_list&& gradients) override {
    at::Tensor memory = std::move(sum_->memory);
    if (!memory.defined() || !gradients[0].defined() || gradients[0].is_sparse() ||
        at::GradMode::is_enabled()) {
      return std::move(gradients);
    }
    // The engine adds to it what comes later, in place.
    return {memory.copy_(gradients[0])};
  }

  std::string name() const override { return "StowageTiedPassage"; }

 private:
  std::shared_ptr<TiedSum> sum_;
};

GraphCursor::GraphCursor(std::shared_ptr<const GraphPlan> plan, std::vector<at::Tensor> sources,
                         const at::Tensor& target, OnGradientReady ready)
    : plan_(std::move(plan)),
      model_(*plan_->model),
      target_(target),
      runner_(plan_->model),
      tensors_(&plan_->graph, plan_->device),
      sources_(std::move(sources)),
      slots_(sources_.size()),
      boundaries_(sources_.size()),
      has_gradient_(sources_.size(), false),
      complete_(runner_.Parts(), std::move(ready)),
      parameters_("parameter", model_.parameters()),
      inputs_("input", Defined(sources_)) {
  runner_.BeginForwards(target);
  for (const at::Tensor& parameter : model_.tied_parameters()) {
    if (!parameter.requires_grad()) continue;
    const std::shared_ptr<Node> accumulator = torch::autograd::impl::grad_accumulator(parameter);
    tied_.emplace(
        accumulator.get(),
        Tied{parameter, accumulator,
             std::make_shared<TiedSum>(TiedSum{at::empty_like(parameter.variable_data())})});
  }
}

InstructionRunner GraphCursor::Runner() {
  return {plan_->device, [this](const Instruction& i) { Run(i); },
          [this](int number) { return model_.Describe(number - 1); }, recorder_.get()};
}

absl::Status GraphCursor::RunUpTo(size_t end) {
  return RunInstructions(plan_->schedule, end, Runner(), &next_, &report_);
}

absl::Status GraphCursor::Forward() {
  failure_ = RunUpTo(plan_->first_backward);
  // They hold the cursor, as does the graph.
  boundaries_.assign(boundaries_.size(), nullptr);
  if (!failure_.ok()) {
    losses_.clear();
    Release().IgnoreError();
  }
  return failure_;
}

// They share the memory of the tensors that the plan holds, and nothing else with them.
std::vector<at::Tensor> GraphCursor::InputsInGraph(int v) const {
  const std::vector<int>& inputs = model_.node(v).inputs;
  std::vector<at::Tensor> passed;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto first =
        static_cast<size_t>(std::find(inputs.begin(), inputs.end(), inputs[i]) - inputs.begin());
    if (first < i) {
      passed.push_back(passed[first]);
      continue;
    }
    passed.push_back(tensors_.Value(inputs[i]).variable_data());
    const std::shared_ptr<Boundary>& boundary = boundaries_[static_cast<size_t>(inputs[i])];
    if (boundary) torch::autograd::impl::set_gradient_edge(passed.back(), Edge(boundary, 0));
  }
  return passed;
}

void GraphCursor::InsertPassages(int v, const at::Tensor& output, uint64_t number) {
  std::unordered_map<const Node*, std::vector<Edge*>> edges_to;  // boundaries of inputs
  for (const int input : model_.node(v).inputs) {
    const std::shared_ptr<Boundary>& boundary = boundaries_[static_cast<size_t>(input)];
    if (boundary) edges_to[boundary.get()];
  }
  std::unordered_set<Node*> seen;
  std::vector<Node*> left = {torch::autograd::impl::gradient_edge(output).function.get()};
  while (!left.empty()) {
    Node* const node = left.back();
    left.pop_back();
    if (edges_to.count(node) > 0 || !seen.insert(node).second) continue;
    uint64_t of_edge = 0;
    for (Edge& edge : node->next_edges()) {
      ++of_edge;  // in the order in which autograd adds up
      if (!edge.is_valid()) continue;
      const auto input = edges_to.find(edge.function.get());
      const auto tied = tied_.find(edge.function.get());
      if (input != edges_to.end()) {
        input->second.push_back(&edge);
      } else if (tied != tied_.end()) {
        const std::shared_ptr<TiedPassage> passage(
            new TiedPassage(tied->second.sum, tied->second.accumulator, tied->second.parameter,
                            of_edge),
            torch::autograd::deleteNode);
        edge = Edge(passage, 0);
      } else {
        left.push_back(edge.function.get());
      }
    }
  }
  for (const int input : model_.node(v).inputs) {
    const std::shared_ptr<Boundary>& boundary = boundaries_[static_cast<size_t>(input)];
    // What comes by several edges is a sum, in memory of its own; so is what comes after others have given something.
    if (!boundary || edges_to[boundary.get()].size() != 1) continue;
    const int u = boundary->vertex();
    if (plan_->last_reader[static_cast<size_t>(u)] > v) continue;
    const std::shared_ptr<Passage> passage(
        new Passage(weak_from_this(), boundary, tensors_.Value(u), number),
        torch::autograd::deleteNode);
    *edges_to[boundary.get()].front() = Edge(passage, 0);
    edges_to[boundary.get()].clear();
  }
}

std::unordered_set<const c10::StorageImpl*> GraphCursor::HeldByOthers(
    int v, const std::vector<at::Tensor>& inputs, const at::Tensor& output) const {
  std::unordered_set<const c10::StorageImpl*> held;
  InsertStorages(inputs, &held);
  InsertStorages({output, target_}, &held);
  InsertStorages(model_.node(v).parameters, &held);
  InsertStorages(model_.node(v).buffers, &held);
  return held;
}

void GraphCursor::RunForExtras(int v, bool saves, const std::function<at::Tensor()>& forward) {
  if (!saves || !plan_->moves_extras[static_cast<size_t>(v)]) {
    forward();
    return;
  }
  const SavedSlots& slots = slots_[static_cast<size_t>(v)];
  tensors_.PutExtras(v, MovableParts(plan_->device, forward,
                                     [&] { return slots.OwnStorages(plan_->device->device()); }));
}

at::Tensor GraphCursor::FirstForward(int v, bool saves) {
  SavedSlots& slots = slots_[static_cast<size_t>(v)];
  // The engine runs what has a higher number first.
  const uint64_t number = at::sequence_number::get_and_increment();
  at::Tensor output;
  const auto run = [&] {
    const std::vector<at::Tensor> inputs = InputsInGraph(v);
    {
      // What must not run again is not dropped.
      const SavedSlots::Recording recording(&slots, saves || model_.node(v).must_keep);
      output = runner_.ForwardInGraph(v, inputs);
    }
    slots.Settle(HeldByOthers(v, inputs, output));
    return plan_->graph.storage(v) == v ? output : at::Tensor();
  };
  RunForExtras(v, saves, run);
  if (runner_.Giver(v) != v) {
    // Its readers give to its input what they give to it.
    boundaries_[static_cast<size_t>(v)] =
        boundaries_[static_cast<size_t>(model_.node(v).inputs.front())];
  } else if (output.requires_grad()) {
    InsertPassages(v, output, number);
    boundaries_[static_cast<size_t>(v)] = std::shared_ptr<Boundary>(
        new Boundary(shared_from_this(), v, output), torch::autograd::deleteNode);
  }
  return output.variable_data();
}

at::Tensor GraphCursor::ForwardAgain(int v, bool saves) {
  const std::vector<at::Tensor> inputs = tensors_.Inputs(v);
  if (!saves) return runner_.Forward(v, inputs);
  SavedSlots& slots = slots_[static_cast<size_t>(v)];
  at::Tensor output;
  const auto run = [&] {
    SavedSlots::Refilling refilling(&slots);
    output = runner_.RunWithGraph(v, inputs).output.variable_data();
    refilling.Check();
    return plan_->graph.storage(v) == v ? output : at::Tensor();
  };
  RunForExtras(v, saves, run);
  return output;
}

void GraphCursor::RunForward(int v, bool saves) {
  if (model_.is_input(v))
    return tensors_.PutSource(v, std::exchange(sources_[static_cast<size_t>(v)], {}));
  // A graph that holds nothing of its own costs nothing, and the backward may want it.
  saves = saves || plan_->graph.vertex(v).extra_saved == Bytes(0);
  if (runner_.has_run(v)) return tensors_.PutPlain(v, ForwardAgain(v, saves));
  tensors_.PutPlain(v, FirstForward(v, saves));
  const at::Tensor& value = tensors_.Value(v);
  if (!model_.is_output(v) || value.numel() != 1) return;
  const std::shared_ptr<Boundary>& boundary = boundaries_[static_cast<size_t>(v)];
  const double number = value.item<double>();
  report_.loss += number;
  losses_.push_back(
      {number, value.sizes().vec(), value.options(), boundary ? Edge(boundary, 0) : Edge()});
}

std::vector<at::Tensor> GraphCursor::TakeLosses() {
  const std::vector<Loss> taken = std::exchange(losses_, {});
  std::vector<at::Tensor> losses;
  for (const Loss& loss : taken) {
    losses.push_back(at::full(loss.sizes, loss.value, loss.options));
    if (loss.edge.is_valid()) torch::autograd::impl::set_gradient_edge(losses.back(), loss.edge);
  }
  return losses;
}

void GraphCursor::Run(const Instruction& instruction) {
  const int v = instruction.stage - 1;
  switch (instruction.op) {
    case Op::kForwardSave:
    case Op::kForwardNoSave:
      return RunForward(v, instruction.op == Op::kForwardSave);
    case Op::kBackward:
      return SkipBackward(v);
    case Op::kDiscard:
      if (instruction.tensor == TensorKind::kSaved) slots_[static_cast<size_t>(v)].Drop();
      return tensors_.Discard(instruction.tensor, v);
    case Op::kOffloadStart:
    case Op::kOffloadWait:
    case Op::kPrefetchStart:
    case Op::kPrefetchWait:
      return tensors_.Transfer(instruction);
    case Op::kForwardNoSaveFreeInput:
    case Op::kDropSavedKeepOutput:
      throw std::logic_error("no instruction of graphs passed Create");
  }
}

// No gradient has come to v, and none will.
void GraphCursor::SkipBackward(int v) {
  tensors_.PutExtras(v, {});
  slots_[static_cast<size_t>(v)].Drop();
  complete_.Finish(v);
}

void GraphCursor::Reach(int v) {
  if (!failure_.ok()) ThrowStatus(failure_);
  if (!told_to_finish_) {
    told_to_finish_ = true;
    parameters_.CheckUnchanged();
    inputs_.CheckUnchanged();
    torch::autograd::Engine::get_default_engine().queue_callback([cursor = shared_from_this()] {
      const absl::Status status = cursor->Finish();
      if (!status.ok()) ThrowStatus(status);
    });
  }
  FinishBackward();
  const size_t at = plan_->backward_at[static_cast<size_t>(v)];
  if (next_ > at) {
    ThrowStatus(absl::UnimplementedError(
        "Trying to backward through a planned graph a second time, which it cannot do"));
  }
  failure_ = RunUpTo(at);
  if (!failure_.ok()) {
    Release().IgnoreError();
    ThrowStatus(failure_);
  }
  if (recorder_) recorder_->Start();
  in_backward_ = true;
  // The backward frees them one by one.
  tensors_.PutExtras(v, {});
}

void GraphCursor::FinishBackward() {
  if (!in_backward_) return;
  in_backward_ = false;
  const Instruction& done = plan_->schedule[next_];
  for (const int input : model_.node(done.stage - 1).inputs) {
    has_gradient_[static_cast<size_t>(runner_.Giver(input))] = true;
  }
  SkipBackward(done.stage - 1);
  if (recorder_) recorder_->Stop();
  ++report_.counts[static_cast<size_t>(Op::kBackward)];
  ++next_;
}

absl::Status GraphCursor::Finish() {
  if (!failure_.ok()) return failure_;
  if (next_ == plan_->schedule.size()) return absl::OkStatus();
  FinishBackward();
  failure_ = RunUpTo(plan_->schedule.size());
  return failure_;
}

absl::Status GraphCursor::Backward() {
  torch::autograd::edge_list roots;
  std::vector<at::Tensor> gradients;
  const DeviceUse use(plan_->device->device());
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
    if (failure_.ok()) failure_ = CurrentInstructionFailure(plan_->schedule, next_, Runner());
  }
  return failure_;
}

absl::Status GraphCursor::Release() {
  for (SavedSlots& slots : slots_) slots.Drop();
  sources_.clear();
  return tensors_.Release();
}

}  // namespace stowage
