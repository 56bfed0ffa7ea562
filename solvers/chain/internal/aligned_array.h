// A large array, aligned for vectors, whose allocation can fail without an exception. Internal to
// solvers/chain.
#ifndef STOWAGE_SOLVERS_CHAIN_INTERNAL_ALIGNED_ARRAY_H_
#define STOWAGE_SOLVERS_CHAIN_INTERNAL_ALIGNED_ARRAY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace stowage {

struct AlignedDelete {
  size_t alignment = 1;
  void operator()(void* memory) const { ::operator delete(memory, std::align_val_t(alignment)); }
};

// Values are not initialised. T is a number.
template <class T>
using AlignedArray = std::unique_ptr<T[], AlignedDelete>;

// At the start of a cache line; where there are many bytes, in huge pages if the system has them:
// touching small ones for the first time takes as long as filling them several times.
size_t AlignmentFor(size_t bytes);

// `bytes` at their alignment, by operator new; nullptr where there is no memory.
void* AllocateAligned(size_t bytes);

template <class T>
AlignedArray<T> NewAlignedArray(int64_t count) {
  const size_t bytes = static_cast<size_t>(count) * sizeof(T);
  return AlignedArray<T>(static_cast<T*>(AllocateAligned(bytes)), {AlignmentFor(bytes)});
}

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_INTERNAL_ALIGNED_ARRAY_H_
