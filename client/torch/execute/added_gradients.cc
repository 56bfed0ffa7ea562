#include "client/torch/execute/added_gradients.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <cstdint>
#include <utility>

namespace stowage {
namespace {

using torch::autograd::variable_list;

// Takes a gradient that nobody needs. Runs as early as the accumulator for which it stands.
class GradientSink : public torch::autograd::Node {
 public:
  explicit GradientSink(const at::Tensor& parameter) : Node(/*sequence_nr=*/UINT64_MAX) {
    add_input_metadata(parameter);
  }
  variable_list apply(variable_list&&) override { return {}; }
};

}  // namespace

AddedGradients::AddedGradients(const std::vector<at::Tensor>& parameters) {
  for (const at::Tensor& parameter : parameters) {
    if (!parameter.requires_grad()) continue;
    const at::Tensor& gradient = parameter.grad();
    known_.push_back({parameter, gradient, VersionOf(gradient)});
  }
}

int64_t AddedGradients::VersionOf(const at::Tensor& gradient) {
  return gradient.defined() ? static_cast<int64_t>(gradient._version()) : -1;
}

std::vector<at::Tensor> AddedGradients::Parameters() const {
  std::vector<at::Tensor> parameters;
  for (const Known& known : known_) {
    const at::Tensor& gradient = known.parameter.grad();
    const bool same = gradient.unsafeGetTensorImpl() == known.gradient.unsafeGetTensorImpl() &&
                      VersionOf(gradient) == known.version;
    if (!same) parameters.push_back(known.parameter);
  }
  return parameters;
}

LeavingGradients::LeavingGradients(const std::vector<at::Tensor>& parameters) {
  for (const at::Tensor& parameter : parameters) {
    Left left{parameter, torch::autograd::impl::grad_accumulator(parameter),
              MakeNode<GradientSink>(parameter)};
    torch::autograd::impl::set_grad_accumulator(parameter, WeakNode(left.sink));
    left_.push_back(std::move(left));
  }
}

LeavingGradients::~LeavingGradients() {
  for (const Left& left : left_) {
    torch::autograd::impl::set_grad_accumulator(left.parameter, WeakNode(left.accumulator));
  }
}

}  // namespace stowage
