// Where plans come from: a server, this process, or one behind the other. The point at which users
// and tests put a mock (mock_plan_connection.h).
//
// Errors, beside those of each call:
//   INVALID_ARGUMENT    made by FieldError where a field is to blame
//   RESOURCE_EXHAUSTED  a message over a limit (named), or a busy server (GetRetryDelay in
//                       proto/codec/grpc_status.h)
//   INTERNAL            a server whose answer breaks the contract, or whose plan the evaluator refuses
//   UNIMPLEMENTED       a call that this server, or planning in this process, does not have
//   UNAUTHENTICATED, PERMISSION_DENIED, UNAVAILABLE (the message holds a hint),
//   DEADLINE_EXCEEDED, CANCELLED
// All connections are thread-safe, and no call outlasts its deadline by more than what a thread
// needs to wake up.
#ifndef STOWAGE_CLIENT_RPC_PLAN_CONNECTION_H_
#define STOWAGE_CLIENT_RPC_PLAN_CONNECTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/rpc/plan_values.h"
#include "solvers/model/budget.h"
#include "solvers/model/canonical.h"
#include "solvers/model/problem.h"

namespace stowage {

class PlanConnection {
 public:
  virtual ~PlanConnection() = default;

  // The cached plan of the first of 1 to 16 keys that has one within the budget; NOT_FOUND if none
  // has. Its prediction holds under the costs it was solved for: PlanClient validates it under the
  // caller's. With CallOptions::held, a schedule that the caller has is not sent again.
  virtual absl::StatusOr<PlanReply> GetPlan(const std::vector<PlanKey>& keys, const Budget& budget,
                                            const CallOptions& options) = 0;

  // A plan from the cache or solved now, validated here under the profile's costs. A budget that
  // nothing fits is a plan too: see Plan::status. The tenant of `key_options` counts in process
  // only: a server takes it from the caller's identity.
  virtual absl::StatusOr<PlanReply> ComputePlan(const Profile& profile, const Budget& budget,
                                                const KeyOptions& key_options,
                                                const CallOptions& options) = 0;

  // The same with progress on the way; `progress` may be empty. If the deadline ends the search, the
  // best plan so far is the answer, if there is one.
  virtual absl::StatusOr<PlanReply> WatchPlan(const Profile& profile, const Budget& budget,
                                              const KeyOptions& key_options,
                                              const ProgressCallback& progress,
                                              const CallOptions& options) = 0;

  // Least time for every budget, at most `max_points` of them; 0 for as many as there are.
  virtual absl::StatusOr<FrontierReply> GetFrontier(const Profile& profile,
                                                    const KeyOptions& key_options, int max_points,
                                                    const CallOptions& options) = 0;

  // The largest batch that a device holds, and the one with the most samples per second.
  virtual absl::StatusOr<BatchReply> FitBatch(const BatchQuery& query,
                                              const CallOptions& options) = 0;

  // Why the plan that GetPlan would hand out is what it is, for people.
  virtual absl::StatusOr<std::string> ExplainPlan(const PlanKey& key, const Budget& budget,
                                                  const CallOptions& options) = 0;

  // What happened when a plan was executed. With CallOptions::job, a later report on the same
  // revision replaces the earlier one.
  virtual absl::StatusOr<ExecutionVerdict> ReportExecution(const ExecutionMeasurement& measurement,
                                                           const CallOptions& options) = 0;

  // One page; PlanPager (plan_pager.h) turns them.
  virtual absl::StatusOr<PlanPage> ListPlans(const ListQuery& query,
                                             const CallOptions& options) = 0;

  // What an administrator decides. NOT_FOUND if there is no such revision, FAILED_PRECONDITION if the action does not
  // fit its state, ABORTED as the terms say.
  virtual absl::Status ChangePlan(const PlanRevision& revision, RevisionAction action,
                                  const ChangeTerms& terms, const CallOptions& options) = 0;

  // Drops all that is kept under a key; false if that was nothing, and no attempt before had no answer. ABORTED as the
  // terms say.
  virtual absl::StatusOr<bool> DeletePlan(const PlanKey& key, const ChangeTerms& terms,
                                          const CallOptions& options) = 0;

  // One page of all that administrators have decided: of at most 1000 keys, 0 leaves it to the server. The next one may
  // be asked of another server that shares the cache. A page may be empty and not be the last. UNAVAILABLE (reason
  // STORE_UNAVAILABLE) where some cannot be read: no part of them is handed out as if it were all.
  virtual absl::StatusOr<ExportedDecisions> ExportDecisions(const std::string& page_token,
                                                            int32_t page_size,
                                                            const CallOptions& options) = 0;

  // Takes decisions as ExportDecisions returns them, in any order, as many as a message holds
  // (Capabilities::max_message). Of two about the same the later one counts, so a repeated call changes nothing: what
  // the first attempt has taken is known to the next. INVALID_ARGUMENT for one that is none, by its index
  // ("decisions[3]"): then none is taken. UNAVAILABLE: some may have been.
  virtual absl::StatusOr<ImportedDecisions> ImportDecisions(
      const std::vector<std::string>& decisions, const CallOptions& options) = 0;

  // Limits, solvers, versions, and whom the server takes the caller for.
  virtual absl::StatusOr<Capabilities> GetCapabilities(const CallOptions& options) = 0;

  // For messages: "stowaged at unix:/run/stowage.sock", "local planning".
  virtual std::string name() const = 0;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_PLAN_CONNECTION_H_
