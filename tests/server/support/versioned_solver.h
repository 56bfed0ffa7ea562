// The library under another version's name.
#ifndef STOWAGE_TESTS_SERVER_SUPPORT_VERSIONED_SOLVER_H_
#define STOWAGE_TESTS_SERVER_SUPPORT_VERSIONED_SOLVER_H_

#include <string>
#include <utility>

#include "server/service/plan_solver.h"

namespace stowage::testing {

class VersionedSolver final : public PlanSolver {
 public:
  // The solver outlives this object.
  VersionedSolver(std::string version, const PlanSolver* solver)
      : version_(std::move(version)), solver_(solver) {}

  absl::StatusOr<Bytes> Resolve(const Instance& instance, const Budget& budget,
                                const PlanOptions& options) const override {
    return solver_->Resolve(instance, budget, options);
  }
  absl::StatusOr<Plan> Solve(const Instance& instance, Bytes budget,
                             const PlanOptions& options) const override {
    absl::StatusOr<Plan> plan = solver_->Solve(instance, budget, options);
    if (plan.ok()) plan->provenance.solver_version = version_;
    return plan;
  }
  absl::StatusOr<Frontier> SolveFrontier(const Instance& instance,
                                         const PlanOptions& options) const override {
    return solver_->SolveFrontier(instance, options);
  }

 private:
  const std::string version_;
  const PlanSolver* const solver_;
};

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SERVER_SUPPORT_VERSIONED_SOLVER_H_
