#include "solvers/chain/internal/min_plus_dispatch.h"

#include <cstdlib>

#include "solvers/chain/internal/min_plus_kernel.h"
#include "solvers/chain/internal/min_plus_kernel_impl.h"

namespace stowage {
namespace {

// The loops for every machine: registers of 16 bytes as the compiler's vectors.
template <class T>
struct Vector16 {
  using Value = T;
  typedef T Register __attribute__((vector_size(16)));
  typedef T Unaligned __attribute__((vector_size(16), aligned(sizeof(T)), may_alias));
  static constexpr int kLanes = 16 / static_cast<int>(sizeof(T));
  static constexpr int kRows = 2;
  static constexpr int kColumns = 4;

  static Register Load(const T* from) { return LoadAny(from); }
  static Register LoadAny(const T* from) { return *reinterpret_cast<const Unaligned*>(from); }
  static void Store(T* to, Register value) { StoreAny(to, value); }
  static void StoreAny(T* to, Register value) { *reinterpret_cast<Unaligned*>(to) = value; }
  static Register Set(T value) { return Register{} + value; }
  static Register Add(Register a, Register b) { return a + b; }
  static Register Min(Register a, Register b) { return a < b ? a : b; }
  static Register Max(Register a, Register b) { return a > b ? a : b; }
  static void Shift(const ShiftedRow<T>& row, T* into) { ShiftByMemory<Vector16<T>>(row, into); }
};

}  // namespace

const MinPlusKernels kGenericKernels = {"generic", Loops<Vector16<int32_t>>::Kernel(),
                                        Loops<Vector16<double>>::Kernel(),
                                        Loops<Vector16<int64_t>>::Kernel()};

std::vector<const MinPlusKernels*> UsableKernels() {
  std::vector<const MinPlusKernels*> usable;
  usable.push_back(&kGenericKernels);
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) usable.push_back(&kAvx2Kernels);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    usable.push_back(&kAvx512Kernels);
  }
#endif
  return usable;
}

const MinPlusKernels* FindUsableKernels(const std::string& name) {
  for (const MinPlusKernels* kernels : UsableKernels()) {
    if (name == kernels->name) return kernels;
  }
  return nullptr;
}

const MinPlusKernels& BestKernels() {
  static const MinPlusKernels* const kChosen = [] {
    const char* const name = std::getenv("STOWAGE_SIMD");
    const MinPlusKernels* const named = name == nullptr ? nullptr : FindUsableKernels(name);
    return named != nullptr ? named : UsableKernels().back();
  }();
  return *kChosen;
}

}  // namespace stowage
