// A lower bound on the makespan within a budget where tensors may go to host memory and back.
//
// Let h be the most bytes that a schedule has on the host at once, between an offload's wait and the
// start of its prefetch. Keep on the device what it offloads and fetches again, and discard what it
// offloads for good: a schedule without transfers, within budget + h and no slower. And the h bytes
// all left before that moment and all return after it, one after the other in each direction. So for
// any x, a schedule with h <= x takes no less than any does without transfers within budget + x, and
// one with h > x no less than x bytes take to the host and back.
#ifndef STOWAGE_SOLVERS_PLAN_TRANSFER_LOWER_BOUND_H_
#define STOWAGE_SOLVERS_PLAN_TRANSFER_LOWER_BOUND_H_

#include "solvers/model/chain.h"
#include "solvers/model/transfer_model.h"
#include "solvers/model/units.h"

namespace stowage {

// No schedule that the referee accepts on the chain with a valid `transfers`, and whose peak is
// within the budget, is faster. At least the ideal time, at most the bound without transfers.
// O(L log L) times the bits of a size.
Nanos MakespanLowerBound(const Chain& chain, const TransferModel& transfers, Bytes budget);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLAN_TRANSFER_LOWER_BOUND_H_
