// The loops of min_plus_kernel.h for the machine that runs. Internal to solvers/chain.
#ifndef STOWAGE_SOLVERS_CHAIN_INTERNAL_MIN_PLUS_DISPATCH_H_
#define STOWAGE_SOLVERS_CHAIN_INTERNAL_MIN_PLUS_DISPATCH_H_

#include <string>
#include <vector>

#include "solvers/chain/internal/min_plus_kernel.h"

namespace stowage {

// All that this machine can run, the best last.
std::vector<const MinPlusKernels*> UsableKernels();

// Of these the one with this name; null where there is none.
const MinPlusKernels* FindUsableKernels(const std::string& name);

// What solvers use, chosen once: the best, or the one that the environment variable STOWAGE_SIMD names ("generic",
// "avx2", "avx512"), for tests and benchmarks of what other processors run. A name that this machine cannot run
// chooses the best. Equal results whichever it is. Thread-safe.
const MinPlusKernels& BestKernels();

template <class T>
const MinPlusKernel<T>& KernelFor(const MinPlusKernels& kernels);
template <>
inline const MinPlusKernel<int32_t>& KernelFor(const MinPlusKernels& kernels) {
  return kernels.narrow;
}
template <>
inline const MinPlusKernel<double>& KernelFor(const MinPlusKernels& kernels) {
  return kernels.real;
}
template <>
inline const MinPlusKernel<int64_t>& KernelFor(const MinPlusKernels& kernels) {
  return kernels.wide;
}

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_INTERNAL_MIN_PLUS_DISPATCH_H_
