// Plans for whoever asks: from the cache, from a solve that is under way, or from a new one.
//
// GetPlan answers at once. ComputePlan answers through a callback, called exactly once: on the
// caller's thread when the cache has the plan or the request is refused, else on a solver's or the
// timer's. Nothing here blocks but Drain, Stop and the destructor.
//
// Thread-safe.
#ifndef STOWAGE_SERVER_PLANNING_PLANNING_SERVICE_H_
#define STOWAGE_SERVER_PLANNING_PLANNING_SERVICE_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "server/cache/plan_store.h"
#include "server/metrics/server_metrics.h"
#include "server/planning/compute_plan.h"
#include "server/planning/deadline_timer.h"
#include "server/planning/flight_table.h"
#include "server/planning/plan_record.h"
#include "server/planning/plan_solver.h"
#include "server/planning/planning_problem.h"
#include "server/planning/solver_pool.h"

namespace stowage {

struct PlanningOptions {
  int solver_threads = 2;    // >= 1
  size_t queue_limit = 256;  // >= 1; solves that may wait for a thread
  // For the tables of all threads together; each solve gets its share, at least 1 MiB.
  Bytes solver_memory{int64_t{4} << 30};
  // How long a flight may take, queue included, for callers without a deadline.
  std::chrono::nanoseconds max_solve_time = std::chrono::minutes(10);
  int64_t max_open_calls = 10000;  // of ComputePlan, who joined a flight included
  DigestFunction digest = Sha256;
};

struct CachedPlan {
  std::shared_ptr<const Plan> plan;  // its own budget may differ from the one below
  Bytes budget;                      // what was asked for, in bytes
  PlanKey key;
};

struct DrainResult {
  int64_t finished = 0;   // calls that were open when the drain began and got their answer
  int64_t abandoned = 0;  // calls that got UNAVAILABLE at the deadline
};

class PlanningService {
 public:
  using Clock = std::chrono::steady_clock;

  // All three pointers outlive this object.
  PlanningService(const PlanningOptions& options, PlanStore* store, const PlanSolver* solver,
                  ServerMetrics* metrics);
  ~PlanningService();

  // The first key with a schedule that serves the budget; shares and "least" mean those of the
  // entry's reference costs, and so does the prediction. That a budget is infeasible is no answer
  // here: it may be feasible under the caller's costs, which ComputePlan is told. The plan carries no stage_vertices: a key does not say how its sender numbers
  // them. NOT_FOUND, or INVALID_ARGUMENT for the budget.
  absl::StatusOr<CachedPlan> GetPlan(const std::vector<PlanKey>& keys, const Budget& budget);

  // Answers with a plan refereed under the caller's own costs, or: INVALID_ARGUMENT, CANCELLED,
  // DEADLINE_EXCEEDED (the caller's, or max_solve_time), RESOURCE_EXHAUSTED (queue full or too many
  // calls, with a time to retry after; or the solver's memory), UNAVAILABLE (draining).
  std::shared_ptr<PlanCall> ComputePlan(const ComputeRequest& request, ComputeCallback done);

  // Answers the call with CANCELLED unless it has been answered. The solve goes on while anybody
  // else waits for it.
  void Cancel(const std::shared_ptr<PlanCall>& call);

  // Refuses new calls, waits for the open ones until `deadline`, then stops.
  DrainResult Drain(Clock::time_point deadline);

  // Answers all open calls with UNAVAILABLE, stops all solves and waits for the threads.
  // Idempotent.
  void Stop();

 private:
  void Proceed(const std::shared_ptr<PlanCall>& call, Access access);
  void Start(const std::shared_ptr<PlanCall>& call);
  // Answers a call without a deadline when its flight has taken max_solve_time.
  void BoundSolveTime(const std::shared_ptr<PlanCall>& call, const Flight& flight);
  PlanOptions OptionsFor(const Flight& flight) const;
  void Run(const std::shared_ptr<Flight>& flight);
  // The plan for a flight, from the cache or a solver, recorded in the store.
  absl::StatusOr<Plan> PlanFor(const Flight& flight, AnswerSource* source);
  absl::StatusOr<Plan> Solve(const Flight& flight, Bytes budget);
  void Distribute(const std::shared_ptr<Flight>& flight, const Plan& plan, AnswerSource source);
  void Leave(const std::shared_ptr<PlanCall>& call, const absl::Status& status);

  void ResolveFromEntry(PlanCall* call);
  std::optional<Plan> FindCached(const PlanningProblem& problem, Bytes budget, Access access);
  void Store(SolvedPlan* solved);

  // Counts a call as open, or says why not.
  absl::Status Accept();
  void AnswerPlan(const std::shared_ptr<PlanCall>& call, Plan plan, AnswerSource source);
  void Answer(const std::shared_ptr<PlanCall>& call, absl::StatusOr<ComputeAnswer> answer);
  absl::Status Refusal() const;
  // When the queue, were it full, has probably drained.
  std::chrono::nanoseconds RetryAfter() const;

  const PlanningOptions options_;
  PlanStore* const store_;
  const PlanSolver* const solver_;
  ServerMetrics* const metrics_;

  std::mutex record_mutex_;  // one change of an entry at a time: none is lost

  std::mutex open_mutex_;
  std::condition_variable all_answered_;
  int64_t open_calls_ = 0;
  bool accepting_ = true;

  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> next_call_{1};
  std::atomic<int64_t> mean_solve_ns_{0};
  FlightTable flights_;
  SolverPool pool_;      // stopped by the destructor before anything is destroyed
  DeadlineTimer timer_;  // last: its thread uses all of the above
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_PLANNING_PLANNING_SERVICE_H_
