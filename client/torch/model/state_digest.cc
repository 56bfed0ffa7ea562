#include "client/torch/model/state_digest.h"

#include <c10/core/GradMode.h>

#include <cstdint>
#include <vector>

namespace stowage {
namespace {

Digest DigestOf(const std::vector<at::Tensor>& tensors) {
  const at::NoGradGuard no_grad;
  Hasher hasher;
  for (const at::Tensor& tensor : tensors) {
    // The sizes keep bytes from moving between neighbours unseen.
    const int64_t bytes = tensor.defined() ? static_cast<int64_t>(tensor.nbytes()) : -1;
    hasher.Update(&bytes, sizeof(bytes));
    if (bytes <= 0) continue;
    const at::Tensor contiguous = tensor.contiguous().cpu();
    hasher.Update(contiguous.data_ptr(), static_cast<size_t>(bytes));
  }
  return hasher.Finish();
}

}  // namespace

Digest ParameterDigest(const ModelTensors& model) { return DigestOf(model.parameters()); }

Digest GradientDigest(const ModelTensors& model) {
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : model.parameters()) gradients.push_back(parameter.grad());
  return DigestOf(gradients);
}

Digest BufferDigest(const ModelTensors& model) { return DigestOf(model.buffers()); }

}  // namespace stowage
