// A large array, aligned for vectors, whose allocation can fail without an exception. Internal to
// solvers/chain.
#ifndef STOWAGE_SOLVERS_CHAIN_INTERNAL_ALIGNED_ARRAY_H_
#define STOWAGE_SOLVERS_CHAIN_INTERNAL_ALIGNED_ARRAY_H_

#if defined(__linux__)
#include <sys/mman.h>
#endif

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
inline size_t AlignmentFor(size_t bytes) {
  constexpr size_t kCacheLine = 64, kHugePage = size_t{1} << 21;
  return bytes >= kHugePage ? kHugePage : kCacheLine;
}

// `bytes` at their alignment, by operator new; nullptr where there is no memory.
inline void* AllocateAligned(size_t bytes) {
  const size_t alignment = AlignmentFor(bytes);
  const size_t whole = (bytes / 64 + 1) * 64;
  if (whole < bytes) return nullptr;
  void* memory = ::operator new(whole, std::align_val_t(alignment), std::nothrow);
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  // Advice: where it is not taken, all is well too.
  if (memory != nullptr && alignment > 64) madvise(memory, whole, MADV_HUGEPAGE);
#endif
  return memory;
}

template <class T>
AlignedArray<T> NewAlignedArray(int64_t count) {
  const size_t bytes = static_cast<size_t>(count) * sizeof(T);
  return AlignedArray<T>(static_cast<T*>(AllocateAligned(bytes)), {AlignmentFor(bytes)});
}

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_INTERNAL_ALIGNED_ARRAY_H_
