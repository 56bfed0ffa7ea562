#include "client/torch/profile/profile_pass.h"

#include <cstdint>
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

// A stage that allocated less than its output takes hands out memory that lives on without it.
void CheckOwnsOutputs(const std::vector<at::Tensor>& outputs, Bytes kept) {
  if (kept >= Bytes(StorageBytesOf(outputs))) return;
  throw StageRuleError("it returns a tensor that it keeps between calls");
}

// The loss lists none, nor does anything that is not to be watched.
std::vector<std::vector<at::Tensor>> BuffersByStage(const ChainModel& model, bool watch) {
  std::vector<std::vector<at::Tensor>> buffers(static_cast<size_t>(model.length()) + 2);
  for (int l = 1; watch && l <= model.length(); ++l) {
    buffers[static_cast<size_t>(l)] = model.stage(l).buffers;
  }
  return buffers;
}

class ChainPass {
 public:
  ChainPass(const ChainModel& model, const Tensors& inputs, const Tensors& targets,
            CostMeter* costs, bool watch, const std::function<void()>& stage_done)
      : model_(model),
        costs_(costs),
        stage_done_(stage_done),
        line_(model.InLine()),
        device_(DeviceOf(inputs)),
        runner_(&line_, device_, /*in_line=*/true),
        buffers_(model, BuffersByStage(model, watch)),
        activations_(static_cast<size_t>(model.length()) + 2),
        samples_(activations_.size()),
        storage_bytes_(activations_.size()),
        gradients_(line_.ForEachOutput<at::Tensor>()) {
    activations_[0] = inputs;
    std::vector<NodeOutput> asking;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].requires_grad()) asking.emplace_back(0, static_cast<int>(i));
    }
    runner_.BeginStep(targets, {}, asking);
  }

  absl::StatusOr<std::vector<StageSample>> Run() {
    const int last = model_.length() + 1;
    int l = 1;
    try {
      for (; l <= last; ++l) Forward(l);
      activations(last).clear();
      for (l = last; l >= 1; --l) SaveAndBackward(l);
      for (l = 1; l <= last; ++l) buffers_.CheckUntouched(l);
      l = last;
      costs_->Finish();
    } catch (...) {
      return CurrentExceptionToStatus(model_.Describe(l), absl::StatusCode::kInvalidArgument);
    }
    return std::move(samples_);
  }

 private:
  std::vector<at::Tensor>& activations(int l) { return activations_[static_cast<size_t>(l)]; }
  std::vector<at::Tensor> InputsOf(int l) {
    std::vector<at::Tensor> inputs;
    for (const NodeOutput input : line_.node(l).inputs) {
      inputs.push_back(activations(input.node)[static_cast<size_t>(input.index)]);
    }
    return inputs;
  }
  // Of gradients of side inputs, as far as they are known.
  Bytes SideGradients() const {
    const std::vector<at::Tensor>& given = gradients_.of(0);
    return Bytes(StorageBytesOf({given.begin() + 1, given.end()}));
  }
  StageSample& sample(int l) { return samples_[static_cast<size_t>(l)]; }
  int64_t& storage_bytes(int l) { return storage_bytes_[static_cast<size_t>(l)]; }

  void Forward(int l) {
    buffers_.CheckUntouched(l);
    const RandomState random = RandomState::Capture(device_);
    const std::vector<at::Tensor> inputs = InputsOf(l);
    const Cost cost = costs_->Measure([&] { activations(l) = runner_.Forward(l, inputs); },
                                      &sample(l).forward_time);
    sample(l).output = BlocksOf(activations(l), cost.kept);
    sample(l).forward_overhead = cost.overhead();
    sample(l).random = RandomState::Capture(device_) != random;
    sample(l).stateful = buffers_.TakeChanges(l);
    CheckOwnsOutputs(activations(l), cost.kept);
    storage_bytes(l) = StorageBytesOf(activations(l));
    if (stage_done_) stage_done_();
  }

  // Of what was kept, the outputs in blocks of their own.
  Bytes BlocksOf(const std::vector<at::Tensor>& outputs, Bytes kept) const {
    const std::vector<const c10::StorageImpl*> storages = StoragesOf(outputs);
    if (storages.size() < 2) return costs_->Block(kept);
    Bytes blocks;
    for (const c10::StorageImpl* const storage : storages) {
      const Bytes bytes(static_cast<int64_t>(storage->nbytes()));
      blocks += costs_->Block(bytes);
      kept -= bytes;
    }
    return blocks + costs_->Block(kept);
  }

  void SaveAndBackward(int l) {
    SavedNode saved;
    SavedSlots slots;
    std::vector<at::Tensor> inputs = InputsOf(l);
    Bytes parts, blocks;  // of what the graph saved: asked for, and in blocks
    const HeldMemory before = costs_->Held();
    const Cost forward = costs_->Measure(
        [&] {
          {
            const SavedSlots::Recording recording(&slots, /*keeps=*/true);
            saved = runner_.ForwardSaving(l, inputs);
          }
          slots.Settle(runner_.HeldByOthers(l, inputs, saved.outputs), saved.outputs);
          for (const StoragePtr& tensor : slots.OwnStorages(device_)) {
            const Bytes bytes(static_cast<int64_t>(tensor->nbytes()));
            sample(l).saved_tensors.push_back(costs_->Block(bytes));
            parts += bytes;
            blocks += sample(l).saved_tensors.back();
          }
        },
        &sample(l).forward_saving_time);
    inputs.clear();
    const Bytes output(StorageBytesOf(saved.outputs));
    sample(l).saved =
        BlocksOf(saved.outputs, output) + blocks + costs_->Block(forward.kept - output - parts);
    sample(l).forward_saving_overhead = forward.overhead();
    CheckOwnsOutputs(saved.outputs, forward.kept);
    if (output.value() != storage_bytes(l)) {
      throw StageRuleError("its output takes other memory with a graph than without");
    }

    if (l <= model_.length() && !line_.node(l).must_keep) {
      MeasureStoppedForward(l, InputsOf(l), slots, forward.kept - output, &runner_, costs_,
                            &sample(l));
    }
    slots.LetGo();
    const Bytes sides = SideGradients();
    const Cost backward =
        costs_->Measure([&] { RunBackward(l, std::move(saved)); }, &sample(l).backward_time);
    sample(l).backward_overhead = backward.peak_blocks;
    // Gradients of what the stage before made took the place of those of its own outputs.
    gradient_bytes_ += costs_->KeptSince(before) - (SideGradients() - sides);
    sample(l - 1).output_gradient = BlocksOf(GivenTo(l - 1), gradient_bytes_);
    if (l > 1) activations(l - 1).clear();
    if (stage_done_) stage_done_();
  }

  void RunBackward(int l, SavedNode saved) {
    std::vector<at::Tensor> given(gradients_.of(l).size());
    given.swap(gradients_.of(l));
    const std::vector<NodeOutput>& inputs = line_.node(l).inputs;
    std::vector<at::Tensor> running;
    for (const NodeOutput input : inputs) running.push_back(std::move(gradients_[input]));
    running = runner_.Backward(l, std::move(saved), std::move(given), std::move(running));
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (running[i].defined()) gradients_[inputs[i]] = std::move(running[i]);
    }
  }

  // Of the input, those of side inputs are not meant.
  std::vector<at::Tensor> GivenTo(int l) const {
    if (l > 0) return gradients_.of(l);
    return {gradients_.of(0).front()};
  }

  const ChainModel& model_;
  CostMeter* costs_;
  const std::function<void()>& stage_done_;
  const GraphModel line_;
  const c10::Device device_;
  NodeRunner runner_;
  BufferWatch buffers_;
  std::vector<std::vector<at::Tensor>> activations_;  // of the input, with the side inputs
  std::vector<StageSample> samples_;
  std::vector<int64_t> storage_bytes_;  // of the outputs
  Bytes gradient_bytes_;                // of the stage whose backward is next
  PerOutput<at::Tensor> gradients_;
};

}  // namespace

absl::StatusOr<std::vector<StageSample>> RunProfilePass(const ChainModel& model,
                                                        const Tensors& inputs,
                                                        const Tensors& targets, CostMeter* costs,
                                                        bool watch,
                                                        const std::function<void()>& stage_done) {
  // What others' backwards left there would go in the middle of this.
  EmptyQueues(DeviceOf(inputs));
  const StateGuard restore(model.buffers(), DeviceOf(inputs));
  return ChainPass(model, inputs, targets, costs, watch, stage_done).Run();
}

}  // namespace stowage
