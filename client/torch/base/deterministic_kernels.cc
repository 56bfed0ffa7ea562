#include "client/torch/base/deterministic_kernels.h"

#include <ATen/Context.h>

#include <cstdlib>

#include "client/torch/base/torch_version.h"

namespace stowage {

void UseDeterministicKernels(bool may_warn) {
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  at::Context& context = at::globalContext();
  context.setDeterministicCuDNN(true);
  context.setBenchmarkCuDNN(false);
  context.setDeterministicAlgorithms(true, may_warn);
#if STOWAGE_TORCH_AT_LEAST(2, 2)
  context.setDeterministicFillUninitializedMemory(false);
#endif
}

}  // namespace stowage
