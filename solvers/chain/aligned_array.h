// A large array, aligned for vectors, whose allocation can fail without an exception. Internal to
// solvers/chain.
#ifndef STOWAGE_SOLVERS_CHAIN_ALIGNED_ARRAY_H_
#define STOWAGE_SOLVERS_CHAIN_ALIGNED_ARRAY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace stowage {

struct AlignedDelete {
  static constexpr std::align_val_t kAlignment{64};
  void operator()(void* memory) const { ::operator delete(memory, kAlignment); }
};

// Values are not initialised. T is a number.
template <class T>
using AlignedArray = std::unique_ptr<T[], AlignedDelete>;

// nullptr where there is no memory.
template <class T>
AlignedArray<T> NewAlignedArray(int64_t count) {
  const size_t bytes = static_cast<size_t>(count) * sizeof(T);
  return AlignedArray<T>(
      static_cast<T*>(::operator new(bytes, AlignedDelete::kAlignment, std::nothrow)));
}

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_ALIGNED_ARRAY_H_
