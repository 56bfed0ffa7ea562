#include "client/torch/stage_runner.h"

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

#include "client/torch/passed_input.h"
#include "client/torch/saved_tensor_scope.h"
#include "client/torch/tensor_storage.h"
#include "client/torch/torch_status.h"

namespace stowage {

void StageRunner::BeginStep(at::Tensor target, OnGradientReady ready, bool input_gradient) {
  const int stages = model_->length() + 1;
  target_ = std::move(target);
  runs_.assign(static_cast<size_t>(stages) + 1, RepeatableForward());
  needs_input_gradient_.assign(static_cast<size_t>(stages) + 1, false);
  for (int l = 1; l <= stages; ++l) {
    needs_input_gradient_[static_cast<size_t>(l)] = input_gradient || model_->NeedsInputGradient(l);
  }
  model_storages_.clear();
  InsertStorages(model_->parameters(), &model_storages_);
  InsertStorages(model_->buffers(), &model_storages_);
  autocast_ = AutocastState::Capture();
  BeginBackwards(std::move(ready));
  forwards_ = 0;
  recomputed_forwards_ = 0;
}

void StageRunner::BeginBackwards(OnGradientReady ready) {
  std::vector<std::vector<at::Tensor>> parameters(runs_.size());
  for (int l = 1; l <= model_->length(); ++l) {
    parameters[static_cast<size_t>(l)] = model_->stage(l).parameters;
  }
  gradients_.emplace(parameters, std::move(ready));
}

const std::vector<at::Tensor>& StageRunner::BuffersOf(int l) const {
  static const auto* const none = new std::vector<at::Tensor>();
  return l > model_->length() ? *none : model_->stage(l).buffers;
}

// The loss has no parameters of its own.
bool StageRunner::MayRequireGradient(int l) const {
  return needs_input_gradient_[static_cast<size_t>(std::min(l, model_->length())) + 1];
}

// A view of the input would keep the input alive where the plan lets it go; one of a parameter or
// buffer would take that along when the plan lets the output go.
bool StageRunner::OwnsStorage(const at::Tensor& output, const at::Tensor& input) const {
  const c10::StorageImpl* storage = StorageOf(output);
  return storage == nullptr || (storage != StorageOf(input) && model_storages_.count(storage) == 0);
}

at::Tensor StageRunner::CallOnce(int l, const at::Tensor& input) {
  const bool is_loss = l > model_->length();
  const int64_t version = input._version();
  const at::Tensor output =
      is_loss ? model_->loss()(input, target_) : model_->stage(l).forward(input);
  if (!output.defined()) throw StageRuleError("its forward returned no tensor");
  if (input._version() != version) throw StageRuleError("it writes over its input");
  if (is_loss && output.numel() != 1) throw StageRuleError("the loss must be a scalar");
  return OwnsStorage(output, input) ? output : output.clone();
}

at::Tensor StageRunner::Call(int l, const at::Tensor& input) {
  RepeatableForward& run = runs_[static_cast<size_t>(l)];
  ++forwards_;
  if (run.has_run()) ++recomputed_forwards_;
  const AutocastScope autocast(autocast_);
  return run.Run(BuffersOf(l), [&] { return CallOnce(l, input); });
}

// A forward that must not run again is not run this way but to be measured.
bool StageRunner::MayDropSaved(int l) const {
  return l > model_->length() || !model_->stage(l).must_keep;
}

at::Tensor StageRunner::Forward(int l, const at::Tensor& input) {
  std::optional<DropSavedScope> drops;
  if (MayDropSaved(l)) drops.emplace();
  return RunWithGraph(l, input).output.variable_data();
}

SavedForward StageRunner::ForwardSaving(int l, const at::Tensor& input) {
  const ParameterGradients::Recording recording(&*gradients_, l);
  return RunWithGraph(l, input);
}

SavedForward StageRunner::RunWithGraph(int l, const at::Tensor& input) {
  const at::AutoGradMode grad(true);
  SavedForward saved;
  // Not detach(), whose result can hold on to the tensor that it came from.
  saved.input = input.variable_data();
  if (needs_input_gradient_[static_cast<size_t>(l)] && at::isFloatingType(input.scalar_type())) {
    saved.input.requires_grad_();
  }
  saved.gradient = std::make_shared<at::Tensor>();
  saved.output =
      Call(l, saved.input.requires_grad() ? PassedInput(saved.input, saved.gradient.get())
                                          : saved.input);
  // Nothing would flow back to them: later stages give no gradient where nothing listed trains.
  if (saved.output.requires_grad() && !MayRequireGradient(l)) {
    throw StageRuleError("it trains parameters that the stage does not list");
  }
  return saved;
}

at::Tensor StageRunner::BackwardOf(int l, const SavedForward& saved, at::Tensor gradient) {
  const bool flows = gradient.defined() || l > model_->length();
  if (!flows || !saved.output.requires_grad()) return {};
  const AutocastScope off(autocast_.Off());
  // The profile counts it to the end of the backward.
  const at::Tensor held = gradient.defined() ? std::move(gradient) : at::ones_like(saved.output);
  gradients_->Backward(l, {saved.output}, {held});
  return DenseGradient(std::move(*saved.gradient), saved.input);
}

at::Tensor StageRunner::Backward(int l, const SavedForward& saved, at::Tensor gradient) {
  at::Tensor input_gradient = BackwardOf(l, saved, std::move(gradient));
  gradients_->Finish(l);
  return input_gradient;
}

}  // namespace stowage
