// The seam between the server and the solver library.
#ifndef STOWAGE_SERVER_SERVICE_PLAN_SOLVER_H_
#define STOWAGE_SERVER_SERVICE_PLAN_SOLVER_H_

#include "absl/status/statusor.h"
#include "solvers/planner.h"

namespace stowage {

// Thread-safe. All obey options.solve.stop.
class PlanSolver {
 public:
  virtual ~PlanSolver() = default;
  virtual absl::StatusOr<Bytes> Resolve(const Instance& instance, const Budget& budget,
                                        const PlanOptions& options) const = 0;
  virtual absl::StatusOr<Plan> Solve(const Instance& instance, Bytes budget,
                                     const PlanOptions& options) const = 0;
  virtual absl::StatusOr<Frontier> SolveFrontier(const Instance& instance,
                                                 const PlanOptions& options) const = 0;
};

// The solver library itself.
class LibraryPlanSolver final : public PlanSolver {
 public:
  absl::StatusOr<Bytes> Resolve(const Instance& instance, const Budget& budget,
                                const PlanOptions& options) const override;
  absl::StatusOr<Plan> Solve(const Instance& instance, Bytes budget,
                             const PlanOptions& options) const override;
  absl::StatusOr<Frontier> SolveFrontier(const Instance& instance,
                                         const PlanOptions& options) const override;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_SERVICE_PLAN_SOLVER_H_
