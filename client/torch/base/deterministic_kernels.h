// LibTorch's deterministic mode, in which equal steps on a GPU are equal bit for bit.
#ifndef STOWAGE_CLIENT_TORCH_BASE_DETERMINISTIC_KERNELS_H_
#define STOWAGE_CLIENT_TORCH_BASE_DETERMINISTIC_KERNELS_H_

namespace stowage {

// From now on, for the whole process: cuDNN's kernels are deterministic and chosen without measuring, and an operation without a
// deterministic kernel throws, or, if `may_warn`, warns. Warnings are not the mode: with them attention adds up in any order. Sets
// CUBLAS_WORKSPACE_CONFIG, without which LibTorch refuses cuBLAS, unless it is set: nothing may have called cuBLAS before. New
// tensors are not filled, as the mode otherwise has it from LibTorch 2.2 on: that takes a kernel for each, a third of a step's, and
// says nothing unless somebody reads what nobody wrote.
void UseDeterministicKernels(bool may_warn);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_BASE_DETERMINISTIC_KERNELS_H_
