#include "server/planning/plan_solver.h"

namespace stowage {

absl::StatusOr<Bytes> LibraryPlanSolver::Resolve(const Problem& problem, const Budget& budget,
                                                 const PlanOptions& options) const {
  return ResolveBudget(problem, budget, options);
}

absl::StatusOr<Plan> LibraryPlanSolver::Solve(const Problem& problem, Bytes budget,
                                              const PlanOptions& options) const {
  return MakePlan(problem, budget, options);
}

absl::StatusOr<Frontier> LibraryPlanSolver::SolveFrontier(const Problem& problem,
                                                          const PlanOptions& options) const {
  return MakeFrontier(problem, options);
}

}  // namespace stowage
