// From an order of forwards and backwards to a schedule: where everything is dropped.
#ifndef STOWAGE_SOLVERS_PLAN_GRAPH_LIVENESS_H_
#define STOWAGE_SOLVERS_PLAN_GRAPH_LIVENESS_H_

#include "solvers/model/graph.h"
#include "solvers/plan/schedule.h"

namespace stowage {

// `compute` is the order of forwards and backwards, a forward that keeps all wherever a backward
// shall use the extras that it makes; discards in it do not count, and all of it runs on the compute
// stream. The result
// - drops every tensor right after its last use before it is made again, hence never holds one that
//   is made anew;
// - leaves out repeated forwards none of whose results is used before it is made again, and of
//   views, which are there with their storage; first runs stay;
// - runs a forward whose extras are not used in the way that takes less memory: keeping nothing but
//   the output, or keeping all and dropping the extras at once.
// It is a schedule that SimulateGraph accepts whenever some placement of discards makes one of the
// order, takes no longer, and has no higher peak than any of them. One reverse sweep, O(V + E + the
// inputs of all instructions).
Schedule WithDiscards(const Graph& graph, const Schedule& compute);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLAN_GRAPH_LIVENESS_H_
