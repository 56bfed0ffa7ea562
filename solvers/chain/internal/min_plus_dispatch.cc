#include "solvers/chain/internal/min_plus_dispatch.h"

#include <cstdlib>

namespace stowage {

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
