// The library under another version's name.
#ifndef STOWAGE_TESTS_SERVER_SUPPORT_VERSIONED_SOLVER_H_
#define STOWAGE_TESTS_SERVER_SUPPORT_VERSIONED_SOLVER_H_

#include <string>
#include <utility>

#include "server/planning/plan_solver.h"

namespace stowage::testing {

class VersionedSolver final : public PlanSolver {
 public:
  // The solver outlives this object.
  VersionedSolver(std::string version, const PlanSolver* solver)
      : version_(std::move(version)), solver_(solver) {}

  absl::StatusOr<Bytes> Resolve(const Problem& problem, const Budget& budget,
                                const PlanOptions& options) const override {
    return solver_->Resolve(problem, budget, options);
  }
  absl::StatusOr<Plan> Solve(const Problem& problem, Bytes budget,
                             const PlanOptions& options) const override {
    absl::StatusOr<Plan> plan = solver_->Solve(problem, budget, options);
    if (plan.ok()) plan->provenance.solver_version = version_;
    return plan;
  }
  absl::StatusOr<Frontier> SolveFrontier(const Problem& problem,
                                         const PlanOptions& options) const override {
    return solver_->SolveFrontier(problem, options);
  }

 private:
  const std::string version_;
  const PlanSolver* const solver_;
};

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SERVER_SUPPORT_VERSIONED_SOLVER_H_
