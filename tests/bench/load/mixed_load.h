// A day of a cluster in minutes: hits, misses, reports, cancels and bad input, with faults.
#ifndef STOWAGE_TESTS_BENCH_LOAD_MIXED_LOAD_H_
#define STOWAGE_TESTS_BENCH_LOAD_MIXED_LOAD_H_

#include <cstdint>
#include <functional>
#include <set>
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
  // Who acts beside it every other `turn_seconds`. With any, the service asks for tokens, and one call
  // in ten is a lookup that memory does not answer.
  std::set<std::string> adversaries;
  double turn_seconds = 5;
  bool far_only = false;              // nothing but such lookups
  std::function<void()> empty_store;  // for adversaries
};

// Prints calls by kind and code, wrong answers, answers later than their deadline + 100 ms, and
// memory after a tenth of the time and at the end; with adversaries, too, how long calls of each kind
// took with and without them. INTERNAL if an answer was wrong or late, or, in a minute or longer,
// memory grew by more than 5% (without adversaries) or the 99th of a hundred calls took more than
// twice as long beside adversaries.
absl::Status RunMixed(const MixedOptions& options);

// Load, then SIGTERM in the middle of it. INTERNAL unless every call that was accepted is answered
// with a plan or the word that the server drains, and the process ends by itself.
absl::Status RunDrain(const std::vector<std::string>& stowaged);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_LOAD_MIXED_LOAD_H_
