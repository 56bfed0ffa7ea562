// LibTorch's deterministic mode, in which equal steps on a GPU are equal bit for bit.
#ifndef STOWAGE_CLIENT_TORCH_BASE_DETERMINISTIC_KERNELS_H_
#define STOWAGE_CLIENT_TORCH_BASE_DETERMINISTIC_KERNELS_H_

namespace stowage {

// From now on, for the whole process: cuDNN's kernels are deterministic and chosen without measuring, and an operation without a
// deterministic kernel throws, or, if `may_warn`, warns. With `may_warn` attention still adds up in any order. Sets
// CUBLAS_WORKSPACE_CONFIG, without which LibTorch refuses cuBLAS, unless it is set: nothing may have called cuBLAS before.
//
// From LibTorch 2.2 on this mode also fills every new tensor, with a kernel each, about a third of all kernels of a step. That is
// turned off: only code that reads memory before it writes it would see a difference.
void UseDeterministicKernels(bool may_warn);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_BASE_DETERMINISTIC_KERNELS_H_
