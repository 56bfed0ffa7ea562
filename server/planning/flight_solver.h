// What a flight does on its solver's thread: looks once more, solves, records.
#ifndef STOWAGE_SERVER_PLANNING_FLIGHT_SOLVER_H_
#define STOWAGE_SERVER_PLANNING_FLIGHT_SOLVER_H_

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "server/cache/leased_solve.h"
#include "server/cache/solve_lease.h"
#include "server/metrics/server_metrics.h"
#include "server/planning/compute_plan.h"
#include "server/planning/flight_table.h"
#include "server/planning/plan_cache.h"
#include "server/planning/plan_solver.h"
#include "server/planning/planning_options.h"
#include "server/planning/solve_costs.h"

namespace stowage {

// Bytes that one solve may use for tables.
Bytes TableLimit(const PlanningOptions& options);

// Whether a deadline that passes leaves a plan of its solver (SolverInfo::IsAnytimeFor).
bool IsAnytime(const PlanningProblem& problem);

// Thread-safe.
class FlightSolver {
 public:
  // The pointers outlive this object.
  FlightSolver(const PlanningOptions& options, PlanCache* cache, const PlanSolver* solver,
               ServerMetrics* metrics);

  // The plan for a flight, from the cache or a solver, kept where it may serve others. Errors are the
  // solver's, and RESOURCE_EXHAUSTED, OUT_OF_MEMORY.
  // While it solves, the flight's news say how far it is; `tell` is called when they have changed, at
  // most ten times a second. A plan that its deadline cut short is not kept.
  absl::StatusOr<Plan> PlanFor(Flight* flight, const std::function<void()>& tell,
                               AnswerSource* source);

  // All budgets at once; as PlanFor.
  absl::StatusOr<std::shared_ptr<const Frontier>> FrontierFor(Flight* flight,
                                                              const std::function<void()>& tell,
                                                              AnswerSource* source);

  // The batches that fit, each under the flight's options.
  absl::StatusOr<BatchFit> BatchesFor(const Flight& flight) const;

  // How long the solve for the budget, if it is known, will probably take.
  SolveEstimate Estimate(const PlanningProblem& problem, std::optional<Bytes> budget) const;

 private:
  PlanOptions OptionsFor(const Flight& flight) const;
  absl::StatusOr<Plan> FindOrSolve(Flight* flight, const std::function<void()>& tell,
                                   AnswerSource* source);
  absl::StatusOr<std::shared_ptr<const Frontier>> FindOrSolveFrontier(
      Flight* flight, const std::function<void()>& tell, AnswerSource* source);
  absl::StatusOr<Plan> Solve(Flight* flight, const std::function<void()>& tell, Bytes budget);
  void Count(const Flight& flight, const absl::StatusOr<Plan>& plan, std::chrono::nanoseconds took);

  const Bytes table_limit_;
  PlanCache* const cache_;
  const PlanSolver* const solver_;
  ServerMetrics* const metrics_;
  NoLease alone_;
  LeasedSolve leased_;
  SolveCosts costs_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_PLANNING_FLIGHT_SOLVER_H_
