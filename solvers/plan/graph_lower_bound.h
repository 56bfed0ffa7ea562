// A lower bound on the makespan within a budget: no schedule that SimulateGraph accepts and whose
// peak is within the budget is faster, unless it puts ops on the communication stream, and then by no
// more than their time.
//
// Moments. While v runs backward, and while the forward runs that makes the extras which that
// backward uses (any forward of v if it has none), every ancestor of v has run forward before, and
// runs backward later. What a backward of an ancestor needs (tensors, extras) is held at the moment,
// or the op that makes it runs forward once more: the owner of the tensor's storage, or
// the vertex whose extras they are. Beside it, the moment needs what v itself takes: inputs, output,
// extras, overhead; and while v runs backward, the gradients of its inputs and its own.
//
// Along a path of the graph ancestors become more, and what the moments need later grows: nested
// constraints, solved in fractions of ops by bound_knapsack.h. Here along a longest path. A byte
// costs the op's forward time divided by all bytes it makes that some backward needs, because
// repeating the op brings all of it back.
#ifndef STOWAGE_SOLVERS_PLAN_GRAPH_LOWER_BOUND_H_
#define STOWAGE_SOLVERS_PLAN_GRAPH_LOWER_BOUND_H_

#include "solvers/model/graph.h"
#include "solvers/model/units.h"

namespace stowage {

// At least the ideal time; never rises with the budget. Where the budget is too small for any
// schedule it is still finite. O(V log V + E).
Nanos MakespanLowerBound(const Graph& graph, Bytes budget);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLAN_GRAPH_LOWER_BOUND_H_
