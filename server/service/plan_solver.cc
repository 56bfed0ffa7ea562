#include "server/service/plan_solver.h"

namespace stowage {

absl::StatusOr<Bytes> LibraryPlanSolver::Resolve(const Instance& instance, const Budget& budget,
                                                 const PlanOptions& options) const {
  return ResolveBudget(instance, budget, options);
}

absl::StatusOr<Plan> LibraryPlanSolver::Solve(const Instance& instance, Bytes budget,
                                              const PlanOptions& options) const {
  absl::StatusOr<Plan> plan = MakePlan(instance, budget, options);
  // What is cached is for every sender, whatever ids his vertices have.
  if (plan.ok()) plan->stage_vertices.clear();
  return plan;
}

absl::StatusOr<Frontier> LibraryPlanSolver::SolveFrontier(const Instance& instance,
                                                          const PlanOptions& options) const {
  return MakeFrontier(instance, options);
}

}  // namespace stowage
