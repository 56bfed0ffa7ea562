// Deadlines that hold on any machine: where it was too slow for one, the test gets a longer one.
#ifndef STOWAGE_TESTS_SERVER_SUPPORT_GROWING_DEADLINE_H_
#define STOWAGE_TESTS_SERVER_SUPPORT_GROWING_DEADLINE_H_

#include <chrono>

namespace stowage {

// Calls `attempt` with a time from now, each twice as long as the one before, until it says that the
// machine did within that time what the test is about. False where 50 s are not enough.
template <class Attempt>
bool WithinSomeTime(std::chrono::milliseconds first, const Attempt& attempt) {
  for (std::chrono::milliseconds time = first; time < std::chrono::seconds(50); time *= 2) {
    if (attempt(time)) return true;
  }
  return false;
}

}  // namespace stowage

#endif  // STOWAGE_TESTS_SERVER_SUPPORT_GROWING_DEADLINE_H_
