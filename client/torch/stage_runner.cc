#include "client/torch/stage_runner.h"

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <utility>

#include "client/torch/torch_status.h"

namespace stowage {
namespace {

bool SharesStorage(const at::Tensor& a, const at::Tensor& b) {
  return a.has_storage() && b.has_storage() && a.storage().is_alias_of(b.storage());
}

}  // namespace

void StageRunner::BeginStep(at::Tensor target) {
  const int stages = model_->length() + 1;
  target_ = std::move(target);
  first_run_.assign(static_cast<size_t>(stages) + 1, std::nullopt);
  needs_input_gradient_.assign(static_cast<size_t>(stages) + 1, false);
  for (int l = 1; l <= stages; ++l) {
    needs_input_gradient_[static_cast<size_t>(l)] = model_->NeedsInputGradient(l);
  }
  forwards_ = 0;
  recomputed_forwards_ = 0;
}

at::Tensor StageRunner::CallOnce(int l, const at::Tensor& input) {
  const bool is_loss = l > model_->length();
  const int64_t version = input._version();
  at::Tensor output = is_loss ? model_->loss()(input, target_) : model_->stage(l).forward(input);
  if (!output.defined()) throw StageRuleError("its forward returned no tensor");
  if (input._version() != version) throw StageRuleError("it writes over its input");
  if (is_loss && output.numel() != 1) throw StageRuleError("the loss must be a scalar");
  // A view of the input would keep the input alive where the plan lets it go.
  if (SharesStorage(output, input)) output = output.clone();
  return output;
}

at::Tensor StageRunner::Call(int l, const at::Tensor& input) {
  std::optional<RandomState>& first = first_run_[static_cast<size_t>(l)];
  ++forwards_;
  if (!first) {
    first = RandomState::Capture();
    return CallOnce(l, input);
  }
  ++recomputed_forwards_;
  static const std::vector<at::Tensor> kNoBuffers;
  const StateGuard guard(l > model_->length() ? kNoBuffers : model_->stage(l).buffers);
  first->Restore();
  return CallOnce(l, input);
}

at::Tensor StageRunner::Forward(int l, const at::Tensor& input) {
  const at::NoGradGuard no_grad;
  return Call(l, input);
}

SavedForward StageRunner::ForwardSaving(int l, const at::Tensor& input) {
  const at::AutoGradMode grad(true);
  SavedForward saved;
  // Not detach(), whose result can hold on to the tensor that it came from.
  saved.input = input.variable_data();
  if (needs_input_gradient_[static_cast<size_t>(l)] && at::isFloatingType(input.scalar_type())) {
    saved.input.requires_grad_();
  }
  saved.output = Call(l, saved.input);
  return saved;
}

at::Tensor StageRunner::Backward(int l, const SavedForward& saved, at::Tensor gradient) {
  const bool flows = gradient.defined() || l > model_->length();
  if (!flows || !saved.output.requires_grad()) return {};
  torch::autograd::backward({saved.output}, {gradient});
  return saved.input.grad();
}

}  // namespace stowage
