// An allocation of this thread that fails, so that a test can have memory run out anywhere.
#ifndef STOWAGE_TESTS_SERVER_SUPPORT_FAILING_ALLOCATIONS_H_
#define STOWAGE_TESTS_SERVER_SUPPORT_FAILING_ALLOCATIONS_H_

#include <new>

namespace stowage::testing {

// Allocations of this thread before the one that fails; negative: none does. Returns how many there were to be before that still,
// as the call before has set it: negative where it has failed.
int FailAllocationAfter(int allocations);

// Whether it ran out of memory: its allocation after that many does not succeed.
template <class Function>
bool RunsOut(int after, const Function& function) {
  FailAllocationAfter(after);
  bool ran_out = false;
  try {
    function();
  } catch (const std::bad_alloc&) {
    ran_out = true;
  }
  FailAllocationAfter(-1);
  return ran_out;
}

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SERVER_SUPPORT_FAILING_ALLOCATIONS_H_
