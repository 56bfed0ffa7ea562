// What an operation makes on a CUDA GPU, told from what its arguments look like: for operations of LibTorch that have no
// kernel for tensors without data ("meta"), or one that makes something else than CUDA's.
//
// Shapes, types and layouts are those that PyTorch's source has for CUDA and cuDNN, the same from 1.13 on unless a rule says
// otherwise. What hangs on a choice that nobody can ask for is refused.
#ifndef STOWAGE_CLIENT_TORCH_SHAPES_CUDA_SHAPE_RULES_H_
#define STOWAGE_CLIENT_TORCH_SHAPES_CUDA_SHAPE_RULES_H_

#include <ATen/core/ivalue.h>

#include <optional>
#include <string>
#include <vector>

#include "client/torch/offload/cuda_kernels.h"

namespace stowage {

// `name`, `arguments` and results as for a ShapeRule; but single numbers that CUDA's kernel leaves on the host are there.
// Nothing: there is no rule. Throws c10::Error, with the name, where what CUDA makes of these arguments is not known.
std::optional<std::vector<c10::IValue>> MakeAsCuda(const std::string& name,
                                                   const std::vector<c10::IValue>& arguments,
                                                   const CudaKernels& kernels);

// Whether CUDA, and maybe others, have a kernel of their own for what the meta device composes of other operations: what that
// tells holds for the CPU alone.
bool IsComposedOnMeta(const std::string& name);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_SHAPES_CUDA_SHAPE_RULES_H_
