// The loops of min_plus_kernel.h for AVX-512 (F, BW, DQ, VL): a chunk is one register.
#include <immintrin.h>
#include <stdint.h>

#include "solvers/chain/internal/min_plus_kernel.h"
#include "solvers/chain/internal/min_plus_kernel_impl.h"

namespace stowage {
namespace {

template <class T>
struct Permuting : Vectors<T, 64, 4> {
  static void Shift(const ShiftedRow<T>& row, T* into) {
    // Lane numbers kLanes - shift, and on: of `low` and then of `high`. At shift 0 they pass the end of
    // `high` by none.
    const __m512i lanes =
        sizeof(T) == 4 ? _mm512_add_epi32(
                             _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                             _mm512_set1_epi32(16 - row.shift))
                       : _mm512_add_epi64(_mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0),
                                          _mm512_set1_epi64(8 - row.shift));
    for (int c = 0; c < kTile * kLanes<T>; c += kLanes<T>) {
      const __m512i low = _mm512_load_si512(row.low + c), high = _mm512_load_si512(row.high + c);
      _mm512_store_si512(into + c, sizeof(T) == 4 ? _mm512_permutex2var_epi32(low, lanes, high)
                                                  : _mm512_permutex2var_epi64(low, lanes, high));
    }
  }
};

// A comparison of doubles would not always become this instruction.
struct Real : Permuting<double> {
  static Register Min(Register a, Register b) { return _mm512_min_pd(a, b); }
  static Register Max(Register a, Register b) { return _mm512_max_pd(a, b); }
};

}  // namespace

const MinPlusKernels kAvx512Kernels = {"avx512", Loops<Permuting<int32_t>>::Kernel(),
                                       Loops<Real>::Kernel(), Loops<Permuting<int64_t>>::Kernel()};

}  // namespace stowage
