#include "client/torch/planned_run.h"

#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/torch/host_copies.h"
#include "client/torch/model_state.h"
#include "client/torch/shared_data.h"
#include "client/torch/torch_status.h"

namespace stowage {
namespace {

// Of two tensors on the same memory: who writes over one changes the version of both.
at::Tensor WithVersionOf(const at::Tensor& tensor, at::Tensor same) {
  torch::autograd::impl::set_version_counter(same, torch::autograd::impl::version_counter(tensor));
  return same;
}

// Without a graph. What is `moved` is the run's alone: nobody finds its memory gone.
at::Tensor InputOf(at::Tensor input, bool moved, const ExecutionDevice& device) {
  if (moved && !(IsSoleHolder(input) && CanLend(input, device))) {
    return input.variable_data().clone();
  }
  return WithVersionOf(input, input.variable_data());
}

// Whether memory of stage l's output is taken away at the instruction or later.
bool MovesOutput(const Schedule& schedule, size_t from, int l) {
  return std::any_of(schedule.begin() + static_cast<std::ptrdiff_t>(from), schedule.end(),
                     [l](const Instruction& instruction) {
                       return instruction.op == Op::kOffloadWait && instruction.stage == l;
                     });
}

}  // namespace

PlannedRun::PlannedRun(std::shared_ptr<ChainExecutor> executor, size_t loss, at::Tensor input)
    : executor_(std::move(executor)),
      loss_(loss),
      parameters_("parameter", executor_->model_->parameters()),
      inputs_("input", {input}),
      gives_input_gradient_(input.requires_grad()),
      input_(InputOf(std::move(input), executor_->moves_input_, *executor_->device_)),
      state_{StageRunner(executor_->model_),
             HeldTensors(executor_->model_->length() + 1, input_, executor_->device_),
             {},
             {}} {
  state_.runner.BeginStep(at::Tensor(), executor_->gradient_ready_, gives_input_gradient_);
}

// So that nobody wants what is on the host of it.
PlannedRun::~PlannedRun() { input_.reset(); }

void PlannedRun::RunUpTo(size_t end) {
  const absl::Status status = executor_->RunUpTo(end, &state_);
  if (!status.ok()) ThrowStatus(status);
}

at::Tensor PlannedRun::Forward() {
  StateGuard before(executor_->model_->buffers());
  RunUpTo(loss_);
  before.Dismiss();
  const int l = executor_->model_->length();
  const at::Tensor& output = state_.held.Activation(l);
  // What the backward takes away stays the caller's for as long as he holds it.
  const bool shared = MovesOutput(executor_->schedule_, loss_, l);
  // The version: a caller who writes over the output is found out where the backward needs it.
  return WithVersionOf(output, shared ? SharingBytes(output) : output.variable_data());
}

void PlannedRun::StartAgain() {
  const ChainModel& model = *executor_->model_;
  for (int l = 1; l <= model.length(); ++l) {
    if (executor_->chain_.stage(l).recomputable()) continue;
    ThrowStatus(absl::FailedPreconditionError(
        absl::StrCat("a second backward runs the forward again, but ", model.Describe(l),
                     " must not run twice in a step")));
  }
  const absl::Status has_input = state_.held.Release();
  if (!has_input.ok()) ThrowStatus(has_input);
  state_.held = HeldTensors(model.length() + 1, input_, executor_->device_);
  state_.next = 0;
  state_.runner.BeginBackwards(executor_->gradient_ready_);
  RunUpTo(loss_);
}

at::Tensor PlannedRun::Backward(at::Tensor gradient) {
  parameters_.CheckUnchanged();
  inputs_.CheckUnchanged();
  if (done_) StartAgain();
  done_ = true;
  // What the backward of the loss does to what is held.
  state_.gradient = std::move(gradient);
  state_.held.DropPlain(executor_->model_->length());
  state_.next = loss_ + 2;
  RunUpTo(executor_->schedule_.size());
  return std::move(state_.gradient);
}

}  // namespace stowage
