// From a schedule of the chain that Linearize makes of a graph to a schedule of the graph itself.
#ifndef STOWAGE_SOLVERS_GRAPH_EXPAND_H_
#define STOWAGE_SOLVERS_GRAPH_EXPAND_H_

#include "solvers/graph/linearize.h"
#include "solvers/model/graph.h"
#include "solvers/plan/schedule.h"

namespace stowage {

// Runs the vertices of a stage, forwards in program order and backwards in reverse, wherever the
// chain's schedule runs the stage; those of a^0 once at the start and at the end. What is dropped
// where is decided anew, by WithDiscards. If Simulate accepts `schedule` on linearized.chain, and
// SimulateGraph accepts StoreAllSchedule of the graph, then it accepts the result, which takes no
// longer (the times of a^0 apart) and has no higher peak. `linearized` must be of `graph`. O(V + E +
// the inputs of all that runs).
Schedule ExpandSchedule(const Graph& graph, const LinearizedGraph& linearized,
                        const Schedule& schedule);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_EXPAND_H_
