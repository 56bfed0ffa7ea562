// What a flight does on its solver's thread: looks once more, solves, records.
#ifndef STOWAGE_SERVER_PLANNING_FLIGHT_SOLVER_H_
#define STOWAGE_SERVER_PLANNING_FLIGHT_SOLVER_H_

#include <atomic>
#include <chrono>

#include "absl/status/statusor.h"
#include "server/metrics/server_metrics.h"
#include "server/planning/compute_plan.h"
#include "server/planning/flight_table.h"
#include "server/planning/plan_cache.h"
#include "server/planning/plan_solver.h"
#include "server/planning/planning_options.h"

namespace stowage {

// Thread-safe.
class FlightSolver {
 public:
  // The pointers outlive this object.
  FlightSolver(const PlanningOptions& options, PlanCache* cache, const PlanSolver* solver,
               ServerMetrics* metrics);

  // The plan for a flight, from the cache or a solver, kept where it may serve others. Errors are the
  // solver's, and RESOURCE_EXHAUSTED, OUT_OF_MEMORY.
  // While it solves, the flight's news say how far it is. A plan that its deadline cut short is not kept.
  absl::StatusOr<Plan> PlanFor(Flight* flight, AnswerSource* source);

  std::chrono::nanoseconds mean_solve_time() const {
    return std::chrono::nanoseconds(mean_solve_ns_);
  }

 private:
  PlanOptions OptionsFor(const Flight& flight) const;
  absl::StatusOr<Plan> FindOrSolve(Flight* flight, AnswerSource* source);
  absl::StatusOr<Plan> Solve(Flight* flight, Bytes budget);
  void Count(const Flight& flight, const absl::StatusOr<Plan>& plan, std::chrono::nanoseconds took);

  const Bytes table_limit_;
  PlanCache* const cache_;
  const PlanSolver* const solver_;
  ServerMetrics* const metrics_;
  std::atomic<int64_t> mean_solve_ns_{0};
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_PLANNING_FLIGHT_SOLVER_H_
