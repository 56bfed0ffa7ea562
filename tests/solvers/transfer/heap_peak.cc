#include "tests/solvers/transfer/heap_peak.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<int64_t> in_use{0};
std::atomic<int64_t> most{0};

void* Count(void* memory) {
  if (memory == nullptr) return nullptr;
  const auto bytes = static_cast<int64_t>(malloc_usable_size(memory));
  const int64_t now = in_use.fetch_add(bytes) + bytes;
  int64_t before = most.load();
  while (now > before && !most.compare_exchange_weak(before, now)) {
  }
  return memory;
}

void Release(void* memory) {
  if (memory == nullptr) return;
  in_use.fetch_sub(static_cast<int64_t>(malloc_usable_size(memory)));
  std::free(memory);
}

void* Aligned(size_t bytes, std::align_val_t alignment) {
  void* memory = nullptr;
  // Unlike aligned_alloc, takes any number of bytes.
  if (posix_memalign(&memory, static_cast<size_t>(alignment), bytes) != 0) return nullptr;
  return Count(memory);
}

}  // namespace

// The others of the standard library call these.
void* operator new(size_t bytes) {
  void* const memory = Count(std::malloc(std::max<size_t>(bytes, 1)));
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  void* const memory = Aligned(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return Aligned(bytes, alignment);
}
void operator delete(void* memory) noexcept { Release(memory); }
void operator delete(void* memory, size_t) noexcept { Release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { Release(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { Release(memory); }

namespace stowage::testing {

HeapPeak::HeapPeak() : before_(in_use.load()) { most.store(before_); }

int64_t HeapPeak::bytes() const { return most.load() - before_; }

}  // namespace stowage::testing
