// A large array, aligned for vectors, whose allocation can fail without an exception. Internal to
// solvers/chain.
#ifndef STOWAGE_SOLVERS_CHAIN_ALIGNED_ARRAY_H_
#define STOWAGE_SOLVERS_CHAIN_ALIGNED_ARRAY_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace stowage {

struct FreeDelete {
  void operator()(void* memory) const { std::free(memory); }
};

// Values are not initialised. T is a number.
template <class T>
using AlignedArray = std::unique_ptr<T[], FreeDelete>;

// `bytes` at the start of a cache line; where there are many, in huge pages if the system has them:
// touching small ones for the first time takes as long as filling them several times. nullptr where
// there is no memory.
void* AllocateAligned(size_t bytes);

template <class T>
AlignedArray<T> NewAlignedArray(int64_t count) {
  return AlignedArray<T>(static_cast<T*>(AllocateAligned(static_cast<size_t>(count) * sizeof(T))));
}

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_ALIGNED_ARRAY_H_
