// What a flight does: looks once more, waits for another server that solves, solves, records.
#ifndef STOWAGE_SERVER_SERVICE_FLIGHT_SOLVER_H_
#define STOWAGE_SERVER_SERVICE_FLIGHT_SOLVER_H_

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "server/observe/server_metrics.h"
#include "server/service/compute_plan.h"
#include "server/service/flight_table.h"
#include "server/service/plan_cache.h"
#include "server/service/plan_solver.h"
#include "server/service/planning_options.h"
#include "server/service/solve_costs.h"
#include "server/service/unfinished_plans.h"
#include "server/store/leased_solve.h"
#include "server/store/solve_lease.h"

namespace stowage {

// Bytes that one solve may use for tables.
Bytes TableLimit(const PlanningOptions& options);

// Whether a deadline that passes leaves a plan of its solver (SolverInfo::IsAnytimeFor).
bool IsAnytime(const PlanningProblem& problem);

// What is there for a flight before it solves: its answer, or what it has to do.
template <class T>
struct FlightLook {
  std::optional<T> found;
  bool waits = false;  // another server solves: look again after Flight::wait.pause
};

// Thread-safe.
class FlightSolver {
 public:
  // The pointers outlive this object.
  FlightSolver(const PlanningOptions& options, PlanCache* cache, const PlanSolver* solver,
               ServerMetrics* metrics);

  // The plan of a flight from the cache; or it is the flight's turn to solve, of all flights and servers
  // (Flight::turn), or another server's. Errors are the solver's, and RESOURCE_EXHAUSTED,
  // OUT_OF_MEMORY.
  absl::StatusOr<FlightLook<Plan>> LookForPlan(Flight* flight);
  absl::StatusOr<FlightLook<std::shared_ptr<const Frontier>>> LookForFrontier(Flight* flight);

  // Solves, on the flight's turn, and keeps the plan where it may serve others. Errors as above.
  // While it solves, the flight's news say how far it is; `tell` is called when they have changed, at
  // most ten times a second. A plan that its deadline cut short is not kept in the cache, but for CutShort and for
  // the next flight of the same question, which begins with it: its news have it at once, and its answer is no
  // worse. So is the best one of a flight that everybody has left.
  absl::StatusOr<Plan> SolvePlan(Flight* flight, const std::function<void()>& tell);
  // The plan of a search that was cut short, for who would give one of his own hardly more than it had; nothing
  // where none is as good. O(replay); never waits.
  std::optional<Plan> CutShort(const PlanningProblem& problem, Bytes budget,
                               std::chrono::nanoseconds time) const;
  // All budgets at once; as SolvePlan.
  absl::StatusOr<std::shared_ptr<const Frontier>> SolveFrontier(Flight* flight,
                                                                const std::function<void()>& tell);

  // The batches that fit, each under the flight's options.
  absl::StatusOr<BatchFit> BatchesFor(const Flight& flight) const;

  // How long the solve for the budget, if it is known, will probably take.
  SolveEstimate Estimate(const PlanningProblem& problem, std::optional<Bytes> budget) const;

 private:
  PlanOptions OptionsFor(const Flight& flight) const;
  absl::StatusOr<FlightLook<Plan>> FindPlan(Flight* flight);
  absl::StatusOr<std::shared_ptr<const Frontier>> SolveAndKeepFrontier(
      Flight* flight, const std::function<void()>& tell);
  // Before its turn; ends its wait for another server, if there was one.
  void Found(Flight* flight);
  // Whose turn it is: sets the flight's, where it is its own.
  SolveTurn TakeTurn(Flight* flight, const SolveQuestion& question,
                     const std::function<bool()>& look);
  absl::StatusOr<Plan> Solve(Flight* flight, const std::function<void()>& tell, Bytes budget);
  // What searches before had found that were cut short, unless it was deleted.
  std::optional<UnfinishedPlan> Before(const PlanningProblem& problem, Bytes budget) const;
  // What a search that has not come to its end has found, it and those before it. `so_far` has no plan.
  absl::StatusOr<Plan> Unfinished(const Flight& flight, UnfinishedPlan so_far,
                                  absl::StatusOr<Plan> plan);
  void Count(const Flight& flight, const absl::StatusOr<Plan>& plan, std::chrono::nanoseconds took);

  const Bytes table_limit_;
  PlanCache* const cache_;
  const PlanSolver* const solver_;
  ServerMetrics* const metrics_;
  const bool shares_;  // the plans, with other servers
  NoLease alone_;
  LeasedSolve leased_;
  SolveCosts costs_;
  UnfinishedPlans unfinished_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_SERVICE_FLIGHT_SOLVER_H_
