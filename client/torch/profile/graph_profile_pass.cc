#include "client/torch/profile/graph_profile_pass.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "client/torch/base/tensor_storage.h"
#include "client/torch/base/torch_status.h"
#include "client/torch/execute/node_runner.h"
#include "client/torch/execute/run_backward.h"
#include "client/torch/execute/saved_slots.h"
#include "client/torch/model/buffer_watch.h"
#include "client/torch/model/model_state.h"
#include "client/torch/profile/stopped_forward.h"

namespace stowage {
namespace {

Bytes StorageBytes(const at::Tensor& tensor) {
  return Bytes(static_cast<int64_t>(tensor.storage().nbytes()));
}

// How many of the tensors point at the storage, each counted once.
size_t CountAt(const c10::StorageImpl* storage, const std::vector<at::Tensor>& tensors) {
  std::set<const c10::TensorImpl*> distinct;
  for (const at::Tensor& tensor : tensors) {
    if (StorageOf(tensor) == storage) distinct.insert(tensor.unsafeGetTensorImpl());
  }
  return distinct.size();
}

// Whether somebody beside `tensors` holds number i of them.
bool IsHeld(const std::vector<at::Tensor>& tensors, size_t i) {
  size_t known = 0;
  for (const at::Tensor& other : tensors) known += other.is_same(tensors[i]) ? 1 : 0;
  return tensors[i].use_count() > known;
}

std::vector<std::vector<at::Tensor>> BuffersByNode(const GraphModel& model, bool watch) {
  std::vector<std::vector<at::Tensor>> buffers(static_cast<size_t>(model.size()));
  for (int v = 0; watch && v < model.size(); ++v) {
    buffers[static_cast<size_t>(v)] = model.node(v).buffers;
  }
  return buffers;
}

class GraphPass {
 public:
  GraphPass(const GraphModel& model, const std::vector<at::Tensor>& inputs,
            const at::Tensor& target, CostMeter* costs, bool watch,
            const std::function<void()>& node_done)
      : model_(model),
        costs_(costs),
        node_done_(node_done),
        runner_(&model, DeviceOf(inputs)),
        buffers_(model, BuffersByNode(model, watch)),
        samples_(static_cast<size_t>(model.size())),
        values_(samples_.size()),
        gradients_(samples_.size()),
        owners_(samples_.size()),
        holds_output_(samples_.size(), false),
        held_gradients_(samples_.size()) {
    for (size_t i = 0; i < inputs.size(); ++i) value(model.inputs()[i]) = inputs[i];
    runner_.BeginStep(target);
  }

  absl::StatusOr<std::vector<NodeSample>> Run() {
    int v = 0;
    try {
      for (; v < model_.size(); ++v) Forward(v);
      if (!has_loss_) {
        return absl::InvalidArgumentError(
            "the model has nothing to train by: no output, and no scalar that nobody reads, "
            "depends "
            "on a trained parameter");
      }
      for (v = model_.size() - 1; v >= 0; --v) SaveAndBackward(v);
      for (v = 0; v < model_.size(); ++v) buffers_.CheckUntouched(v);
      v = model_.size() - 1;
      costs_->Finish();
    } catch (...) {
      return CurrentExceptionToStatus(model_.Describe(v), absl::StatusCode::kInvalidArgument);
    }
    return std::move(samples_);
  }

 private:
  NodeSample& sample(int v) { return samples_[static_cast<size_t>(v)]; }
  at::Tensor& value(int v) { return values_[static_cast<size_t>(v)]; }
  at::Tensor& gradient(int v) { return gradients_[static_cast<size_t>(v)]; }
  // The node in whose memory node v lives.
  int& owner(int v) { return owners_[static_cast<size_t>(v)]; }
  Bytes& held_gradients(int v) { return held_gradients_[static_cast<size_t>(owner(v))]; }

  void Done() {
    if (node_done_) node_done_();
  }

  std::vector<at::Tensor> Inputs(int v) {
    std::vector<at::Tensor> inputs;
    for (const int input : model_.node(v).inputs) inputs.push_back(value(input));
    return inputs;
  }

