#include "client/torch/model/model_tensors.h"

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

namespace stowage {
namespace {

bool Contains(const std::vector<at::Tensor>& tensors, const at::Tensor& tensor) {
  const auto same = [&](const at::Tensor& other) { return other.is_same(tensor); };
  return std::any_of(tensors.begin(), tensors.end(), same);
}

void AppendNew(const std::vector<at::Tensor>& tensors, std::vector<at::Tensor>* all) {
  for (const at::Tensor& tensor : tensors) {
    if (!Contains(*all, tensor)) all->push_back(tensor);
  }
}

}  // namespace

std::vector<bool> ModelTensors::modes() const {
  std::vector<bool> all;
  for (const ModuleModes& part : modes_) {
    const std::vector<bool> modes = part();
    all.insert(all.end(), modes.begin(), modes.end());
  }
  return all;
}

void ModelTensors::AddTensors(const std::vector<at::Tensor>& parameters,
                              const std::vector<at::Tensor>& buffers, ModuleModes modes) {
  if (modes) modes_.push_back(std::move(modes));
  std::vector<at::Tensor> tied;
  for (const at::Tensor& parameter : parameters) {
    if (Contains(parameters_, parameter)) tied.push_back(parameter);
  }
  AppendNew(tied, &tied_parameters_);
  AppendNew(parameters, &parameters_);
  AppendNew(buffers, &buffers_);
  EnsureGradients();
}

void ModelTensors::AddFound(const FoundState& found, std::string* op_kind,
                            std::vector<at::Tensor>* parameters, std::vector<at::Tensor>* buffers) {
  if (op_kind->empty()) *op_kind = found.op_kind;
  std::vector<at::Tensor> more;
  for (const at::Tensor& parameter : found.parameters) {
    if (!Contains(*parameters, parameter)) more.push_back(parameter);
  }
  AddTensors(more, found.buffers);
  AppendNew(more, parameters);
  AppendNew(found.buffers, buffers);
}

void ModelTensors::EnsureGradients() const {
  for (const at::Tensor& parameter : parameters_) {
    if (parameter.requires_grad() && !parameter.grad().defined()) {
      parameter.mutable_grad() = at::zeros_like(parameter.variable_data());
    }
  }
}

void ModelTensors::ZeroGradients() const {
  const at::NoGradGuard no_grad;
  for (const at::Tensor& parameter : parameters_) {
    if (parameter.grad().defined()) parameter.mutable_grad().zero_();
  }
}

bool AnyTrains(const std::vector<at::Tensor>& parameters) {
  return std::any_of(parameters.begin(), parameters.end(),
                     [](const at::Tensor& parameter) { return parameter.requires_grad(); });
}

}  // namespace stowage
