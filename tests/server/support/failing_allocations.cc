#include "tests/server/support/failing_allocations.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

namespace {

thread_local int until_failure = -1;

}  // namespace

// The others of the standard library call these.
void* operator new(size_t bytes) {
  const bool fails = until_failure >= 0 && until_failure-- == 0;
  void* const memory = fails ? nullptr : std::malloc(std::max<size_t>(bytes, 1));
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace stowage::testing {

int FailAllocationAfter(int allocations) { return std::exchange(until_failure, allocations); }

}  // namespace stowage::testing
