// Plans for whoever asks: from the cache, from a solve that is under way, or from a new one.
//
// Answers come through a callback, called exactly once: on the caller's thread when the cache decides
// at once or the request is refused, else on a thread of the intake, of a solver or of the timer.
// Nothing here blocks but GetPlan, Drain, Stop and the destructor.
//
// Thread-safe.
#ifndef STOWAGE_SERVER_SERVICE_PLANNING_SERVICE_H_
#define STOWAGE_SERVER_SERVICE_PLANNING_SERVICE_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/entries/planning_error.h"
#include "server/entries/planning_problem.h"
#include "server/observe/server_metrics.h"
#include "server/runtime/byte_budget.h"
#include "server/runtime/deadline_timer.h"
#include "server/runtime/intake.h"
#include "server/runtime/open_calls.h"
#include "server/runtime/solver_pool.h"
#include "server/service/compute_plan.h"
#include "server/service/flight_solver.h"
#include "server/service/flight_table.h"
#include "server/service/plan_cache.h"
#include "server/service/plan_solver.h"
#include "server/service/planning_options.h"
#include "server/service/refresher.h"
#include "server/store/plan_store.h"
#include "solvers/base/tracer.h"

namespace stowage {

class PlanningService {
 public:
  using Clock = std::chrono::steady_clock;

  // All three pointers outlive this object.
  PlanningService(const PlanningOptions& options, PlanStore* store, const PlanSolver* solver,
                  ServerMetrics* metrics);
  ~PlanningService();

  // The first key with a schedule that serves the budget; shares and "least" mean those of the
  // entry's reference costs, and so does the prediction. That a budget is infeasible is no answer
  // here: it may be feasible under the caller's costs, which ComputePlan is told. The plan carries no
  // stage_vertices: a key does not say how its sender numbers them. NOT_FOUND, or INVALID_ARGUMENT
  // for the budget. Waits for the store.
  // Keys of entries that the scope does not see are keys without an entry; as it is made, the scope is
  // the tenant of servers without identities.
  absl::StatusOr<CachedPlan> GetPlan(const std::vector<PlanKey>& keys, const Budget& budget,
                                     const TenantScope& scope = TenantScope(""));
  // The same without waiting, for a caller of that account; RESOURCE_EXHAUSTED when too many others
  // wait.
  void GetPlanAsync(const std::vector<PlanKey>& keys, const Budget& budget, CachedPlanCallback done,
                    const TenantScope& scope = TenantScope(""), const Account& account = Account(),
                    const TraceScope& trace = TraceScope());

  // Answers with a plan validated under the caller's own costs, or: INVALID_ARGUMENT, CANCELLED,
  // DEADLINE_EXCEEDED (the caller's, max_solve_time or max_deadline; a search that has found a plan by then answers
  // with its best one, a little before), RESOURCE_EXHAUSTED (queue full, tenant's quota, deadline too short, or too many
  // calls, with a time to retry after; or the solver's memory), UNAVAILABLE (draining).
  // While a solve goes on, `changed` is called when Latest has news, at most ten times a second, and maybe
  // once more while the answer is given; it must be quick.
  std::shared_ptr<PlanCall> ComputePlan(const ComputeRequest& request, ComputeCallback done,
                                        std::function<void()> changed = nullptr);

  // All budgets at once, as an answer without a plan: cached under about the caller's costs, or solved.
  // Errors as for ComputePlan; the request's budget is not looked at.
  std::shared_ptr<PlanCall> GetFrontier(const ComputeRequest& request, ComputeCallback done);

  // The batches that fit, as an answer without a plan; nothing of it is cached. `request` has the profile
  // of one batch, and names what is planned. Errors as for ComputePlan.
  std::shared_ptr<PlanCall> FitBatches(const ComputeRequest& request, const BatchRequest& batches,
                                       ComputeCallback done);

  // How far the solve is that the call waits for. O(schedule); one at a time for a call.
  PlanUpdate Latest(const std::shared_ptr<PlanCall>& call);

  // Answers the call with CANCELLED unless it has been answered. The solve goes on while anybody
  // else waits for it; one that has begun, and that the call has watched, for a while also without anybody: its
  // connection may be lost, and who asks again joins it (PlanningOptions::watch_grace).
  void Cancel(const std::shared_ptr<PlanCall>& call);

  // Has `task` run by a thread of the lane, which may take its time; it is told UNAVAILABLE where the
  // service has stopped before its turn. RESOURCE_EXHAUSTED, or UNAVAILABLE (stopped), when it will not
  // run.
  absl::Status Defer(Lane lane, const Account& account, IntakeTask task);

  // For a request of that many bytes, from its arrival until nothing of it is left; RESOURCE_EXHAUSTED
  // when all that are open, or those of the account, have too many.
  absl::StatusOr<ByteBudget::Hold> HoldRequest(const Account& account, RequestUse use,
                                               size_t bytes);

  // Has `job` run while nobody waits for a solver's thread; it stops when the token says so. False when
  // a job of that id waits already, or too many do.
  bool SubmitBackground(uint64_t id, std::function<void(const StopToken& stop)> job);

  // From now on. What is open, waits or runs stays, also where it is more.
  void SetLimits(const PlanningLimits& limits);

  // Refuses new calls, waits for the open ones until `deadline`, then stops.
  DrainResult Drain(Clock::time_point deadline);

