#include "solvers/chain/internal/aligned_array.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace stowage {
namespace {

constexpr size_t kCacheLine = 64;
constexpr size_t kHugePage = size_t{1} << 21;

}  // namespace

size_t AlignmentFor(size_t bytes) { return bytes >= kHugePage ? kHugePage : kCacheLine; }

void* AllocateAligned(size_t bytes) {
  const size_t alignment = AlignmentFor(bytes);
  const size_t whole = (bytes / kCacheLine + 1) * kCacheLine;
  if (whole < bytes) return nullptr;
  void* memory = ::operator new(whole, std::align_val_t(alignment), std::nothrow);
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  // Advice: where it is not taken, all is well too.
  if (memory != nullptr && alignment == kHugePage) madvise(memory, whole, MADV_HUGEPAGE);
#endif
  return memory;
}

}  // namespace stowage
