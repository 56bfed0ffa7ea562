// Starts copies from the host as late as they may without making a schedule slower.
//
// The replays that choose times start each copy as early as there is room for it. Where the link has time
// to spare, memory is then full of tensors that have come back long before they are read, and blocks that
// come and go find no places in one region of memory (solvers/placement) but with much of it stranded.
#ifndef STOWAGE_SOLVERS_OFFLOAD_LATE_PREFETCHES_H_
#define STOWAGE_SOLVERS_OFFLOAD_LATE_PREFETCHES_H_

#include <vector>

#include "solvers/plan/schedule.h"
#include "solvers/plan/simulate.h"

namespace stowage {

// `schedule`, of a chain or a graph, with the same instructions, those that start prefetches later.
// `timeline` is the referee's; `full_duplex` says whether prefetches have a channel to themselves. Each
// prefetch keeps of the time to spare `margin` times what it takes, for links that are slower than they
// were said to be. Memory is at no time more than before, and the makespan is the same but where copies
// on one channel meet: the referee says. O(instructions log instructions).
Schedule WithLatePrefetches(const Schedule& schedule, const std::vector<TimelinePoint>& timeline,
                            bool full_duplex, double margin);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_OFFLOAD_LATE_PREFETCHES_H_
