// The fastest schedule of an ordered set of activations to offload (Beaumont et al. 2020,
// Proposition 1), with whole copies.
//
// The forward half runs without waiting for anything but memory and the link. The backward half is
// the same loop in reversed time: so each prefetch is as late as possible. (As early as possible
// would be wrong: it takes the memory that a backward before it needs.) Both are put together with
// the least idle time between them at which the first prefetch starts after the last offload and
// memory suffices at every instant. Since all offloads precede all prefetches, that is enough on
// half and full duplex alike, and every condition is a lower bound on the idle time: the greatest
// of them is it, with no search among candidates.
#ifndef STOWAGE_SOLVERS_OFFLOAD_SET_REPLAY_H_
#define STOWAGE_SOLVERS_OFFLOAD_SET_REPLAY_H_

#include <optional>

#include "solvers/offload/offload_problem.h"

namespace stowage {

// Nothing if problem.Admits(set) does not hold. `set` is ascending, in 0..n-1. O(n log n).
std::optional<OffloadTimeline> ReplaySet(const OffloadProblem& problem, const OffloadSet& set);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_OFFLOAD_SET_REPLAY_H_
