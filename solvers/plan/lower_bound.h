// Lower bounds on the makespan within a budget: no schedule that the referee accepts on the chain,
// of whatever class, and whose peak is within the budget is faster. Schedules are those that put
// nothing on the communication stream: one that does is faster by no more than its time there.
//
// Moments. The forward that last saves stage l, and the backward of stage l, need need_l beside
// what is held of stages below l: a^0 (nothing brings it back, and backward 1 needs it), saved_l, a
// gradient, an overhead. Every stage i < l has run forward before, and its backward comes after.
//
// Kept stages. A stage i whose saved tensors, made by its first forward, are held until its
// backward costs saved_i at every moment of l > i. Every other stage runs forward twice at least.
// MakespanLowerBound is the ideal time and the least time of repeated forwards such that
//     need_l + sum of saved_i over kept i < l <= budget          for every l,
// with fractions of stages allowed. The constraints are nested: prefix by prefix, what is lacking
// is taken from the stages that cost least per byte.
//
// Stages that run exactly twice. Let i and i+1 both do, neither kept. The second forwards save, and
// what they save stays until the backward.
// - i's second forward comes first. Then i and i+1 are in one segment: at the moments of every l of
//   a segment, all stages of the segment below l are held.
// - i+1's comes first. Then what it starts from was made by i's first forward and held since; with
//   what it saves, min(a^i, saved_{i+1}) is held from there until backward i+1.
// StrongMakespanLowerBound takes the stages from 1 to L+1: kept, run twice in a segment, or run
// more often, which is taken to need no memory; and at each moment the input, a^{l-1}, unless it is
// among what is counted already. States are (memory, time, memory in the segment); those of nearly
// equal memory are merged into one that is no worse than any of them. The prices of memory at the
// optimum of MakespanLowerBound (its dual) say what a state has to repeat at least; those that
// cannot end within a limit are left out, and a limit within which nothing ends is a bound.
#ifndef STOWAGE_SOLVERS_PLAN_LOWER_BOUND_H_
#define STOWAGE_SOLVERS_PLAN_LOWER_BOUND_H_

#include "solvers/model/chain.h"
#include "solvers/model/units.h"

namespace stowage {

// At least the ideal time; never rises with the budget. Where the budget is too small for any
// schedule it is still finite. O(L log L): microseconds.
Nanos MakespanLowerBound(const Chain& chain, Bytes budget);

// At least MakespanLowerBound, and exact about stages being whole. Where it proves that no schedule
// fits: the ideal time and twice all forwards that may be repeated. The work is limited, to some 20
// milliseconds beside MakespanLowerBound: where that does not do (from some 300 stages on, or where
// budgets are small), it is what is proven by then. At half of store-all 50 stages take 0.5 ms.
Nanos StrongMakespanLowerBound(const Chain& chain, Bytes budget);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLAN_LOWER_BOUND_H_
