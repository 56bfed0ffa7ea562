// Several tensors where there is often one: the inputs, targets or outputs of something that runs.
#ifndef STOWAGE_CLIENT_TORCH_BASE_TENSORS_H_
#define STOWAGE_CLIENT_TORCH_BASE_TENSORS_H_

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

namespace stowage {

// A single tensor is a list of one, also an undefined one.
struct Tensors : std::vector<at::Tensor> {
  using std::vector<at::Tensor>::vector;
  Tensors() = default;
  Tensors(at::Tensor one) { push_back(std::move(one)); }  // NOLINT: implicit
  Tensors(std::vector<at::Tensor> several)                // NOLINT: implicit
      : std::vector<at::Tensor>(std::move(several)) {}
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_BASE_TENSORS_H_
