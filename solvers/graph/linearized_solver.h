// A chain solver as a graph solver: it plans the graph cut at its splitting vertices (linearize.h),
// and the plan is carried over to the vertices (expand.h), where it takes no longer and needs no
// more memory.
#ifndef STOWAGE_SOLVERS_GRAPH_LINEARIZED_SOLVER_H_
#define STOWAGE_SOLVERS_GRAPH_LINEARIZED_SOLVER_H_

#include "solvers/graph/graph_solver.h"

namespace stowage {

// Infeasible budgets are proven for the chain only: for the graph they are not found.
class LinearizedSolver final : public GraphSolver {
 public:
  // `chain_solver` outlives this object.
  explicit LinearizedSolver(const ChainSolver* chain_solver);

  const SolverInfo& info() const override { return info_; }
  absl::StatusOr<Plan> Solve(const Graph& graph, Bytes budget,
                             const SolveOptions& options) const override;
  absl::StatusOr<Frontier> SolveFrontier(const Graph& graph,
                                         const SolveOptions& options) const override;
  absl::StatusOr<Bytes> LeastBudget(const Graph& graph, const SolveOptions& options) const override;

 private:
  const ChainSolver& chain_solver_;
  const SolverInfo info_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_LINEARIZED_SOLVER_H_
