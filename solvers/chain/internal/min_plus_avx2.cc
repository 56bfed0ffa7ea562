// The loops of min_plus_kernel.h for AVX2.
#include <immintrin.h>
#include <stdint.h>

#include "solvers/chain/internal/min_plus_kernel.h"
#include "solvers/chain/internal/min_plus_kernel_impl.h"

namespace stowage {
namespace {

// A comparison of doubles would not always become this instruction.
struct Real : Vectors<double, 32, 2> {
  static Register Min(Register a, Register b) { return _mm256_min_pd(a, b); }
  static Register Max(Register a, Register b) { return _mm256_max_pd(a, b); }
};

}  // namespace

const MinPlusKernels kAvx2Kernels = {"avx2", Loops<Vectors<int32_t, 32, 2>>::Kernel(),
                                     Loops<Real>::Kernel(),
                                     Loops<Vectors<int64_t, 32, 2>>::Kernel()};

}  // namespace stowage
