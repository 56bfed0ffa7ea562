#include "client/torch/execute/passed_input.h"

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace stowage {
namespace {

// The same memory as no leaf and no view of one: a node may write over it, and gradients that others
// give to the tensor come in here. The sum of all stays here, too, as autograd has it.
struct GradientReceiver : torch::autograd::Function<GradientReceiver> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& leaf,
                            int64_t gradient) {
    context->saved_data["gradient"] = gradient;
    return leaf.variable_data();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const int64_t address = context->saved_data["gradient"].toInt();
    *reinterpret_cast<at::Tensor*>(address) = std::move(gradients[0]);
    return {at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor PassedInput(const at::Tensor& leaf, at::Tensor* gradient) {
  return GradientReceiver::apply(leaf, reinterpret_cast<int64_t>(gradient));
}

at::Tensor GradientWithOwnMemory(at::Tensor gradient) {
  const at::NoGradGuard no_grad;
  if (!gradient.defined()) return gradient;
  // A view would hold on to what it is a view of.
  gradient = gradient.variable_data();
  const bool alone = gradient.storage().use_count() == 1;
  if (alone && gradient.storage().nbytes() <= gradient.nbytes()) return gradient;
  if (gradient.is_non_overlapping_and_dense() || gradient.dim() < 2) return gradient.clone();
  // A slice: of a tensor that is larger by as little as makes it one.
  std::vector<int64_t> sizes = gradient.sizes().vec();
  ++sizes[1];
  at::Tensor slice = at::empty(sizes, gradient.options()).narrow(1, 0, gradient.size(1));
  return slice.copy_(gradient);
}

at::Tensor DenseGradient(at::Tensor gradient, const at::Tensor& leaf) {
  if (!gradient.defined() || gradient.is_non_overlapping_and_dense()) {
    return GradientWithOwnMemory(std::move(gradient));
  }
  const at::NoGradGuard no_grad;
  const at::Tensor dense = leaf.is_non_overlapping_and_dense()
                               ? at::empty_strided(leaf.sizes(), leaf.strides(), gradient.options())
                               : at::empty(leaf.sizes(), gradient.options());
  return dense.copy_(gradient);
}

}  // namespace stowage
