// Lower bounds on the makespan within a budget: no schedule that the evaluator accepts on the instance, of whatever
// class, and whose peak is within the budget is faster. Schedules are those that put nothing on the communication
// stream: one that does is faster by no more than its time there. algorithms.md has the derivations. An
// instance that remembers (Instance::Remembering) computes each once for a link and budget.
#ifndef STOWAGE_SOLVERS_SCHEDULE_LOWER_BOUND_H_
#define STOWAGE_SOLVERS_SCHEDULE_LOWER_BOUND_H_

#include "solvers/model/units.h"
#include "solvers/schedule/instance.h"

namespace stowage {

// At least the ideal time; never rises with the budget. Where the budget is too small for any schedule it is still
// finite. Chains: O(L log L), microseconds. Graphs: O(V log V + E); of compute DAGs it is the ideal time. With a link, which must be valid, at most the
// bound without it, and as long as that one takes times the bits of a size.
Nanos MakespanLowerBound(const Instance& instance, Bytes budget);

// At least MakespanLowerBound, of graphs and with a link never rising with the budget either.
//   - Of a chain without a link it is exact about stages being whole; where it proves that no schedule fits, it is the
//     ideal time and twice all forwards that may be repeated. The work is limited to some 20 milliseconds beside
//     MakespanLowerBound: where that does not do (from some 300 stages on, or where budgets are small), it is what is
//     proven by then. At half of store-all 50 stages take 0.5 ms.
//   - Of a graph or compute DAG it knows what a repeat needs to run again itself; with a link, of chains and graphs, that what is on the
//     host at a time step left before and returns after it (internal/recompute_curve.h). It is made for all budgets at
//     once: the first bound of an instance that remembers takes some milliseconds for 1,000 vertices, others next to
//     nothing.
Nanos StrongestMakespanLowerBound(const Instance& instance, Bytes budget);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_SCHEDULE_LOWER_BOUND_H_
