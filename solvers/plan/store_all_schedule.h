// The schedule of plain training: every forward keeps all, then every backward. Here, beside the
// referee, because budgets and bounds are stated relative to it.
#ifndef STOWAGE_SOLVERS_PLAN_STORE_ALL_SCHEDULE_H_
#define STOWAGE_SOLVERS_PLAN_STORE_ALL_SCHEDULE_H_

#include "solvers/model/chain.h"
#include "solvers/model/graph.h"
#include "solvers/plan/schedule.h"

namespace stowage {

Schedule StoreAllSchedule(const Chain& chain);

// The schedule of plain training on a graph: every forward keeps all, then every backward.

// Forwards in program order, backwards in reverse, everything dropped after its last use. The
// referee refuses it only where a backward needs what has been written over in place, which
// training frameworks refuse too. O(V + E).
Schedule StoreAllSchedule(const Graph& graph);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLAN_STORE_ALL_SCHEDULE_H_
