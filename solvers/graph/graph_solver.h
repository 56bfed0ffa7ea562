// What every solver of the budget question on graphs is: a graph and a budget in, a plan out.
#ifndef STOWAGE_SOLVERS_GRAPH_GRAPH_SOLVER_H_
#define STOWAGE_SOLVERS_GRAPH_GRAPH_SOLVER_H_

#include "absl/status/statusor.h"
#include "solvers/model/graph.h"
#include "solvers/plan/frontier.h"
#include "solvers/plan/plan.h"
#include "solvers/solver.h"

namespace stowage {

// The counterpart of ChainSolver (solvers/solver.h), with the same contract for options, errors and
// what Solve fills in. Schedules are over vertices, as solvers/plan/graph_simulate.h says. Stateless
// and thread-safe: one object serves any number of concurrent solves.
class GraphSolver {
 public:
  virtual ~GraphSolver() = default;
  virtual const SolverInfo& info() const = 0;

  virtual absl::StatusOr<Plan> Solve(const Graph& graph, Bytes budget,
                                     const SolveOptions& options) const = 0;

  // What the solver has at a budget, and never slower than at a smaller one. The last point is as
  // fast as store-all.
  virtual absl::StatusOr<Frontier> SolveFrontier(const Graph& graph,
                                                 const SolveOptions& options) const = 0;

  // The smallest budget that Solve finds a schedule for.
  virtual absl::StatusOr<Bytes> LeastBudget(const Graph& graph,
                                            const SolveOptions& options) const = 0;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_GRAPH_SOLVER_H_
