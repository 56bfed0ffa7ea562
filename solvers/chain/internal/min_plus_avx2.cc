// The loops of min_plus_kernel.h for AVX2.
#include <immintrin.h>
#include <stdint.h>

#include "solvers/chain/internal/min_plus_kernel.h"
#include "solvers/chain/internal/min_plus_kernel_impl.h"

namespace stowage {
namespace {

template <class T>
struct Integers {
  using Value = T;
  using Register = __m256i;
  static constexpr int kLanes = 32 / static_cast<int>(sizeof(T));
  static constexpr int kRows = 2;
  static constexpr int kColumns = 4;
  static Register Load(const T* from) {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(from));
  }
  static Register LoadAny(const T* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  static void Store(T* to, Register v) { _mm256_store_si256(reinterpret_cast<__m256i*>(to), v); }
  static void StoreAny(T* to, Register v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v);
  }
};

struct Int32 : Integers<int32_t> {
  static Register Set(int32_t value) { return _mm256_set1_epi32(value); }
  static Register Add(Register a, Register b) { return _mm256_add_epi32(a, b); }
  static Register Min(Register a, Register b) { return _mm256_min_epi32(a, b); }
  static Register Max(Register a, Register b) { return _mm256_max_epi32(a, b); }
  static void Shift(const ShiftedRow<int32_t>& row, int32_t* into) {
    ShiftByMemory<Int32>(row, into);
  }
};

struct Int64 : Integers<int64_t> {
  static Register Set(int64_t value) { return _mm256_set1_epi64x(value); }
  static Register Add(Register a, Register b) { return _mm256_add_epi64(a, b); }
  static Register Min(Register a, Register b) {
    return _mm256_blendv_epi8(a, b, _mm256_cmpgt_epi64(a, b));
  }
  static Register Max(Register a, Register b) {
    return _mm256_blendv_epi8(b, a, _mm256_cmpgt_epi64(a, b));
  }
  static void Shift(const ShiftedRow<int64_t>& row, int64_t* into) {
    ShiftByMemory<Int64>(row, into);
  }
};

struct Real {
  using Value = double;
  using Register = __m256d;
  static constexpr int kLanes = 4;
  static constexpr int kRows = 2;
  static constexpr int kColumns = 4;
  static Register Load(const double* from) { return _mm256_load_pd(from); }
  static Register LoadAny(const double* from) { return _mm256_loadu_pd(from); }
  static void Store(double* to, Register v) { _mm256_store_pd(to, v); }
  static void StoreAny(double* to, Register v) { _mm256_storeu_pd(to, v); }
  static Register Set(double value) { return _mm256_set1_pd(value); }
  static Register Add(Register a, Register b) { return _mm256_add_pd(a, b); }
  static Register Min(Register a, Register b) { return _mm256_min_pd(a, b); }
  static Register Max(Register a, Register b) { return _mm256_max_pd(a, b); }
  static void Shift(const ShiftedRow<double>& row, double* into) { ShiftByMemory<Real>(row, into); }
};

}  // namespace

const MinPlusKernels kAvx2Kernels = {"avx2", Loops<Int32>::Kernel(), Loops<Real>::Kernel(),
                                     Loops<Int64>::Kernel()};

}  // namespace stowage
