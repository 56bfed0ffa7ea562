// What every solver of arbitrary graphs within a budget is: a graph and a budget in, a plan out.
#ifndef STOWAGE_SOLVERS_GRAPH_GRAPH_SOLVER_H_
#define STOWAGE_SOLVERS_GRAPH_GRAPH_SOLVER_H_

#include "absl/status/statusor.h"
#include "solvers/model/graph.h"
#include "solvers/plan/frontier.h"
#include "solvers/plan/plan.h"
#include "solvers/solver.h"

namespace stowage {

// Stateless and thread-safe: one object serves any number of concurrent solves. Schedules are over
// vertices (solvers/plan/graph_simulate.h).
class GraphSolver {
 public:
  virtual ~GraphSolver() = default;
  virtual const SolverInfo& info() const = 0;

  // Fills what ChainSolver::Solve does; Plan.stage_vertices is the planner's. Errors: CANCELLED,
  // DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, INVALID_ARGUMENT for options. An infeasible budget is a
  // plan, not an error: PROVEN_INFEASIBLE only below a proven need, which is bounds.least_budget then
  // and may be less than what any schedule fits in; else that is the smallest budget that Solve found
  // a schedule for, or 0 where everything fits.
  virtual absl::StatusOr<Plan> Solve(const Graph& graph, Bytes budget,
                                     const SolveOptions& options) const = 0;

  // All budgets at once: what Solve has at each, less, where the points are too many to keep, some
  // that gain little (ChooseCompact in solvers/plan/frontier.h): a budget may then get up to that
  // share of the makespan more than from Solve. The last point is as fast as store-all.
  // info().least_budget is proven: no schedule needs less.
  virtual absl::StatusOr<Frontier> SolveFrontier(const Graph& graph,
                                                 const SolveOptions& options) const = 0;

  // The smallest budget that Solve finds a schedule for.
  virtual absl::StatusOr<Bytes> LeastBudget(const Graph& graph,
                                            const SolveOptions& options) const = 0;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_GRAPH_SOLVER_H_
