// Periodic checkpointing: the chain is cut into segments, all but a tail keep only their input and
// are recomputed whole, the tail is kept whole from its first forward. Schedules, and their costs
// without building them. Internal to solvers/chain, but for SequentialSchedule.
//
// The accounting is the referee's (solvers/plan/simulate.h), bytes and ns; no errors.
#ifndef STOWAGE_SOLVERS_CHAIN_SEGMENTS_H_
#define STOWAGE_SOLVERS_CHAIN_SEGMENTS_H_

#include <vector>

#include "solvers/model/chain.h"
#include "solvers/plan/schedule.h"

namespace stowage {

// Last stages of the segments that are recomputed: rising, the first segment starts at stage 1, the
// tail behind the last one. Empty: store-all.
using SegmentEnds = std::vector<int>;

// What torch.utils.checkpoint.checkpoint_sequential does with k segments, 1 <= k <= L: the first
// k-1 are of floor(L/k) stages, the last one and the loss are the tail. O(k).
SegmentEnds SequentialSegments(const Chain& chain, int k);

// O(instructions). The ends must rise within 1..L.
Schedule SegmentedSchedule(const Chain& chain, const SegmentEnds& ends);
inline Schedule SequentialSchedule(const Chain& chain, int k) {
  return SegmentedSchedule(chain, SequentialSegments(chain, k));
}

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_SEGMENTS_H_
