#include "solvers/chain/internal/min_plus_dispatch.h"

#include <cstdlib>

#include "solvers/chain/internal/min_plus_kernel.h"
#include "solvers/chain/internal/min_plus_kernel_impl.h"

namespace stowage {

const MinPlusKernels kGenericKernels = {"generic", Loops<Vectors<int32_t, 16, 2>>::Kernel(),
                                        Loops<Vectors<double, 16, 2>>::Kernel(),
                                        Loops<Vectors<int64_t, 16, 2>>::Kernel()};

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
