// Replicas that are killed while they are asked: what they have acknowledged must hold.
#ifndef STOWAGE_TESTS_BENCH_LOAD_CRASH_LOAD_H_
#define STOWAGE_TESTS_BENCH_LOAD_CRASH_LOAD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
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
      30;  // at the end without faults, before what was acknowledged is looked at everywhere
  uint64_t seed = 1;
  // Breaks or mends what the replicas share; may be empty: they share nothing.
  std::function<absl::Status()> break_shared;
  // Has another server become the primary of what they share, as the one before dies; may be empty.
  std::function<absl::Status()> fail_over;
  // Has it be there again, at the end of the faults; may be empty.
  std::function<absl::Status()> mend_shared;
  // Has what they share be empty; may be empty itself.
  std::function<absl::Status()> empty_shared;
  // Has the Redis that decisions have of their own be away for a while, and there again; may be empty: they have none.
  std::function<void()> break_decisions;
  // Of libfaketime, for clocks that jump; empty: they do not.
  std::string faketime;
  // Kinds of faults (fault_tally.h) that have no function above, and why.
  std::map<std::string, std::string> cannot;
  std::set<std::string> left_out;       // kinds that are none of this load, and nobody misses
  std::set<std::string> allow_skipped;  // kinds of faults that need not come
};

// Planners, and an administrator who pins, unpins and deletes, ask all replicas, while one fault after the other comes, in
// rounds of all kinds, the first one to its end: a replica is killed (SIGKILL) and started again on its files, stopped for a
// second, or has a full disk (as root, who may mount one), what they share breaks or fails over, a clock jumps
// by minutes. The last replica is not killed after the first quarter of the time. Where decisions have a Redis of their own, in turn
// a server loses its disk and what they share is emptied, so that only that Redis has what that server has acknowledged; and twice that
// Redis is away.
//
// INTERNAL if a plan was wrong, a code was none of those that callers are told to expect, a replica undid or lost what it had
// acknowledged, or at the end any replica that shares it did or does not know of it (one whose disk was lost has 30 s to hear of
// what it had there); if, in a minute or longer, the memory
// of one is not flat (memory_trail.h); if a replica did not start again. FAILED_PRECONDITION if a kind of fault did not come, but for
// those of `allow_skipped`. Errors of the functions above. Prints faults, calls by code, decisions, and resident memory.
absl::Status RunCrashes(const CrashOptions& options);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_LOAD_CRASH_LOAD_H_
