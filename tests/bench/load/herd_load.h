// Many callers of one plan that nobody has: how many solves, and when everybody has an answer.
#ifndef STOWAGE_TESTS_BENCH_LOAD_HERD_LOAD_H_
#define STOWAGE_TESTS_BENCH_LOAD_HERD_LOAD_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace stowage {

struct HerdOptions {
  // One command per replica; the callers take them in turn.
  std::vector<std::vector<std::string>> stowaged;
  int callers = 1000;
  int connections = 8;  // to each replica
  int stages = 50;
};

// Prints answers by code and source, the solves that all replicas counted, the solve's time, p50,
// p99 and the last answer. INTERNAL unless all were answered by one solve.
absl::Status RunHerd(const HerdOptions& options);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_LOAD_HERD_LOAD_H_
