#include "client/torch/execute/node_runner.h"

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

#include "client/torch/base/tensor_storage.h"
#include "client/torch/base/torch_status.h"
#include "client/torch/execute/passed_input.h"
#include "client/torch/execute/saved_tensor_scope.h"

namespace stowage {
namespace {

// The first input that is the same node as input i.
size_t FirstLike(const ModelNode& node, size_t i) {
  const auto same = std::find(node.inputs.begin(), node.inputs.end(), node.inputs[i]);
  return static_cast<size_t>(same - node.inputs.begin());
}

}  // namespace

void NodeRunner::BeginStep(at::Tensor target, OnGradientReady ready,
                           const std::vector<int>& asking) {
  BeginForwards(std::move(target), asking);
  gradients_.emplace(Parts(), std::move(ready));
}

std::vector<std::vector<at::Tensor>> NodeRunner::Parts() const {
  std::vector<std::vector<at::Tensor>> parameters;
  for (int v = 0; v < model_->size(); ++v) parameters.push_back(model_->node(v).parameters);
  return parameters;
}

void NodeRunner::BeginForwards(at::Tensor target, const std::vector<int>& asking) {
  target_ = std::move(target);
  runs_.assign(static_cast<size_t>(model_->size()), RepeatableForward());
  modes_.assign(runs_.size(), {});
  needs_gradient_ = model_->NeedGradients(asking);
  gives_gradient_.assign(runs_.size(), false);
  for (const int v : asking) gives_gradient_[static_cast<size_t>(v)] = true;
  hands_on_.assign(runs_.size(), false);
  model_storages_.clear();
  InsertStorages(model_->parameters(), &model_storages_);
  InsertStorages(model_->buffers(), &model_storages_);
  autocast_ = AutocastState::Capture();
  gradients_.reset();
  forwards_ = 0;
  recomputed_forwards_ = 0;
}

// A view of another than the first input, or of a parameter, would keep it alive where the plan lets
// it go.
at::Tensor NodeRunner::OwnOrView(const ModelNode& node, at::Tensor output, const at::Tensor& first,
                                 const std::vector<at::Tensor>& inputs) const {
  const c10::StorageImpl* storage = StorageOf(output);
  if (node.in_place) {
    if (storage == StorageOf(first)) return output;
    throw StageRuleError("it is to write over its first input, yet returns another tensor");
  }
  if (storage == nullptr || storage == StorageOf(first)) return output;
  bool foreign = model_storages_.count(storage) > 0 || storage == StorageOf(target_);
  for (const at::Tensor& input : inputs) foreign |= storage == StorageOf(input);
  return foreign ? output.clone() : output;
}

at::Tensor NodeRunner::CallOnce(int v, std::vector<at::Tensor> inputs) {
  const ModelNode& node = model_->node(v);
  const size_t first_kept = node.in_place ? 1 : 0;
  std::vector<int64_t> versions;
  for (const at::Tensor& input : inputs) versions.push_back(input._version());
  if (node.reads_target) inputs.push_back(target_);
  at::Tensor output = node.forward(inputs);
  if (!output.defined()) throw StageRuleError("its forward returned no tensor");
  for (size_t i = first_kept; i < versions.size(); ++i) {
    if (inputs[i]._version() == versions[i]) continue;
    throw StageRuleError(versions.size() == 1 ? "it writes over its input"
                                              : "it writes over an input");
  }
  const at::Tensor first = inputs.front();
  hands_on_[static_cast<size_t>(v)] = !node.in_place && output.is_same(first);
  return OwnOrView(node, std::move(output), first, inputs);
}

int NodeRunner::Giver(int v) const {
  while (hands_on_[static_cast<size_t>(v)]) v = model_->node(v).inputs.front();
  return v;
}

// A module that runs again in another mode computes something else.
void NodeRunner::CheckModes(int v) {
  const ModuleModes& modes = model_->node(v).modes;
  if (!modes) return;
  std::vector<bool>& first = modes_[static_cast<size_t>(v)];
  if (!has_run(v)) {
    first = modes();
  } else if (modes() != first) {
    throw StageRuleError(
        "its module was switched between train() and eval() after its forward, which runs again");
  }
}

void NodeRunner::CountForward(int v) {
  ++forwards_;
  if (has_run(v)) ++recomputed_forwards_;
}

at::Tensor NodeRunner::Call(int v, const std::vector<at::Tensor>& inputs) {
  CheckModes(v);
  RepeatableForward& run = runs_[static_cast<size_t>(v)];
  CountForward(v);
  const AutocastScope autocast(autocast_);
  return run.Run(model_->node(v).buffers, device_, [&] { return CallOnce(v, inputs); });
}

at::Tensor NodeRunner::Forward(int v, const std::vector<at::Tensor>& inputs) {
  std::optional<DropSavedScope> drops;
  // A forward that must not run again is not run this way but to be measured.
  if (!model_->node(v).must_keep) drops.emplace();
  return RunWithGraph(v, inputs).output.variable_data();
}

at::Tensor NodeRunner::LeafOf(int input, const at::Tensor& value) const {
  // Not detach(), whose result can hold on to the tensor that it came from.
  at::Tensor leaf = value.variable_data();
  if (gives_gradient_[static_cast<size_t>(input)]) leaf.requires_grad_();
  return leaf;
}

SavedNode NodeRunner::ForwardSaving(int v, const std::vector<at::Tensor>& inputs) {
  const ParameterGradients::Recording recording(&*gradients_, v);
  return RunWithGraph(v, inputs);
}

SavedNode NodeRunner::RunWithGraph(int v, const std::vector<at::Tensor>& inputs) {
  const at::AutoGradMode grad(true);
  const ModelNode& node = model_->node(v);
  SavedNode saved;
  saved.gradients = std::make_shared<std::vector<at::Tensor>>(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const size_t first = FirstLike(node, i);
    if (first < i) {
      saved.leaves.push_back(saved.leaves[first]);
      saved.passed.push_back(saved.passed[first]);
      continue;
    }
    const at::Tensor leaf = LeafOf(node.inputs[i], inputs[i]);
    saved.leaves.push_back(leaf);
    saved.passed.push_back(leaf.requires_grad() ? PassedInput(leaf, &(*saved.gradients)[i]) : leaf);
  }
  saved.output = ForwardInGraph(v, saved.passed);
  return saved;
}

void NodeRunner::ForwardStopped(int v, const std::vector<at::Tensor>& inputs, SavedSlots* slots) {
  if (!slots->owns()) {
    CheckModes(v);
    return CountForward(v);
  }
  SavedSlots::Refilling refilling(slots, /*stops=*/true);
  try {
    RunWithGraph(v, inputs);
  } catch (...) {
    // Whatever those in between have made of what ended it.
    if (!refilling.stopped()) throw;
  }
  refilling.Check();
}

std::unordered_set<const c10::StorageImpl*> NodeRunner::HeldByOthers(
    int v, const std::vector<at::Tensor>& inputs, const at::Tensor& output) const {
  std::unordered_set<const c10::StorageImpl*> held;
  InsertStorages(inputs, &held);
  InsertStorages({output, target_}, &held);
  InsertStorages(model_->node(v).parameters, &held);
  InsertStorages(model_->node(v).buffers, &held);
  return held;
}

at::Tensor NodeRunner::ForwardInGraph(int v, const std::vector<at::Tensor>& passed) {
  const at::AutoGradMode grad(true);
  at::Tensor output = Call(v, passed);
  if (output.requires_grad() && !needs_gradient(v)) {
    throw StageRuleError("it trains parameters that it does not list");
  }
  gives_gradient_[static_cast<size_t>(v)] = output.requires_grad();
  return output;
}

std::vector<at::Tensor> NodeRunner::Backward(int v, SavedNode saved, at::Tensor gradient,
                                             std::vector<at::Tensor> running) {
  running = BackwardOf(v, std::move(saved), std::move(gradient), std::move(running));
  gradients_->Finish(v);
  return running;
}

std::vector<at::Tensor> NodeRunner::BackwardOf(int v, SavedNode saved, at::Tensor gradient,
                                               std::vector<at::Tensor> running) {
  const bool starts = model_->StartsBackward(v, saved.output);
  if ((!gradient.defined() && !starts) || !saved.output.requires_grad()) return running;
  if (!gradient.defined()) gradient = at::ones_like(saved.output);
  const at::Tensor held = in_line_ ? gradient : at::Tensor();
  std::vector<at::Tensor> roots = {saved.output};
  std::vector<at::Tensor> given = {std::move(gradient)};
  for (size_t i = 0; i < running.size(); ++i) {
    if (!running[i].defined()) continue;
    roots.push_back(saved.passed[i]);
    given.push_back(std::move(running[i]));
  }
  {
    const AutocastScope off(autocast_.Off());
    gradients_->Backward(v, std::move(roots), std::move(given));
  }
  running = std::move(*saved.gradients);
  if (in_line_) return {DenseGradient(std::move(running[0]), saved.leaves[0])};
  saved = {};
  for (at::Tensor& sum : running) sum = GradientWithOwnMemory(std::move(sum));
  return running;
}

}  // namespace stowage
