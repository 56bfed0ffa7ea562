// A second referee, written from the accounting table alone and as plainly as possible: named
// tensors in a map, memory summed anew at every moment. Slow on purpose.
#ifndef STOWAGE_TESTS_SOLVERS_NAIVE_REPLAY_H_
#define STOWAGE_TESTS_SOLVERS_NAIVE_REPLAY_H_

#include <cstdint>

#include "solvers/model/chain.h"
#include "solvers/plan/schedule.h"

namespace stowage::testing {

struct NaiveResult {
  bool valid = false;
  int64_t makespan = 0;
  int64_t peak = 0;
  int64_t recompute_time = 0;
  int recomputed_forwards = 0;
};

NaiveResult NaiveReplay(const Chain& chain, const Schedule& schedule);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_NAIVE_REPLAY_H_
