#include "solvers/chain/aligned_array.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace stowage {
namespace {

constexpr size_t kCacheLine = 64;
constexpr size_t kHugePage = size_t{1} << 21;

}  // namespace

void* AllocateAligned(size_t bytes) {
  const size_t alignment = bytes >= kHugePage ? kHugePage : kCacheLine;
  const size_t whole = (bytes / alignment + 1) * alignment;
  if (whole < bytes) return nullptr;
  void* memory = std::aligned_alloc(alignment, whole);
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  // Advice: where it is not taken, all is well too.
  if (memory != nullptr && alignment == kHugePage) madvise(memory, whole, MADV_HUGEPAGE);
#endif
  return memory;
}

}  // namespace stowage
