// A lower bound on the makespan within a budget where tensors may go to host memory and back.
//
// Let h be the most bytes that a schedule has on the host at once, between an offload's wait and the
// start of its prefetch. Keep on the device what it offloads and fetches again, and discard what it
// offloads for good: a schedule without transfers, within budget + h and no slower. And the h bytes
// all left before that moment and all return after it, one after the other in each direction. So for
// any x, a schedule with h <= x takes no less than any does without transfers within budget + x, and
// one with h > x no less than x bytes take to the host and back.
//
// On a graph as on a chain: nothing is made anew or written over while it is away, so that what is
// kept instead is there at the same versions, and in nobody's way.
#ifndef STOWAGE_SOLVERS_PLAN_TRANSFER_LOWER_BOUND_H_
#define STOWAGE_SOLVERS_PLAN_TRANSFER_LOWER_BOUND_H_

#include "solvers/model/chain.h"
#include "solvers/model/graph.h"
#include "solvers/model/transfer_model.h"
#include "solvers/model/units.h"

namespace stowage {

// No schedule that the referee accepts on the chain, or the graph, with a valid `transfers`, and whose
// peak is within the budget, is faster, or by no more than its time on the communication stream. At
// least the ideal time, at most the bound without transfers, and of the complexity of that one times
// the bits of a size.
Nanos MakespanLowerBound(const Chain& chain, const TransferModel& transfers, Bytes budget);
Nanos MakespanLowerBound(const Graph& graph, const TransferModel& transfers, Bytes budget);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLAN_TRANSFER_LOWER_BOUND_H_
