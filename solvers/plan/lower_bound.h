// A lower bound on the makespan within a budget: no schedule that the referee accepts on the chain,
// of whatever class, and whose peak is within the budget is faster.
//
// Why it holds. Before the backward of stage l every stage i < l has run forward. A stage that runs
// forward only once must have saved its tensors then, and holds them from there until its own
// backward: at every forward and at the backward of every stage l > i, beside what these need
// themselves. So with y_i = 1 for the stages that run twice or more
//     need_l + sum_{i<l} saved_i (1 - y_i) <= budget          for every l,
// where need_l is a^0 (nothing brings it back, and backward 1 needs it) and the larger of what the
// forward that saves l and the backward of l take. The bound is the ideal time and the least
// sum u_f,i y_i of the linear relaxation. Its constraints are nested: prefix by prefix, what is
// lacking is taken from the stages that cost least per byte.
#ifndef STOWAGE_SOLVERS_PLAN_LOWER_BOUND_H_
#define STOWAGE_SOLVERS_PLAN_LOWER_BOUND_H_

#include "solvers/model/chain.h"
#include "solvers/model/units.h"

namespace stowage {

// At least the ideal time; never rises with the budget. Where the budget is too small for any
// schedule it is still finite. O(L log L).
Nanos MakespanLowerBound(const Chain& chain, Bytes budget);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLAN_LOWER_BOUND_H_
