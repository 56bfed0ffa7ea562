// What follows once a cached plan has answered: the caller's costs become a sample of the reference,
// and a plan that ages, or that an older version has made, is solved anew, by one of several servers.
//
// Nothing here is done on the thread that answers: what takes time goes to threads in the background
// through a function. Thread-safe.
#ifndef STOWAGE_SERVER_SERVICE_REFRESHER_H_
#define STOWAGE_SERVER_SERVICE_REFRESHER_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "server/entries/plan_lookup.h"
#include "server/entries/plan_record.h"
#include "server/entries/planning_problem.h"
#include "server/observe/audit_log.h"
#include "server/observe/server_metrics.h"
#include "server/service/plan_solver.h"
#include "server/service/resolver.h"
#include "server/store/leased_solve.h"
#include "server/store/plan_store.h"
#include "solvers/base/tracer.h"

namespace stowage {

struct RefresherOptions {
  ResolverOptions resolver;
  Bytes table_limit{1 << 20};  // of one solve
  std::string solver_version = kSolverVersion;
  SolveLease* lease = nullptr;  // null: no other server has the same plans
  AuditLog* audit = nullptr;    // null: there is none
  Tracer* tracer = nullptr;     // null: there is none
  double trace_share = 0;       // of solves, in [0, 1]
};

class Refresher {
 public:
  using Job = std::function<void(const StopToken& stop)>;
  // Has a job run when nobody waits for a thread; false when it will not run. Ids differ.
  using Submit = std::function<bool(uint64_t id, Job job)>;

  // The pointers outlive this object, and so does it what it has submitted.
  Refresher(const RefresherOptions& options, PlanStore* store, const PlanSolver* solver,
            ServerMetrics* metrics, Submit submit);

  // `found` answers `problem` at the budget, from `entry`. `job` is the JobHash of who asked. Cheap.
  void NoteAnswer(const PlanningProblem& problem, uint64_t job, const PlanEntry& entry,
                  Bytes budget, const Found& found);
  // `plan`, of `entry`, answers somebody. O(1) but once in ten seconds for an entry as it is.
  void NotePlan(const PlanKey& key, const PlanEntry& entry, const Plan& plan);

 private:
  // Whether the same entry was told of lately; it is from now on.
  bool ToldLately(const PlanKey& key, const PlanEntry& entry);
  void LearnFrom(const PlanningProblem& problem, uint64_t job);
  // The entry, where the wish still holds: another server may have granted it, or somebody ruled it out.
  std::shared_ptr<const PlanEntry> StillWanted(const ResolveWish& wish) const;
  // The plan in the entry, if it is still there, the same question's, and not deleted since `begun`.
  void Keep(const ResolveWish& wish, int64_t begun, SolvedPlan* solved);
  void Audit(const ResolveWish& wish, const SolvedPlan& solved, const char* standing) const;
  void SolveAnew(const ResolveWish& wish, const StopToken& stop);
  Span SpanOf(const ResolveWish& wish) const;
  absl::StatusOr<Plan> Solve(const PlanningProblem& problem, Bytes budget,
                             const StopToken& stop) const;

  const RefresherOptions options_;
  PlanStore* const store_;
  const PlanSolver* const solver_;
  ServerMetrics* const metrics_;
  const Submit submit_;
  NoLease alone_;
  LeasedSolve leased_;
  // By key; 0: none. Whom a race or an equal place costs its turn is told of again.
  std::array<std::atomic<uint64_t>, 4096> told_{};
  std::atomic<uint64_t> next_id_{uint64_t{1} << 63};  // nobody else counts from there
  Resolver resolver_;                                 // last: its thread uses all of the above
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_SERVICE_REFRESHER_H_
