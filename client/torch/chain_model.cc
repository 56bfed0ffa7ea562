#include "client/torch/chain_model.h"

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

void AppendNew(const std::vector<at::Tensor>& tensors, std::vector<at::Tensor>* all) {
  for (const at::Tensor& tensor : tensors) {
    const auto same = [&](const at::Tensor& other) { return other.is_same(tensor); };
    if (std::none_of(all->begin(), all->end(), same)) all->push_back(tensor);
  }
}

}  // namespace

void ChainModel::AddStage(ModelStage stage) {
  AppendNew(stage.parameters, &parameters_);
  AppendNew(stage.buffers, &buffers_);
  stages_.push_back(std::move(stage));
  EnsureGradients();
}

void ChainModel::AddFunction(std::string name, std::string op_kind, StageFunction forward) {
  ModelStage stage;
  stage.name = std::move(name);
  stage.op_kind = std::move(op_kind);
  stage.forward = std::move(forward);
  AddStage(std::move(stage));
}

void ChainModel::SetLoss(std::string op_kind, LossFunction loss) {
  loss_op_kind_ = std::move(op_kind);
  loss_ = std::move(loss);
}

bool ChainModel::NeedsInputGradient(int l) const {
  return std::any_of(stages_.begin(), stages_.begin() + (l - 1), [](const ModelStage& stage) {
    return std::any_of(stage.parameters.begin(), stage.parameters.end(),
                       [](const at::Tensor& parameter) { return parameter.requires_grad(); });
  });
}

std::string ChainModel::Describe(int l) const {
  if (l > length()) return absl::StrCat("the loss (", loss_op_kind_, ")");
  return absl::StrCat("stage ", l, " (", stage(l).name, ", ", stage(l).op_kind, ")");
}

void ChainModel::EnsureGradients() const {
  for (const at::Tensor& parameter : parameters_) {
    if (parameter.requires_grad() && !parameter.grad().defined()) {
      parameter.mutable_grad() = at::zeros_like(parameter.variable_data());
    }
  }
}

void ChainModel::ZeroGradients() const {
  const at::NoGradGuard no_grad;
  for (const at::Tensor& parameter : parameters_) {
    if (parameter.grad().defined()) parameter.mutable_grad().zero_();
  }
}

}  // namespace stowage
