// The eager set: Greedy of Beaumont et al. 2020 (section 4). Internal to solvers/offload; the
// strategy is GreedyOffload in strategies.h.
#ifndef STOWAGE_SOLVERS_OFFLOAD_GREEDY_H_
#define STOWAGE_SOLVERS_OFFLOAD_GREEDY_H_

#include "solvers/offload/offload_problem.h"

namespace stowage {

// The first activations, as few as are needed: theirs is at least the excess over the memory, and
// every op fits. Activations without bytes are left out. The host's memory is not looked at. All of
// them where problem.memory() < problem.least_memory(). O(n).
OffloadSet EagerSet(const OffloadProblem& problem);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_OFFLOAD_GREEDY_H_
