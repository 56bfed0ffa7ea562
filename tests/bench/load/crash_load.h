// Replicas that are killed while they are asked: what they have acknowledged must hold.
#ifndef STOWAGE_TESTS_BENCH_LOAD_CRASH_LOAD_H_
#define STOWAGE_TESTS_BENCH_LOAD_CRASH_LOAD_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace stowage {

struct CrashOptions {
  // Without --listen, --store and --token_file: each replica has its own.
  std::vector<std::string> stowaged;
  int replicas = 2;
  double seconds = 60;
  double pause_seconds = 3;  // between faults
  double calm_seconds =
      15;  // at the end without faults, before what was acknowledged is looked at everywhere
  uint64_t seed = 1;
  // Breaks or mends what the replicas share; may be empty.
  std::function<void()> break_shared;
  // Has it be there again, at the end of the faults; may be empty.
  std::function<void()> mend_shared;
  // Of libfaketime, for clocks that jump; empty: they do not.
  std::string faketime;
};

// Planners, and an administrator who pins, unpins and deletes, ask all replicas, while one fault after the other comes: a
// replica is killed (SIGKILL) and started again on its files, stopped for a second, or has no room on its disk (as root,
// who may mount one), what they share breaks, a clock jumps by minutes.
//
// INTERNAL if a plan was wrong, a code was none of those that callers are told to expect, a replica undid what it had
// acknowledged, or at the end any replica that shares it did; if a replica did not start again, or none was killed. Prints faults, calls by
// code, decisions, and resident memory.
absl::Status RunCrashes(const CrashOptions& options);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_LOAD_CRASH_LOAD_H_
