#include "client/torch/planned_run.h"

#include <torch/csrc/autograd/variable.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/torch/model_state.h"
#include "client/torch/torch_status.h"

namespace stowage {
namespace {

// The same memory without a graph. Who writes over one of the two changes the version of both.
at::Tensor WithoutGraph(const at::Tensor& tensor) {
  at::Tensor same = tensor.variable_data();
  torch::autograd::impl::set_version_counter(same, torch::autograd::impl::version_counter(tensor));
  return same;
}

}  // namespace

PlannedRun::PlannedRun(std::shared_ptr<ChainExecutor> executor, size_t loss,
                       const at::Tensor& input)
    : executor_(std::move(executor)),
      loss_(loss),
      input_(WithoutGraph(input)),
      parameters_("parameter", executor_->model_->parameters()),
      inputs_("input", {input}),
      state_{StageRunner(executor_->model_),
             HeldTensors(executor_->model_->length() + 1, input_, executor_->device_),
             {},
             {}} {
  state_.runner.BeginStep(at::Tensor(), executor_->gradient_ready_, input.requires_grad());
}

void PlannedRun::RunUpTo(size_t end) {
  const absl::Status status = executor_->RunUpTo(end, &state_);
  if (!status.ok()) ThrowStatus(status);
}

at::Tensor PlannedRun::Forward() {
  StateGuard before(executor_->model_->buffers());
  RunUpTo(loss_);
  before.Dismiss();
  // The version: a caller who writes over the output is found out where the backward needs it.
  return WithoutGraph(state_.held.Activation(executor_->model_->length()));
}

void PlannedRun::StartAgain() {
  const ChainModel& model = *executor_->model_;
  for (int l = 1; l <= model.length(); ++l) {
    if (executor_->chain_.stage(l).recomputable()) continue;
    ThrowStatus(absl::FailedPreconditionError(
        absl::StrCat("a second backward runs the forward again, but ", model.Describe(l),
                     " must not run twice in a step")));
  }
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