  void Forward(int v) {
    owner(v) = v;
    if (model_.is_input(v)) {
      sample(v).output = costs_->Block(Bytes(static_cast<int64_t>(value(v).nbytes())));
      return Done();
    }
    buffers_.CheckUntouched(v);
    const std::vector<at::Tensor> inputs = Inputs(v);
    const c10::Device device = DeviceOf(inputs);
    const RandomState random = RandomState::Capture(device);
    NodeSample& measured = sample(v);
    const Cost cost =
        costs_->Measure([&] { value(v) = runner_.Forward(v, inputs); }, &measured.forward_time);
    measured.forward_overhead = cost.overhead();
    measured.random = RandomState::Capture(device) != random;
    measured.stateful = buffers_.TakeChanges(v);
    if (StorageOf(value(v)) == StorageOf(inputs[0])) {
      measured.alias = model_.node(v).in_place ? AliasKind::kInPlace : AliasKind::kView;
      measured.output = costs_->Block(Bytes(static_cast<int64_t>(value(v).nbytes())));
      owner(v) = owner(model_.node(v).inputs[0]);
    } else {
      measured.output = costs_->Block(cost.kept);
      CheckOwnsOutput(value(v), cost.kept);
    }
    if (model_.is_output(v)) holds_output_[static_cast<size_t>(owner(v))] = true;
    has_loss_ |= runner_.needs_gradient(v) && model_.StartsBackward(v, value(v));
    Done();
  }

  static void CheckOwnsOutput(const at::Tensor& output, Bytes kept) {
    if (kept >= StorageBytes(output)) return;
    throw StageRuleError("it returns a tensor that it keeps between calls");
  }

  // What of inputs and output the graph holds on to.
  void FindNeeds(int v, const std::vector<size_t>& uses_before, const SavedNode& saved) {
    NodeSample& measured = sample(v);
    measured.needs_inputs.assign(saved.leaves.size(), false);
    if (measured.alias == AliasKind::kView) return;
    for (size_t i = 0; i < saved.passed.size(); ++i) {
      measured.needs_inputs[i] = IsHeld(saved.passed, i);
    }
    std::vector<at::Tensor> known = saved.leaves;
    known.insert(known.end(), saved.passed.begin(), saved.passed.end());
    known.push_back(saved.output);
    for (size_t i = 0; i < saved.leaves.size(); ++i) {
      const at::Tensor& leaf = saved.leaves[i];
      const bool held =
          leaf.storage().use_count() > uses_before[i] + CountAt(StorageOf(leaf), known);
      if (i == 0 && measured.alias == AliasKind::kInPlace) {
        measured.needs_output = held;
        measured.needs_inputs[i] = false;
      } else if (held) {
        measured.needs_inputs[i] = true;
      }
    }
    if (measured.alias == AliasKind::kNone) {
      // An output that was made as a view keeps what it is a view of, which is the same memory.
      const size_t bases = saved.output.is_view() ? 1 : 0;
      measured.needs_output = saved.output.storage().use_count() > 1 + bases;
    }
  }

  SavedNode Save(int v, SavedSlots* slots) {
    std::vector<at::Tensor> inputs = Inputs(v);
    // What it would write over has been written over already: it works on a copy.
    if (sample(v).alias == AliasKind::kInPlace) inputs[0] = inputs[0].clone();
    std::vector<size_t> uses;
    for (const at::Tensor& input : inputs) uses.push_back(input.storage().use_count());
    SavedNode saved;
    NodeSample& measured = sample(v);
    Bytes parts, blocks;  // of what the graph saved: asked for, and in blocks
    const Cost cost = costs_->Measure(
        [&] {
          {
            const SavedSlots::Recording recording(slots, /*keeps=*/true);
            saved = runner_.ForwardSaving(v, inputs);
          }
          slots->Settle(runner_.HeldByOthers(v, inputs, saved.output), saved.output);
          for (const StoragePtr& tensor : slots->OwnStorages(saved.output.device())) {
            const Bytes bytes(static_cast<int64_t>(tensor->nbytes()));
            parts += bytes;
            blocks += costs_->Block(bytes);
          }
        },
        &measured.forward_saving_time);
    FindNeeds(v, uses, saved);
    // The caller holds it until its gradient has come.
    measured.needs_output |= holds_output_[static_cast<size_t>(v)];
    const bool owns = measured.alias == AliasKind::kNone;
    const Bytes output = owns ? StorageBytes(saved.output) : Bytes(0);
    if (owns && output != StorageBytes(value(v))) {
      throw StageRuleError("its output takes other memory with a graph than without");
    }
    measured.forward_saving_overhead = cost.overhead();
    measured.extra_saved = blocks + costs_->Block(cost.kept - output - parts);
    // It is then always run with a graph, which holds nothing of its own.
    if (measured.extra_saved == Bytes(0)) {
      measured.forward_overhead =
          std::max(measured.forward_overhead, measured.forward_saving_overhead);
    } else if (owns && !model_.node(v).must_keep) {
      MeasureStoppedForward(v, inputs, *slots, cost.kept - output, &runner_, costs_, &measured);
    }
    slots->LetGo();
    return saved;
  }

