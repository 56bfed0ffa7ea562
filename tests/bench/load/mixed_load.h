// A day of a cluster in minutes: hits, misses, reports, cancels and bad input, with faults.
#ifndef STOWAGE_TESTS_BENCH_LOAD_MIXED_LOAD_H_
#define STOWAGE_TESTS_BENCH_LOAD_MIXED_LOAD_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace stowage {

struct MixedOptions {
  std::vector<std::string> stowaged;
  double seconds = 600;
  // Plans asked for before the load begins. What leaks shows only if the cache is full by then.
  int filling = 0;
  int in_flight = 16;
  uint64_t seed = 1;
  // Called now and then to break and mend what the service uses; may be empty.
  std::function<void(double second)> fault;
};

// Prints calls by kind and code, wrong answers, answers later than their deadline + 100 ms, and
// memory after a tenth of the time and at the end. INTERNAL if an answer was wrong or late, or
// memory grew by more than 5% in a minute or longer.
absl::Status RunMixed(const MixedOptions& options);

// Load, then SIGTERM in the middle of it. INTERNAL unless every call that was accepted is answered
// with a plan or the word that the server drains, and the process ends by itself.
absl::Status RunDrain(const std::vector<std::string>& stowaged);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_LOAD_MIXED_LOAD_H_
