// The strategies of offloading. Each lives as long as the process; see offload_strategy.h for the
// interface.
#ifndef STOWAGE_SOLVERS_OFFLOAD_STRATEGIES_H_
#define STOWAGE_SOLVERS_OFFLOAD_STRATEGIES_H_

#include <vector>

#include "solvers/offload/offload_strategy.h"

namespace stowage {

// Beaumont et al. 2020, section 4: the first activations, as few as needed; optimal up to the last
// one's rounding if activations could be split. O(n log n).
const OffloadStrategy& GreedyOffload();

// Beaumont et al. 2020, section 5: of the sets that are optimal when copies can be interrupted, the
// one with the fastest replay.
//   slots = 0: exact where a few thousand states per op hold all; else two slots for each
//              activation, and at least 500.
//   slots > 0: in that many slots.
// With slots Greedy's set is tried, too. What can fit at all is found, by Greedy's set if need be,
// unless the host's memory is too small for that one, too. However long the chain, fewer than 2^32
// comparisons of states (relaxed_optimum.h), and the replays of 65 sets.
const OffloadStrategy& DynProgOffload();

// vDNN (Rhu et al. 2016; Shriram et al. 2019) as Beaumont et al. 2020 read it: all activations
// whose ratio of forward time to size reaches a threshold, or every other one of these; the best of
// all thresholds, of 512 where there are more.
const OffloadStrategy& VdnnOffload();

// TFLMS (Le et al. 2018): the first activations, prefetched when the backward so many ops ahead
// starts; ops never wait for memory. The best of all numbers and distances that fit; of 64 of each
// where there are more.
const OffloadStrategy& TflmsOffload();

// AutoSwap (Zhang et al. 2019): activations by a weighted sum of four priority scores, until they
// fit; the best of weights from a seeded search.
const OffloadStrategy& AutoSwapOffload();

// All of the above.
const std::vector<const OffloadStrategy*>& AllOffloadStrategies();

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_OFFLOAD_STRATEGIES_H_
