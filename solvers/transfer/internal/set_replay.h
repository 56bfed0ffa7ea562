#ifndef STOWAGE_SOLVERS_TRANSFER_INTERNAL_SET_REPLAY_H_
#define STOWAGE_SOLVERS_TRANSFER_INTERNAL_SET_REPLAY_H_

#include <optional>

#include "solvers/transfer/offload_problem.h"

namespace stowage {

// The fastest schedule of an ordered set of activations to offload (Beaumont et al. 2020, Proposition 1), with whole
// copies (algorithms.md).
//
// Nothing if problem.Admits(set) does not hold. `set` is ascending, in 0..n-1. O(n log n).
std::optional<OffloadTimeline> ReplaySet(const OffloadProblem& problem, const OffloadSet& set);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_TRANSFER_INTERNAL_SET_REPLAY_H_
