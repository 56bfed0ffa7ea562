// Which of CUDA's kernels LibTorch takes on a GPU, as far as what operations make there depends on it.
#ifndef STOWAGE_CLIENT_TORCH_OFFLOAD_CUDA_KERNELS_H_
#define STOWAGE_CLIENT_TORCH_OFFLOAD_CUDA_KERNELS_H_

namespace stowage {

struct CudaKernels {
  // The version of cuDNN, as 90100 for 9.1; 0: LibTorch has none, or is told not to use it.
  long cudnn = 0;
  // cuDNN convolves bfloat16 there.
  bool convolves_bfloat16 = false;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_OFFLOAD_CUDA_KERNELS_H_
