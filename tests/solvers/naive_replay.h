// A second evaluator, written from the accounting tables alone and as plainly as possible
// (naive_world.h). Slow on purpose.
#ifndef STOWAGE_TESTS_SOLVERS_NAIVE_REPLAY_H_
#define STOWAGE_TESTS_SOLVERS_NAIVE_REPLAY_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "solvers/model/chain.h"
#include "solvers/model/transfer_model.h"
#include "solvers/schedule/schedule.h"

namespace stowage::testing {

struct NaiveResult {
  bool valid = false;
  int64_t makespan = 0;
  int64_t peak = 0;
  int64_t recompute_time = 0;
  int recomputed_forwards = 0;
  int64_t idle_time = 0;
  int64_t host_peak = 0;
  int64_t offloaded = 0;
  int64_t prefetched = 0;
  int64_t communication_time = 0;
  // Start and end of every instruction; of a copy's start, those of the copy; of a communication,
  // those on its stream.
  std::vector<std::pair<int64_t, int64_t>> spans;
};

// `transfers` null: no transfer is valid. Sums and copies must stay far from 64 bits.
NaiveResult NaiveReplay(const Chain& chain, const Schedule& schedule,
                        const TransferModel* transfers = nullptr);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_NAIVE_REPLAY_H_
