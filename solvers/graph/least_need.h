// What one op alone needs at once: no schedule that SimulateGraph accepts has a lower peak.
#ifndef STOWAGE_SOLVERS_GRAPH_LEAST_NEED_H_
#define STOWAGE_SOLVERS_GRAPH_LEAST_NEED_H_

#include "solvers/model/graph.h"
#include "solvers/model/units.h"

namespace stowage {

// The most that any forward or backward runs with: inputs, output, extras and overhead; what the
// backward needs of them, its overhead, and the gradients of its inputs and its own. O(V + E log E).
Bytes LeastNeed(const Graph& graph);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_LEAST_NEED_H_
