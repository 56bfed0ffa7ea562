// The loops of min_plus_kernel.h for AVX-512 (F, BW, DQ, VL): a chunk is one register.
#include <immintrin.h>
#include <stdint.h>

#include "solvers/chain/internal/min_plus_kernel.h"
#include "solvers/chain/internal/min_plus_kernel_impl.h"

namespace stowage {
namespace {

template <class T>
struct Integers {
  using Value = T;
  using Register = __m512i;
  static constexpr int kLanes = 64 / static_cast<int>(sizeof(T));
  static constexpr int kRows = 4;
  static constexpr int kColumns = 4;
  static Register Load(const T* from) { return _mm512_load_si512(from); }
  static Register LoadAny(const T* from) { return _mm512_loadu_si512(from); }
  static void Store(T* to, Register v) { _mm512_store_si512(to, v); }
  static void StoreAny(T* to, Register v) { _mm512_storeu_si512(to, v); }
};

// Lane numbers kLanes - shift, and on: of `low` and then of `high`.
__m512i LanesOfShift32(int shift) {
  const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  return _mm512_add_epi32(lanes, _mm512_set1_epi32(16 - shift));
}
__m512i LanesOfShift64(int shift) {
  return _mm512_add_epi64(_mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0), _mm512_set1_epi64(8 - shift));
}

struct Int32 : Integers<int32_t> {
  static Register Set(int32_t value) { return _mm512_set1_epi32(value); }
  static Register Add(Register a, Register b) { return _mm512_add_epi32(a, b); }
  static Register Min(Register a, Register b) { return _mm512_min_epi32(a, b); }
  static Register Max(Register a, Register b) { return _mm512_max_epi32(a, b); }
  static void Shift(const ShiftedRow<int32_t>& row, int32_t* into) {
    const __m512i lanes = LanesOfShift32(row.shift);
    for (int c = 0; c < kTile * kLanes; c += kLanes) {
      // At shift 0 the lane numbers pass the end of `high` by none: 16..31.
      Store(into + c, _mm512_permutex2var_epi32(Load(row.low + c), lanes, Load(row.high + c)));
    }
  }
};

struct Int64 : Integers<int64_t> {
  static Register Set(int64_t value) { return _mm512_set1_epi64(value); }
  static Register Add(Register a, Register b) { return _mm512_add_epi64(a, b); }
  static Register Min(Register a, Register b) { return _mm512_min_epi64(a, b); }
  static Register Max(Register a, Register b) { return _mm512_max_epi64(a, b); }
  static void Shift(const ShiftedRow<int64_t>& row, int64_t* into) {
    const __m512i lanes = LanesOfShift64(row.shift);
    for (int c = 0; c < kTile * kLanes; c += kLanes)
      Store(into + c, _mm512_permutex2var_epi64(Load(row.low + c), lanes, Load(row.high + c)));
  }
};

struct Real {
  using Value = double;
  using Register = __m512d;
  static constexpr int kLanes = 8;
  static constexpr int kRows = 4;
  static constexpr int kColumns = 4;
  static Register Load(const double* from) { return _mm512_load_pd(from); }
  static Register LoadAny(const double* from) { return _mm512_loadu_pd(from); }
  static void Store(double* to, Register v) { _mm512_store_pd(to, v); }
  static void StoreAny(double* to, Register v) { _mm512_storeu_pd(to, v); }
  static Register Set(double value) { return _mm512_set1_pd(value); }
  static Register Add(Register a, Register b) { return _mm512_add_pd(a, b); }
  static Register Min(Register a, Register b) { return _mm512_min_pd(a, b); }
  static Register Max(Register a, Register b) { return _mm512_max_pd(a, b); }
  static void Shift(const ShiftedRow<double>& row, double* into) {
    const __m512i lanes = LanesOfShift64(row.shift);
    for (int c = 0; c < kTile * kLanes; c += kLanes)
      Store(into + c, _mm512_permutex2var_pd(Load(row.low + c), lanes, Load(row.high + c)));
  }
};

}  // namespace

const MinPlusKernels kAvx512Kernels = {"avx512", Loops<Int32>::Kernel(), Loops<Real>::Kernel(),
                                       Loops<Int64>::Kernel()};

}  // namespace stowage
