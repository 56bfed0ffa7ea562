// How much slower a cached plan is than a bare echo of the same sizes, paired in one run.
#ifndef STOWAGE_TESTS_BENCH_LOAD_HIT_LOAD_H_
#define STOWAGE_TESTS_BENCH_LOAD_HIT_LOAD_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace stowage {

struct HitOptions {
  std::string binary;                 // of this program, for the echo
  std::vector<std::string> stowaged;  // command of the service, which listens on a free port
  int stages = 50;
  int keys = 1;  // asked for in turn: more than a tier holds are answered by the next one
  int rounds = 20;
  int calls_per_round = 500;
  double seconds_per_burst = 1.0;
};

// Prints sizes, p50 and p99 of calls one after the other, calls per second with 16 in flight, and
// the ratios: medians over rounds that alternate between the two.
absl::Status RunHits(const HitOptions& options);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_LOAD_HIT_LOAD_H_