  at::Tensor TakeGradient(int v) {
    at::Tensor taken = std::move(gradient(v));
    if (taken.defined()) held_gradients(v) -= costs_->Block(StorageBytes(taken));
    return taken;
  }

  std::vector<at::Tensor> TakeGradients(int v) {
    std::vector<at::Tensor> running;
    for (const int input : model_.node(v).inputs) {
      running.push_back(TakeGradient(runner_.Giver(input)));
    }
    return running;
  }

  void PutGradients(int v, std::vector<at::Tensor> gradients) {
    const std::vector<int>& inputs = model_.node(v).inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!gradients[i].defined()) continue;
      const int giver = runner_.Giver(inputs[i]);
      const Bytes bytes = costs_->Block(StorageBytes(gradients[i]));
      for (const int given : {inputs[i], giver}) {
        sample(given).output_gradient = std::max(sample(given).output_gradient, bytes);
      }
      held_gradients(giver) += bytes;
      gradient(giver) = std::move(gradients[i]);
    }
  }

  // By the memory that v reads, each once: bytes of the gradients that are held of what lives there. A
  // view has one beside that of what it is a view of; one that a sum spread out over many elements
  // takes the bytes of one; and to sizes, comparisons and what is detached none comes.
  std::map<int, Bytes> HeldGradients(int v) {
    std::map<int, Bytes> held;
    for (const int input : model_.node(v).inputs) held[owner(input)] = held_gradients(input);
    return held;
  }

  // Bytes that the profile counts for gradients after the backward of v and that were not there before.
  Bytes NewGradients(int v, const std::map<int, Bytes>& before) {
    Bytes bytes;
    for (const auto& [memory, held] : HeldGradients(v)) {
      Bytes& most = sample(memory).output_gradient;
      most = std::max(most, held);
      bytes += most - std::min(most, before.at(memory));
    }
    return bytes;
  }

  void SaveAndBackward(int v) {
    if (model_.is_input(v)) {
      value(v).reset();
      return Done();
    }
    SavedSlots slots;
    SavedNode saved = Save(v, &slots);
    const std::map<int, Bytes> before = HeldGradients(v);
    at::Tensor own = runner_.Giver(v) == v ? TakeGradient(v) : at::Tensor();
    std::vector<at::Tensor> running = TakeGradients(v);
    // Where readers have given something, the caller's own gradient of an output is none of the plan's.
    const bool starts =
        !own.defined() && saved.output.requires_grad() && model_.StartsBackward(v, saved.output);
    if (starts) sample(v).output_gradient = sample(v).output;
    // In a step it is the plan that says when the output goes.
    const at::Tensor output = saved.output.variable_data();
    const Cost cost = costs_->Measure(
        [&] {
          running = runner_.Backward(v, std::move(saved), std::move(own), std::move(running));
        },
        &sample(v).backward_time);
    PutGradients(v, std::move(running));
    const Bytes counted = NewGradients(v, before) + (starts ? sample(v).output_gradient : Bytes(0));
    sample(v).backward_overhead = std::max(Bytes(0), cost.peak_blocks - counted);
    value(v).reset();
    Done();
  }

  const GraphModel& model_;
  CostMeter* costs_;
  const std::function<void()>& node_done_;
  NodeRunner runner_;
  BufferWatch buffers_;
  std::vector<NodeSample> samples_;
  std::vector<at::Tensor> values_;
  std::vector<at::Tensor> gradients_;
  std::vector<int> owners_;
  std::vector<bool> holds_output_;     // by owner: what lives there is the caller's, too
  std::vector<Bytes> held_gradients_;  // by owner
  bool has_loss_ = false;
};

}  // namespace

absl::StatusOr<std::vector<NodeSample>> RunGraphProfilePass(
    const GraphModel& model, const std::vector<at::Tensor>& inputs, const at::Tensor& target,
    CostMeter* costs, bool watch, const std::function<void()>& node_done) {
  // What others' backwards left there would go in the middle of this.
  EmptyQueues(DeviceOf(inputs));
  const StateGuard restore(model.buffers(), DeviceOf(inputs));
  return GraphPass(model, inputs, target, costs, watch, node_done).Run();
}

}  // namespace stowage
