// Everything that the search over compute orders finds. Internal to solvers of graphs.
#ifndef STOWAGE_SOLVERS_GRAPH_BUDGET_ORDER_FRONTIER_H_
#define STOWAGE_SOLVERS_GRAPH_BUDGET_ORDER_FRONTIER_H_

#include "absl/status/statusor.h"
#include "solvers/model/graph.h"
#include "solvers/plan/frontier.h"
#include "solvers/solver.h"

namespace stowage {

// What OrderSearchSolver() has at every budget: its frontier, before points that gain little are left
// out. Errors as for SolveFrontier.
absl::StatusOr<Frontier> AllOrders(const Graph& graph, const SolveOptions& options);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_BUDGET_ORDER_FRONTIER_H_
