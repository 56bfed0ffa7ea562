#include "client/torch/execute/node_runner.h"

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/torch/base/tensor_storage.h"
#include "client/torch/base/torch_status.h"
#include "client/torch/execute/packing_scope.h"
#include "client/torch/execute/passed_input.h"

namespace stowage {
namespace {

// The first input that is the same node as input i.
size_t FirstLike(const ModelNode& node, size_t i) {
  const auto same = std::find(node.inputs.begin(), node.inputs.end(), node.inputs[i]);
  return static_cast<size_t>(same - node.inputs.begin());
}

void CheckCount(const ModelNode& node, const Tensors& outputs) {
  if (static_cast<int>(outputs.size()) != node.outputs) {
    throw StageRuleError(absl::StrCat("its forward returned ", outputs.size(),
                                      " tensors, the model has ", node.outputs));
  }
  const auto defined = [](const at::Tensor& output) { return output.defined(); };
  if (std::any_of(outputs.begin(), outputs.end(), defined)) return;
  throw StageRuleError("its forward returned no tensor");
}

}  // namespace

std::vector<at::Tensor> WithoutGraphs(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> plain;
  for (const at::Tensor& tensor : tensors) {
    plain.push_back(tensor.defined() ? tensor.variable_data() : tensor);
  }
  return plain;
}

void NodeRunner::BeginStep(Tensors targets, OnGradientReady ready,
                           const std::vector<NodeOutput>& asking) {
  BeginForwards(std::move(targets), asking);
  gradients_.emplace(Parts(), std::move(ready));
}

std::vector<std::vector<at::Tensor>> NodeRunner::Parts() const {
  std::vector<std::vector<at::Tensor>> parameters;
  for (int v = 0; v < model_->size(); ++v) parameters.push_back(model_->node(v).parameters);
  return parameters;
}

void NodeRunner::BeginForwards(Tensors targets, const std::vector<NodeOutput>& asking) {
  targets_ = std::move(targets);
  if (targets_.empty()) targets_.emplace_back();
  runs_ = std::vector<RepeatableForward>(static_cast<size_t>(model_->size()));
  modes_.assign(runs_.size(), {});
  needs_gradient_ = model_->NeedGradients(asking);
  gives_gradient_ = model_->ForEachOutput<char>();
  for (const NodeOutput input : asking) gives_gradient_[input] = 1;
  hands_on_.assign(runs_.size(), false);
  model_storages_.clear();
  AppendStorages(model_->parameters(), &model_storages_);
  AppendStorages(model_->buffers(), &model_storages_);
  std::sort(model_storages_.begin(), model_storages_.end());
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
  return IsForeign(storage, inputs) ? output.clone() : output;
}

bool NodeRunner::IsForeign(const c10::StorageImpl* storage,
                           const std::vector<at::Tensor>& inputs) const {
  const auto lives_there = [&](const at::Tensor& other) { return storage == StorageOf(other); };
  return std::binary_search(model_storages_.begin(), model_storages_.end(), storage) ||
         std::any_of(targets_.begin(), targets_.end(), lives_there) ||
         std::any_of(inputs.begin(), inputs.end(), lives_there);
}

// Of several either all are views of the first input, as those of a split, or none is a view of any: a plan has the
// memory of all of them or of none.
Tensors NodeRunner::OwnOrViews(Tensors outputs, const at::Tensor& first,
                               const std::vector<at::Tensor>& inputs) const {
  const bool all = std::all_of(outputs.begin(), outputs.end(), [&](const at::Tensor& output) {
    return !output.defined() || StorageOf(output) == StorageOf(first);
  });
  for (at::Tensor& output : outputs) {
    const c10::StorageImpl* const storage = StorageOf(output);
    if (all && output.is_same(first)) output = at::alias(output);
    if (!all && storage != nullptr && IsForeign(storage, inputs)) output = output.clone();
  }
  return outputs;
}

Tensors NodeRunner::CallOnce(int v, Tensors inputs) {
  const ModelNode& node = model_->node(v);
  const size_t first_kept = node.in_place ? 1 : 0;
  std::vector<int64_t> versions;
  const auto version = [](const at::Tensor& tensor) {
    return tensor.defined() ? tensor._version() : 0;
  };
  for (const at::Tensor& input : inputs) versions.push_back(version(input));
  if (node.reads_target) inputs.insert(inputs.end(), targets_.begin(), targets_.end());
  Tensors outputs = node.forward(inputs);
  CheckCount(node, outputs);
  for (size_t i = first_kept; i < versions.size(); ++i) {
    if (version(inputs[i]) == versions[i]) continue;
    throw StageRuleError(versions.size() == 1 ? "it writes over its input"
                                              : "it writes over an input");
  }
  const at::Tensor first = inputs.front();
  if (node.outputs > 1) return OwnOrViews(std::move(outputs), first, inputs);
  hands_on_[static_cast<size_t>(v)] = !node.in_place && outputs.front().is_same(first);
  return OwnOrView(node, std::move(outputs.front()), first, inputs);
}

NodeOutput NodeRunner::GradientOwner(NodeOutput made) const {
  while (hands_on(made.node)) made = model_->node(made.node).inputs.front();
  return made;
}

// A module that runs again in another mode computes something else.
void NodeRunner::CheckModes(int v) {
  const ModuleModes& modes = model_->node(v).modes;
  if (!modes || RunsOnce(v)) return;
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

Tensors NodeRunner::Call(int v, const std::vector<at::Tensor>& inputs) {
  CheckModes(v);
  RepeatableForward& run = runs_[static_cast<size_t>(v)];
  CountForward(v);
  const AutocastScope autocast(autocast_);
  const InnerBackwards inner(device_);
  const auto call = [&] { return CallOnce(v, inputs); };
  return RunsOnce(v) ? run.RunOnce(call) : run.Run(model_->node(v).buffers, device_, call);
}

std::vector<at::Tensor> NodeRunner::Forward(int v, const std::vector<at::Tensor>& inputs) {
  std::optional<DropSavedScope> drops;
  // A forward that must not run again is not run this way but to be measured.
  if (!model_->node(v).must_keep) drops.emplace();
  return WithoutGraphs(RunWithGraph(v, inputs).outputs);
}

at::Tensor NodeRunner::LeafOf(NodeOutput input, const at::Tensor& value) const {
  if (!value.defined()) return value;
  // Not detach(), whose result can hold on to the tensor that it came from.
  at::Tensor leaf = value.variable_data();
  if (gives_gradient_[input] != 0) leaf.requires_grad_();
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
    const bool asks = leaf.defined() && leaf.requires_grad();
    saved.passed.push_back(asks ? PassedInput(leaf, &(*saved.gradients)[i]) : leaf);
  }
  saved.outputs = ForwardInGraph(v, saved.passed);
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

std::vector<const c10::StorageImpl*> NodeRunner::HeldByOthers(
    int v, const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& outputs) const {
  const ModelNode& node = model_->node(v);
  std::vector<const c10::StorageImpl*> held;
  held.reserve(inputs.size() + outputs.size() + targets_.size() + node.parameters.size() +
               node.buffers.size());
  AppendStorages(inputs, &held);
  AppendStorages(outputs, &held);
  AppendStorages(targets_, &held);
  AppendStorages(node.parameters, &held);
  AppendStorages(node.buffers, &held);
  return held;
}

std::vector<at::Tensor> NodeRunner::ForwardInGraph(int v, const std::vector<at::Tensor>& passed) {
  const at::AutoGradMode grad(true);
  std::vector<at::Tensor> outputs = Call(v, passed);
  std::vector<char>& gives = gives_gradient_.of(v);
  for (size_t i = 0; i < outputs.size(); ++i) {
    gives[i] = outputs[i].defined() && outputs[i].requires_grad() ? 1 : 0;
    if (gives[i] != 0 && !needs_gradient(v)) {
      throw StageRuleError("it trains parameters that it does not list");
    }
  }
  return outputs;
}

std::vector<at::Tensor> NodeRunner::Backward(int v, SavedNode saved,
                                             std::vector<at::Tensor> gradients,
                                             std::vector<at::Tensor> running, bool starts) {
  running = BackwardOf(v, std::move(saved), std::move(gradients), std::move(running), starts);
  gradients_->Finish(v);
  return running;
}

std::vector<at::Tensor> NodeRunner::BackwardOf(int v, SavedNode saved,
                                               std::vector<at::Tensor> gradients,
                                               std::vector<at::Tensor> running, bool starts) {
  std::vector<at::Tensor> roots;
  std::vector<at::Tensor> given;
  for (size_t i = 0; i < saved.outputs.size(); ++i) {
    const at::Tensor& output = saved.outputs[i];
    if (!output.defined() || !output.requires_grad()) continue;
    at::Tensor gradient = std::move(gradients[i]);
    if (!gradient.defined() && starts && model_->StartsBackward({v, static_cast<int>(i)}, output)) {
      gradient = at::ones_like(output);
    }
    if (!gradient.defined()) continue;
    roots.push_back(output);
    given.push_back(std::move(gradient));
  }
  gradients.clear();
  if (roots.empty()) return running;
  const std::vector<at::Tensor> held = in_line_ ? given : std::vector<at::Tensor>();
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
  if (in_line_) {
    for (size_t i = 0; i < running.size(); ++i) {
      running[i] = DenseGradient(std::move(running[i]), saved.leaves[i]);
    }
    return running;
  }
  saved = {};
  for (at::Tensor& sum : running) sum = GradientWithOwnMemory(std::move(sum));
  return running;
}

}  // namespace stowage
