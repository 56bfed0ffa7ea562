#include "client/torch/profile/profile_pass.h"

#include <string>
#include <utility>

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
void CheckOwnsOutput(const at::Tensor& output, Bytes kept) {
  if (kept >= Bytes(static_cast<int64_t>(output.storage().nbytes()))) return;
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
  ChainPass(const ChainModel& model, const at::Tensor& input, const at::Tensor& target,
            CostMeter* costs, bool watch, const std::function<void()>& stage_done)
      : model_(model),
        costs_(costs),
        stage_done_(stage_done),
        line_(model.InLine()),
        runner_(&line_, input.device(), /*in_line=*/true),
        buffers_(model, BuffersByStage(model, watch)),
        activations_(static_cast<size_t>(model.length()) + 2),
        samples_(activations_.size()),
        storage_bytes_(activations_.size()) {
    activations_[0] = input;
    runner_.BeginStep(target, {}, input.requires_grad() ? std::vector<int>{0} : std::vector<int>());
  }

  absl::StatusOr<std::vector<StageSample>> Run() {
    const int last = model_.length() + 1;
    int l = 1;
    try {
      for (; l <= last; ++l) Forward(l);
      activation(last).reset();
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
  at::Tensor& activation(int l) { return activations_[static_cast<size_t>(l)]; }
  StageSample& sample(int l) { return samples_[static_cast<size_t>(l)]; }
  size_t& storage_bytes(int l) { return storage_bytes_[static_cast<size_t>(l)]; }

  void Forward(int l) {
    buffers_.CheckUntouched(l);
    const RandomState random = RandomState::Capture(activation(0).device());
    const Cost cost = costs_->Measure(
        [&] { activation(l) = runner_.Forward(l, {activation(l - 1)}); }, &sample(l).forward_time);
    sample(l).output = costs_->Block(cost.kept);
    sample(l).forward_overhead = cost.overhead();
    sample(l).random = RandomState::Capture(activation(0).device()) != random;
    sample(l).stateful = buffers_.TakeChanges(l);
    CheckOwnsOutput(activation(l), cost.kept);
    storage_bytes(l) = activation(l).storage().nbytes();
    if (stage_done_) stage_done_();
  }

  void SaveAndBackward(int l) {
    SavedNode saved;
    SavedSlots slots;
    Bytes parts, blocks;  // of what the graph saved: asked for, and in blocks
    const Bytes before = costs_->live();
    const Cost forward = costs_->Measure(
        [&] {
          {
            const SavedSlots::Recording recording(&slots, /*keeps=*/true);
            saved = runner_.ForwardSaving(l, {activation(l - 1)});
          }
          slots.Settle(runner_.HeldByOthers(l, {activation(l - 1)}, saved.output), saved.output);
          for (const StoragePtr& tensor : slots.OwnStorages(saved.output.device())) {
            const Bytes bytes(static_cast<int64_t>(tensor->nbytes()));
            sample(l).saved_tensors.push_back(costs_->Block(bytes));
            parts += bytes;
            blocks += sample(l).saved_tensors.back();
          }
        },
        &sample(l).forward_saving_time);
    const Bytes output(static_cast<int64_t>(saved.output.storage().nbytes()));
    sample(l).saved = costs_->Block(output) + blocks + costs_->Block(forward.kept - output - parts);
    sample(l).forward_saving_overhead = forward.overhead();
    CheckOwnsOutput(saved.output, forward.kept);
    if (saved.output.storage().nbytes() != storage_bytes(l)) {
      throw StageRuleError("its output takes other memory with a graph than without");
    }

    if (l <= model_.length() && !line_.node(l).must_keep) {
      MeasureStoppedForward(l, {activation(l - 1)}, slots, forward.kept - output, &runner_, costs_,
                            &sample(l));
    }
    slots.LetGo();
    const Cost backward = costs_->Measure(
        [&] {
          gradient_ = runner_.Backward(l, std::move(saved), std::move(gradient_),
                                       std::vector<at::Tensor>(1))[0];
        },
        &sample(l).backward_time);
    sample(l).backward_overhead = backward.peak_blocks;
    // The gradient of the input took the place of that of the output.
    gradient_bytes_ += costs_->live() - before;
    sample(l - 1).output_gradient = costs_->Block(gradient_bytes_);
    if (l > 1) activation(l - 1).reset();
    if (stage_done_) stage_done_();
  }

  const ChainModel& model_;
  CostMeter* costs_;
  const std::function<void()>& stage_done_;
  const GraphModel line_;
  NodeRunner runner_;
  BufferWatch buffers_;
  std::vector<at::Tensor> activations_;
  std::vector<StageSample> samples_;
  std::vector<size_t> storage_bytes_;  // of the outputs
  Bytes gradient_bytes_;
  at::Tensor gradient_;  // of the output of the stage whose backward is next
};

}  // namespace

absl::StatusOr<std::vector<StageSample>> RunProfilePass(const ChainModel& model,
                                                        const at::Tensor& input,
                                                        const at::Tensor& target, CostMeter* costs,
                                                        bool watch,
                                                        const std::function<void()>& stage_done) {
  // What others' backwards left there would go in the middle of this.
  EmptyQueues(input.device());
  const StateGuard restore(model.buffers(), input.device());
  return ChainPass(model, input, target, costs, watch, stage_done).Run();
}

}  // namespace stowage
