// The search behind order_search (solvers.h): what chain solvers propose for a graph, improved op by op, and all
// orders of small ones.
#ifndef STOWAGE_SOLVERS_GRAPH_BUDGET_ORDER_SOLVING_H_
#define STOWAGE_SOLVERS_GRAPH_BUDGET_ORDER_SOLVING_H_

#include <optional>

#include "absl/status/statusor.h"
#include "solvers/graph/graph_solver.h"
#include "solvers/model/graph.h"
#include "solvers/plan/frontier.h"
#include "solvers/solver.h"

namespace stowage {

// Lives as long as the process.
const SolverInfo& OrderSearchInfo();

// All points found, or with `compact` those that a cache would want to keep. With a budget, its best schedule
// is there at a deadline, and `cut_short`, which may be null, says whether that ended the search. Errors and
// cost as GraphSolver::SolveFrontier of order_search.
absl::StatusOr<Frontier> SearchOrders(const Graph& graph, const SolveOptions& options, bool compact,
                                      std::optional<Bytes> budget = std::nullopt,
                                      bool* cut_short = nullptr);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_BUDGET_ORDER_SOLVING_H_
