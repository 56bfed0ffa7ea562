// A chain solver as a graph solver: it plans the graph cut at its splitting vertices (linearize.h)
// for all budgets, and its plans are carried over to the vertices (linearize.h), where they take no
// longer and need no more memory.
#ifndef STOWAGE_SOLVERS_GRAPH_LINEARIZED_SOLVER_H_
#define STOWAGE_SOLVERS_GRAPH_LINEARIZED_SOLVER_H_

#include "solvers/solver.h"

namespace stowage {

// PROVEN_INFEASIBLE below what one op alone needs (LeastNeed in trivial_plan.h): what the chain solver proves holds
// for the chain only. INVALID_ARGUMENT for a graph of sizes whose chain, which counts some bytes more
// than once, is beyond the limits of chains.
class LinearizedSolver final : public Solver {
 public:
  // `chain_solver` outlives this object.
  explicit LinearizedSolver(const Solver* chain_solver);

  const SolverInfo& info() const override { return info_; }

 private:
  absl::StatusOr<Plan> DoSolve(const Instance& instance, Bytes budget,
                               const SolveContext& context) const override;
  absl::StatusOr<Frontier> DoSolveFrontier(const Instance& instance,
                                           const SolveContext& context) const override;
  absl::StatusOr<Bytes> DoLeastBudget(const Instance& instance,
                                      const SolveContext& context) const override;

  // The points of the chain's frontier on the graph: all, or what a cache would want to keep.
  absl::StatusOr<Frontier> Expanded(const Instance& instance, const SolveContext& context,
                                    bool compact) const;

  // To expand and to replay, for each instruction; about.
  static constexpr int64_t kStepsPerVertex = 32;

  const Solver& chain_solver_;
  const SolverInfo info_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_LINEARIZED_SOLVER_H_
