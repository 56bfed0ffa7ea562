// Waits for offloads as early as that makes a schedule no slower.
//
// Where the link is what takes the time, compute runs ahead of it until memory is full, and then waits for
// each copy. Here it waits before: for the next copy where there is nothing to be had from being ahead. Memory is
// then less full while tensors leave, as it is with WithLatePrefetches while they come back.
#ifndef STOWAGE_SOLVERS_OFFLOAD_EARLY_WAITS_H_
#define STOWAGE_SOLVERS_OFFLOAD_EARLY_WAITS_H_

#include <cstddef>
#include <vector>

#include "solvers/plan/schedule.h"
#include "solvers/plan/simulate.h"

namespace stowage {

// `schedule`, of a chain or a graph, with the same instructions, waits for offloads earlier.
// `timeline` is the referee's; `earliest` says for each instruction that is such a wait before which the
// wait may come: after the last that reads its tensor before it has left. Compute keeps of the time to
// spare `margin` times what a copy takes, for links that are slower than they were said to be. Memory is at no
// time more than before; the referee says whether the makespan is. O(instructions log instructions).
Schedule WithEarlyWaits(const Schedule& schedule, const std::vector<TimelinePoint>& timeline,
                        const std::vector<size_t>& earliest, double margin);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_OFFLOAD_EARLY_WAITS_H_
