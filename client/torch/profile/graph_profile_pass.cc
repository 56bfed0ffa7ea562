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

bool LiveIn(const std::vector<at::Tensor>& made, const at::Tensor& input) {
  return std::all_of(made.begin(), made.end(), [&](const at::Tensor& tensor) {
    return !tensor.defined() || StorageOf(tensor) == StorageOf(input);
  });
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
  GraphPass(const GraphModel& model, const std::vector<at::Tensor>& inputs, const Tensors& targets,
            CostMeter* costs, bool watch, const std::function<void()>& node_done)
      : model_(model),
        costs_(costs),
        node_done_(node_done),
        device_(DeviceOf(inputs)),
        runner_(&model, device_),
        buffers_(model, BuffersByNode(model, watch)),
        samples_(static_cast<size_t>(model.size())),
        values_(model.ForEachOutput<at::Tensor>()),
        gradients_(values_),
        owners_(samples_.size()),
        holds_output_(samples_.size(), false),
        held_gradients_(samples_.size()),
        backwards_(samples_.size()) {
    for (size_t i = 0; i < inputs.size(); ++i) values_[model.inputs()[i]] = inputs[i];
    runner_.BeginStep(targets);
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
      FinishOverheads();
      costs_->Finish();
    } catch (...) {
      return CurrentExceptionToStatus(model_.Describe(v), absl::StatusCode::kInvalidArgument);
    }
    return std::move(samples_);
  }

 private:
  struct BackwardCost {
    Bytes peak_blocks;
    Bytes started;                // gradients with which a backward begins
    std::map<int, Bytes> before;  // held of gradients, by the memory that it gives to
  };

  NodeSample& sample(int v) { return samples_[static_cast<size_t>(v)]; }
  // The node in whose memory node v lives.
  int& owner(int v) { return owners_[static_cast<size_t>(v)]; }
  Bytes& held_gradients(int v) { return held_gradients_[static_cast<size_t>(owner(v))]; }

  void Done() {
    if (node_done_) node_done_();
  }

  std::vector<at::Tensor> Inputs(int v) {
    std::vector<at::Tensor> inputs;
    for (const NodeOutput input : model_.node(v).inputs) inputs.push_back(values_[input]);
    return inputs;
  }

  void Forward(int v) {
    owner(v) = v;
    if (model_.is_input(v)) {
      sample(v).output = BlocksOf(values_.of(v));
      return Done();
    }
    buffers_.CheckUntouched(v);
    const std::vector<at::Tensor> inputs = Inputs(v);
    const RandomState random = RandomState::Capture(device_);
    NodeSample& measured = sample(v);
    const Cost cost = costs_->Measure([&] { values_.of(v) = runner_.Forward(v, inputs); },
                                      &measured.forward_time);
    measured.forward_overhead = cost.overhead();
    measured.random = RandomState::Capture(device_) != random;
    measured.stateful = buffers_.TakeChanges(v);
    const std::vector<at::Tensor>& made = values_.of(v);
    if (LiveIn(made, inputs[0])) {
      measured.alias = model_.node(v).in_place ? AliasKind::kInPlace : AliasKind::kView;
      measured.output = BlocksOf(made);
      owner(v) = owner(model_.node(v).inputs[0].node);
    } else {
      const bool one = StoragesOf(made).size() == 1;
      measured.output = one ? costs_->Block(cost.kept) : BlocksOfStorages(made);
      CheckOwnsOutputs(made, cost.kept);
    }
    if (model_.has_output(v)) holds_output_[static_cast<size_t>(owner(v))] = true;
    for (int i = 0; i < model_.node(v).outputs; ++i) {
      const NodeOutput of(v, i);
      has_loss_ |= runner_.needs_gradient(v) && model_.StartsBackward(of, values_[of]);
    }
    Done();
  }

  // What tensors of others' memory would take.
  Bytes BlocksOf(const std::vector<at::Tensor>& tensors) const {
    Bytes blocks;
    for (const at::Tensor& tensor : tensors) {
      if (!tensor.defined()) continue;
      blocks += costs_->Block(Bytes(static_cast<int64_t>(tensor.nbytes())));
    }
    return blocks;
  }

  Bytes BlocksOfStorages(const std::vector<at::Tensor>& tensors) const {
    Bytes blocks;
    for (const c10::StorageImpl* const storage : StoragesOf(tensors)) {
      blocks += costs_->Block(Bytes(static_cast<int64_t>(storage->nbytes())));
    }
    return blocks;
  }

  static void CheckOwnsOutputs(const std::vector<at::Tensor>& outputs, Bytes kept) {
    if (kept >= Bytes(StorageBytesOf(outputs))) return;
    throw StageRuleError("it returns a tensor that it keeps between calls");
  }

  // What of inputs and output the graph holds on to.
  void FindNeeds(int v, const std::vector<size_t>& uses_before, const SavedNode& saved) {
    NodeSample& measured = sample(v);
    measured.needs_inputs.assign(saved.leaves.size(), false);
    if (measured.alias == AliasKind::kView) return;
    for (size_t i = 0; i < saved.passed.size(); ++i) {
      measured.needs_inputs[i] = saved.passed[i].defined() && IsHeld(saved.passed, i);
    }
    std::vector<at::Tensor> known = saved.leaves;
    known.insert(known.end(), saved.passed.begin(), saved.passed.end());
    known.insert(known.end(), saved.outputs.begin(), saved.outputs.end());
    for (size_t i = 0; i < saved.leaves.size(); ++i) {
      const at::Tensor& leaf = saved.leaves[i];
      if (StorageOf(leaf) == nullptr) continue;
      const bool held =
          leaf.storage().use_count() > uses_before[i] + CountAt(StorageOf(leaf), known);
      if (i == 0 && measured.alias == AliasKind::kInPlace) {
        measured.needs_output = held;
        measured.needs_inputs[i] = false;
      } else if (held) {
        measured.needs_inputs[i] = true;
      }
    }
    if (measured.alias == AliasKind::kNone) measured.needs_output = HoldsOutputs(saved.outputs);
  }

  // Whether somebody beside these tensors holds their memory.
  static bool HoldsOutputs(const std::vector<at::Tensor>& outputs) {
    std::vector<at::Tensor> known = outputs;
    // An output that was made as a view keeps what it is a view of, which is the same memory.
    for (const at::Tensor& output : outputs) {
      if (output.defined() && output.is_view()) known.emplace_back(output._base());
    }
    return std::any_of(outputs.begin(), outputs.end(), [&known](const at::Tensor& output) {
      const c10::StorageImpl* const storage = StorageOf(output);
      return storage != nullptr && output.storage().use_count() > CountAt(storage, known);
    });
  }

  SavedNode Save(int v, SavedSlots* slots) {
    std::vector<at::Tensor> inputs = Inputs(v);
    // What it would write over has been written over already: it works on a copy.
    if (sample(v).alias == AliasKind::kInPlace) inputs[0] = inputs[0].clone();
    std::vector<size_t> uses;
    for (const at::Tensor& input : inputs) {
      uses.push_back(StorageOf(input) == nullptr ? 0 : input.storage().use_count());
    }
    SavedNode saved;
    NodeSample& measured = sample(v);
    Bytes parts, blocks;  // of what the graph saved: asked for, and in blocks
    const Cost cost = costs_->Measure(
        [&] {
          {
            const SavedSlots::Recording recording(slots, /*keeps=*/true);
            saved = runner_.ForwardSaving(v, inputs);
          }
          slots->Settle(runner_.HeldByOthers(v, inputs, saved.outputs), saved.outputs);
          for (const StoragePtr& tensor : slots->OwnStorages(device_)) {
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
    const Bytes output = owns ? Bytes(StorageBytesOf(saved.outputs)) : Bytes(0);
    if (owns && output != Bytes(StorageBytesOf(values_.of(v)))) {
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

  at::Tensor TakeGradient(NodeOutput of) {
    at::Tensor taken = std::move(gradients_[of]);
    if (taken.defined()) held_gradients(of.node) -= costs_->Block(StorageBytes(taken));
    return taken;
  }

  std::vector<at::Tensor> TakeGradientsOf(int v) {
    std::vector<at::Tensor> taken;
    for (int i = 0; i < model_.node(v).outputs; ++i) taken.push_back(TakeGradient({v, i}));
    return taken;
  }

  std::vector<at::Tensor> TakeGradients(int v) {
    std::vector<at::Tensor> running;
    for (const NodeOutput input : model_.node(v).inputs) {
      running.push_back(TakeGradient(runner_.GradientOwner(input)));
    }
    return running;
  }

  void PutGradients(int v, std::vector<at::Tensor> gradients) {
    const std::vector<NodeOutput>& inputs = model_.node(v).inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!gradients[i].defined()) continue;
      const NodeOutput owner = runner_.GradientOwner(inputs[i]);
      held_gradients(owner.node) += costs_->Block(StorageBytes(gradients[i]));
      gradients_[owner] = std::move(gradients[i]);
      const Bytes bytes = BlocksOfStorages(gradients_.of(owner.node));
      for (const int given : {inputs[i].node, owner.node}) {
        sample(given).output_gradient = std::max(sample(given).output_gradient, bytes);
      }
    }
  }

  // By the memory that v reads, each once: bytes of the gradients that are held of what lives there. A
  // view has one beside that of what it is a view of; one that a sum spread out over many elements
  // takes the bytes of one; and to sizes, comparisons and what is detached none comes.
  std::map<int, Bytes> HeldGradients(int v) {
    std::map<int, Bytes> held;
    for (const NodeOutput input : model_.node(v).inputs) {
      held[owner(input.node)] = held_gradients(input.node);
    }
    return held;
  }

  void NoteGradients(int v) {
    for (const auto& [memory, held] : HeldGradients(v)) {
      Bytes& most = sample(memory).output_gradient;
      most = std::max(most, held);
    }
  }

  // What the profile counts for gradients is there in its full size from the first reader on that gives some of it, also
  // where others give the rest. So it is subtracted when it is known.
  void FinishOverheads() {
    for (int v = 0; v < model_.size(); ++v) {
      const BackwardCost& cost = backwards_[static_cast<size_t>(v)];
      Bytes counted = cost.started;
      for (const auto& [memory, before] : cost.before) {
        // What a backward begins with is in memory from the beginning.
        const Bytes begun = backwards_[static_cast<size_t>(memory)].started;
        const Bytes most = sample(memory).output_gradient - begun;
        counted += most - std::min(most, before);
      }
      sample(v).backward_overhead = std::max(Bytes(0), cost.peak_blocks - counted);
    }
  }

  void SaveAndBackward(int v) {
    if (model_.is_input(v)) {
      Drop(v);
      return Done();
    }
    SavedSlots slots;
    SavedNode saved = Save(v, &slots);
    BackwardCost& noted = backwards_[static_cast<size_t>(v)];
    noted.before = HeldGradients(v);
    std::vector<at::Tensor> own = TakeGradientsOf(v);
    std::vector<at::Tensor> running = TakeGradients(v);
    noted.started = Started(v, saved, own);
    if (noted.started > Bytes(0)) {
      sample(v).output_gradient =
          std::max(sample(v).output_gradient, BlocksOfStorages(own) + noted.started);
    }
    // In a step it is the plan that says when the outputs go.
    const std::vector<at::Tensor> outputs = WithoutGraphs(saved.outputs);
    const Cost cost = costs_->Measure(
        [&] {
          running = runner_.Backward(v, std::move(saved), std::move(own), std::move(running));
        },
        &sample(v).backward_time);
    PutGradients(v, std::move(running));
    NoteGradients(v);
    noted.peak_blocks = cost.peak_blocks;
    Drop(v);
    Done();
  }

  void Drop(int v) {
    for (at::Tensor& tensor : values_.of(v)) tensor.reset();
  }

  // Bytes of the gradients with which a backward begins at v. Where readers have given something, the caller's own gradient
  // of an output is none of the plan's.
  Bytes Started(int v, const SavedNode& saved, const std::vector<at::Tensor>& given) {
    std::vector<at::Tensor> starting;
    for (size_t i = 0; i < given.size(); ++i) {
      const at::Tensor& output = saved.outputs[i];
      if (given[i].defined() || !output.defined() || !output.requires_grad()) continue;
      if (model_.StartsBackward({v, static_cast<int>(i)}, output)) starting.push_back(output);
    }
    if (starting.size() == 1 && given.size() == 1) return sample(v).output;
    return BlocksOf(starting);
  }

  const GraphModel& model_;
  CostMeter* costs_;
  const std::function<void()>& node_done_;
  const c10::Device device_;
  NodeRunner runner_;
  BufferWatch buffers_;
  std::vector<NodeSample> samples_;
  PerOutput<at::Tensor> values_;
  PerOutput<at::Tensor> gradients_;
  std::vector<int> owners_;
  std::vector<bool> holds_output_;     // by owner: what lives there is the caller's, too
  std::vector<Bytes> held_gradients_;  // by owner
  std::vector<BackwardCost> backwards_;
  bool has_loss_ = false;
};

}  // namespace

absl::StatusOr<std::vector<NodeSample>> RunGraphProfilePass(
    const GraphModel& model, const std::vector<at::Tensor>& inputs, const Tensors& targets,
    CostMeter* costs, bool watch, const std::function<void()>& node_done) {
  // What others' backwards left there would go in the middle of this.
  EmptyQueues(DeviceOf(inputs));
  const StateGuard restore(model.buffers(), DeviceOf(inputs));
  return GraphPass(model, inputs, targets, costs, watch, node_done).Run();
}

}  // namespace stowage
