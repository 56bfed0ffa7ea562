// How a part of a model gets its input in a graph of its own, so that its backward computes what it would in a graph of
// the whole model: the gradient comes back as autograd made it. The gradient of a leaf would be laid out anew, as the
// leaf is, and kernels that read it would round differently.
#ifndef STOWAGE_CLIENT_TORCH_EXECUTE_PASSED_INPUT_H_
#define STOWAGE_CLIENT_TORCH_EXECUTE_PASSED_INPUT_H_

#include <ATen/core/Tensor.h>

namespace stowage {

// The memory of `leaf`, which requires a gradient, as no leaf and no view of one: it may be written over. The sum of all
// gradients goes to `gradient`, which must live until the backward has run, or never runs.
at::Tensor PassedInput(const at::Tensor& leaf, at::Tensor* gradient);

// The same values and strides, in memory of which nothing is another tensor's.
at::Tensor GradientWithOwnMemory(at::Tensor gradient);
// The same, but a gradient that is expanded, or a slice, is laid out anew, as `leaf` is: as autograd does for a leaf.
at::Tensor DenseGradient(at::Tensor gradient, const at::Tensor& leaf);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_EXECUTE_PASSED_INPUT_H_
