// What both lower bounds of solvers/plan/lower_bound.h know of a moment. Internal to it.
#ifndef STOWAGE_SOLVERS_PLAN_BOUND_NEEDS_H_
#define STOWAGE_SOLVERS_PLAN_BOUND_NEEDS_H_

#include <cstdint>
#include <vector>

#include "solvers/model/chain.h"

namespace stowage {

// need_l for l in 1..L+1 (index 0 is not used), in bytes: the larger of what the forward that last
// saves stage l and its backward take, beside what is held of stages below l. O(L).
std::vector<int64_t> MomentNeeds(const Chain& chain);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLAN_BOUND_NEEDS_H_
