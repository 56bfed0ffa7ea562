// What one op alone needs at once: no schedule that the evaluator accepts has a lower peak.
#ifndef STOWAGE_SOLVERS_GRAPH_TRIVIAL_PLAN_H_
#define STOWAGE_SOLVERS_GRAPH_TRIVIAL_PLAN_H_

#include <optional>

#include "absl/status/statusor.h"
#include "solvers/model/graph.h"
#include "solvers/model/units.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/plan.h"
#include "solvers/solver.h"

namespace stowage {

// The most that any forward or backward runs with: inputs, output, extras and overhead; what the
// backward needs of them, its overhead, and the gradients of its inputs and its own. O(V + E log E).
Bytes LeastNeed(const Graph& graph);

// Budgets that are answered without a search, the same way by every solver of graphs: where no op fits,
// and where everything does.

// PROVEN_INFEASIBLE below what some op alone needs (LeastNeed), which is the least budget then;
// plain training where it fits, which nothing beats; nothing in between. O((V + E) log E).
absl::StatusOr<std::optional<Plan>> TrivialPlan(const Instance& instance, Bytes budget,
                                                const SolverInfo& solver);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_TRIVIAL_PLAN_H_
