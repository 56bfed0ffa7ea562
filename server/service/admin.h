// What people and jobs may ask of cached plans beside the plans: list, pin, delete, report, explain.
//
// Entries belong to tenants. To whoever is not of the tenant, nor an administrator of all, an entry is
// not there: NOT_FOUND (reason PLAN_NOT_CACHED), as for an unknown key. Everything that changes an
// entry, and every report, is in the audit log.
//
// Waits for the store: not for gRPC's threads. Thread-safe.
#ifndef STOWAGE_SERVER_SERVICE_ADMIN_H_
#define STOWAGE_SERVER_SERVICE_ADMIN_H_

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/entries/reports.h"
#include "server/entries/revisions.h"
#include "server/observe/audit_log.h"
#include "server/observe/server_metrics.h"
#include "server/service/counted_steps.h"
#include "server/service/entry_update.h"
#include "server/store/plan_store.h"
#include "solvers/model/budget.h"
#include "solvers/solver.h"

namespace stowage {

// Who asks, as the server has found out, never as a message says.
struct AdminCaller {
  std::string request_id;
  std::string identity;
  std::string tenant;
  bool all_tenants = false;
  const StopToken* stop = nullptr;  // of the call, if it may end before its answer
};

enum class PinAction { kPin, kUnpin, kRollBack, kPromote, kFreeze, kUnfreeze };

struct ListedEntry {
  PlanKey key;
  std::shared_ptr<const PlanEntry> entry;
};

struct EntryPage {
  std::vector<ListedEntry> entries;
  // Where the next page starts; nothing on the last one.
  std::optional<PlanKey> next_after;
  size_t looked_at = 0;  // keys, of whomever
};

class PlanAdmin {
 public:
  // The pointers outlive this object; `audit` may be null, and `reported_steps`, of the servers that share the
  // store, where it is this one's alone.
  PlanAdmin(PlanStore* store, ServerMetrics* metrics, AuditLog* audit,
            ReportedSteps* reported_steps = nullptr);

  // At most `limit` entries after `after`. Takes the keys of the caller's tenant from the store, so that
  // a page costs its page. Where the store does not know of all keys whose they are (plan_store.h), or
  // entries have gone, no more than 1,000 keys are looked at: a page may be short, or empty, and not be
  // the last; it is cut short when the caller's token says so. Where the next one starts says no key of
  // others, but about where among all of them a store has got to.
  // UNAVAILABLE (reason STORE_UNAVAILABLE) when a tier of the store cannot say what it has: a list that
  // lacks plans is none.
  // With `unreachable`: what can be listed, and the stores that cannot say (plan_store.h) are added to it.
  absl::StatusOr<EntryPage> List(const AdminCaller& caller, const std::optional<PlanKey>& after,
                                 size_t limit, std::set<std::string>* unreachable = nullptr);
  // That key's entry alone, if there is one. UNAVAILABLE, and `unreachable`, as of List.
  absl::StatusOr<EntryPage> ListKey(const AdminCaller& caller, const PlanKey& key,
                                    std::set<std::string>* unreachable = nullptr);

  // As revisions.h says, NOT_FOUND and FAILED_PRECONDITION included; ABORTED (reason ETAG_MISMATCH) when
  // the entry has another etag than that (EtagOf; empty: any will do), ABORTED, too, when others keep
  // changing the entry; UNAVAILABLE (reason STORE_UNAVAILABLE) when a tier of the store could not take it: then
  // it has not happened. `id` is not looked at by kFreeze and kUnfreeze.
  absl::Status Pin(const AdminCaller& caller, const PlanKey& key, const RevisionId& id,
                   PinAction action, const std::string& etag = "");

  // False when there was nothing. ABORTED as for Pin; without an etag what somebody measures or solves
  // meanwhile may go with it. UNAVAILABLE (reason STORE_UNAVAILABLE) when a tier could not be
  // asked: the entry may still be there, or come back.
  absl::StatusOr<bool> Delete(const AdminCaller& caller, const PlanKey& key,
                              const std::string& etag = "");

  // What became of the report; NOT_FOUND when nothing is known of the plan.
  absl::StatusOr<ReportOutcome> Report(const AdminCaller& caller, const ExecutionReport& report);

  // Text for people. NOT_FOUND; UNAVAILABLE (reason STORE_UNAVAILABLE) when a tier could not be asked;
  // INVALID_ARGUMENT for the budget.
  absl::StatusOr<std::string> Explain(const AdminCaller& caller, const PlanKey& key,
                                      const Budget& budget);

 private:
  // What the caller may see, for people: nothing of it is kept in memory.
  PlanAnswer Find(const AdminCaller& caller, const PlanKey& key);
  // The key's entry, if there is one. UNAVAILABLE, and `unreachable`, as of List.
  absl::Status AddTo(EntryPage* page, const AdminCaller& caller, const PlanKey& key,
                     std::set<std::string>* unreachable);
  absl::StatusOr<std::vector<PlanKey>> KeysOf(const AdminCaller& caller,
                                              const std::optional<PlanKey>& after, size_t limit,
                                              std::set<std::string>* unreachable);
  // UpdateEntry for what is the caller's.
  absl::Status Update(const AdminCaller& caller, const PlanKey& key, Durability durability,
                      const EntryChange& change);
  absl::StatusOr<bool> EraseSeen(const AdminCaller& caller, const PlanKey& key,
                                 const std::string& etag);
  void CountReport(const AdminCaller& caller, const ExecutionReport& report,
                   const ReportJudgement& judgement, const PlanEntry& entry);
  void Audit(const AdminCaller& caller, AuditEvent event);

  PlanStore* const store_;
  ServerMetrics* const metrics_;
  AuditLog* const audit_;
  std::array<std::mutex, 64> reporting_;  // by key
  std::mutex deciding_;  // an entry whose etag was looked at is not pinned before it is deleted
  CountedSteps counted_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_SERVICE_ADMIN_H_
