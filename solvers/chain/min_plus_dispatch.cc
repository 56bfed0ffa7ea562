#include "solvers/chain/min_plus_dispatch.h"

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

const MinPlusKernels& BestKernels() {
  static const MinPlusKernels* const kBest = UsableKernels().back();
  return *kBest;
}

}  // namespace stowage
