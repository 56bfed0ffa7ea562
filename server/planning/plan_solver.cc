#include "server/planning/plan_solver.h"

namespace stowage {

absl::StatusOr<Bytes> LibraryPlanSolver::Resolve(const Chain& chain, const Budget& budget,
                                                 const PlanOptions& options) const {
  return ResolveBudget(chain, budget, options);
}

absl::StatusOr<Plan> LibraryPlanSolver::Solve(const Chain& chain, Bytes budget,
                                              const PlanOptions& options) const {
  return MakeChainPlan(chain, budget, options);
}

}  // namespace stowage
