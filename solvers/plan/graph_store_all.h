// The schedule of plain training on a graph: every forward keeps all, then every backward.
#ifndef STOWAGE_SOLVERS_PLAN_GRAPH_STORE_ALL_H_
#define STOWAGE_SOLVERS_PLAN_GRAPH_STORE_ALL_H_

#include "solvers/model/graph.h"
#include "solvers/plan/schedule.h"

namespace stowage {

// Forwards in program order, backwards in reverse, everything dropped after its last use. The
// referee refuses it only where a backward needs what has been written over in place, which
// training frameworks refuse too. O(V + E).
Schedule StoreAllSchedule(const Graph& graph);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLAN_GRAPH_STORE_ALL_H_