  // Calls that wait for their answers.
  int64_t open_calls() { return open_.count(); }
  // What waits for threads of the lanes or has one: lookups, lists, changes, reports among them.
  size_t tasks() { return intake_.tasks(); }
  // Those that have had them, since the start.
  int64_t ended_calls() { return open_.ended(); }

  // Answers all open calls with UNAVAILABLE, stops all solves and waits for the threads.
  // Idempotent.
  void Stop();

 private:
  std::shared_ptr<PlanCall> Ask(const ComputeRequest& request, Asked asked, ComputeCallback done,
                                std::function<void()> changed,
                                std::optional<BatchRequest> batches = std::nullopt);
  // Fills the call in and goes on with it.
  void Open(const ComputeRequest& request, Asked asked, std::optional<BatchRequest> batches,
            const std::shared_ptr<PlanCall>& call);
  void Proceed(const std::shared_ptr<PlanCall>& call, Access access, MayWait wait);
  // Does `work` for the call; where the process gets no memory for it, that is the call's answer.
  template <class Work>
  void For(const std::shared_ptr<PlanCall>& call, const Work& work) {
    try {
      work();
    } catch (const std::bad_alloc&) {
      LeaveFlight(call);
      Answer(call, OutOfMemoryError());
    }
  }
  // False when only a thread that may wait can tell; the call goes on there.
  bool AnswerFromCache(const std::shared_ptr<PlanCall>& call, Access access, MayWait wait);
  // A little before its limit a call gets the best plan so far; without one, an error at the limit.
  void WatchLimit(const std::shared_ptr<PlanCall>& call);
  void AnswerBestSoFar(const std::shared_ptr<PlanCall>& call, const Flight& flight);
  void FailAtLimit(const std::shared_ptr<PlanCall>& call);
  void Start(const std::shared_ptr<PlanCall>& call);
  // Has a solver's thread run the flight.
  Admission Enqueue(const std::shared_ptr<Flight>& flight);
  // On a solver's thread: answers, solves, or leaves the thread and waits.
  void Run(const std::shared_ptr<Flight>& flight);
  void RunBatches(const std::shared_ptr<Flight>& flight);
  void RunPlan(const std::shared_ptr<Flight>& flight);
  void RunFrontier(const std::shared_ptr<Flight>& flight);
  // Whether it is the flight's turn to solve; else it is answered, has failed, or waits.
  bool LookForPlan(const std::shared_ptr<Flight>& flight);
  bool LookForFrontier(const std::shared_ptr<Flight>& flight);
  // Another server solves: looks again after a pause, on a thread that may wait: of a lane for that alone, for
  // hundreds of flights may wait so, and lookups are not to wait for them.
  void Park(const std::shared_ptr<Flight>& flight);
  void LookAgain(const std::shared_ptr<Flight>& flight);
  void DistributeFrontier(const std::shared_ptr<Flight>& flight,
                          const std::shared_ptr<const Frontier>& frontier, AnswerSource source);
  // The call's share of what its flight has solved.
  void AnswerFrontier(const std::shared_ptr<PlanCall>& call, const Flight& flight,
                      const std::shared_ptr<const Frontier>& frontier, AnswerSource source);
  void AnswerShare(const std::shared_ptr<PlanCall>& call, const Flight& flight, const Plan& plan,
                   AnswerSource source);
  // A solve has failed.
  void Fail(const std::shared_ptr<Flight>& flight, const absl::Status& status);
  void Distribute(const std::shared_ptr<Flight>& flight, const Plan& plan, AnswerSource source);
  // What a flight has, as the call's own answer.
  std::optional<Plan> AsAnswer(const PlanCall& call, const Flight& flight, const Plan& plan);
  void LeaveFlight(const std::shared_ptr<PlanCall>& call);
  // The same for a call that may come back. False: there is nothing to come back to.
  bool DesertFlight(const std::shared_ptr<PlanCall>& call);

  // Counts a call as open, or says why not.
  absl::Status Accept(const Account& account);
  absl::Status BytesStatus(const Account& account, ByteBudget::Admitted admitted);
  void AnswerPlan(const std::shared_ptr<PlanCall>& call, Plan plan, AnswerSource source);
  void Answer(const std::shared_ptr<PlanCall>& call, absl::StatusOr<ComputeAnswer> answer);
  // Whether a flight that the call has just opened will be solved, and if not, why.
  absl::Status Submit(const PlanCall& call, const std::shared_ptr<Flight>& flight);
  absl::Status LimitError(const PlanCall& call) const;
  // When what is queued has probably been solved; never the same for all, or all came back at once.
  std::chrono::nanoseconds RetryAfter();

  const PlanningOptions options_;
  ServerMetrics* const metrics_;

  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> next_call_{1};
  std::atomic<uint64_t> refused_{0};
  StopToken background_stop_;
  OpenCalls open_;
  ByteBudget request_bytes_;
  PlanCache cache_;
  FlightSolver solving_;
  FlightTable flights_;
  SolverPool pool_;      // stopped by the destructor before anything is destroyed, as is the intake
  Refresher refresher_;  // its thread submits to the pool
  Intake intake_;
  DeadlineTimer timer_;  // last: its thread uses all of the above, until it is destroyed
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_SERVICE_PLANNING_SERVICE_H_
