// Budgets that are answered without a search, the same way by every solver of graphs: where no op fits,
// and where everything does.
#ifndef STOWAGE_SOLVERS_GRAPH_EASY_PLAN_H_
#define STOWAGE_SOLVERS_GRAPH_EASY_PLAN_H_

#include <optional>

#include "absl/status/statusor.h"
#include "solvers/model/graph.h"
#include "solvers/plan/plan.h"
#include "solvers/solver.h"

namespace stowage {

// PROVEN_INFEASIBLE below what some op alone needs (least_need.h), which is the least budget then;
// plain training where it fits, which nothing beats; nothing in between. Errors: of the options, of
// their stop, and INTERNAL for a graph that plain training cannot run. O((V + E) log E).
absl::StatusOr<std::optional<Plan>> EasyPlan(const Graph& graph, Bytes budget,
                                             const SolverInfo& solver, const SolveOptions& options);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_EASY_PLAN_H_
