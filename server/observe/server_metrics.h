// What the server counts, as an interface: the other folders say what happened and know no metrics
// library.
//
// Every method is cheap, never blocks for long, never fails and may be called from any thread.
// Times are seconds, sizes are bytes.
#ifndef STOWAGE_SERVER_OBSERVE_SERVER_METRICS_H_
#define STOWAGE_SERVER_OBSERVE_SERVER_METRICS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace stowage {

// The RPCs of stowage.v1, of either service.
enum class Rpc {
  kGetPlan,
  kComputePlan,
  kWatchPlan,
  kGetFrontier,
  kFitBatch,
  kExplainPlan,
  kReportExecution,
  kListPlans,
  kGetCapabilities,
  // Of PlanAdminService.
  kPinPlan,
  kUnpinPlan,
  kRollBackPlan,
  kPromotePlan,
  kFreezePlan,
  kUnfreezePlan,
  kDeletePlan,
  kExportDecisions,
  kImportDecisions,
};
inline constexpr size_t kRpcCount = 18;
const char* ToString(Rpc rpc);
// "stowage.v1.PlanService" or "stowage.v1.PlanAdminService".
const char* ServiceOf(Rpc rpc);

// What became of a search for a cached plan.
enum class PlanLookup {
  kHit,
  kDominance,  // a hit by a key that is not the caller's own: of a larger shape
  kNoEntry,    // the key is unknown
  kNoBudget,   // the key is known, no plan of it serves the budget
  kRefused,    // a plan serves the budget, but not under the caller's own costs
  kCollision,  // equal digests over different canonical bytes
};
inline constexpr size_t kPlanLookupCount = 6;
const char* ToString(PlanLookup lookup);

enum class SolveOutcome { kFound, kProvenInfeasible, kNotFound, kCancelled, kError };
inline constexpr size_t kSolveOutcomeCount = 5;
const char* ToString(SolveOutcome outcome);

// Where entries lie, the fastest first.
enum class CacheTier { kMemory, kSqlite, kRedis };
inline constexpr size_t kCacheTierCount = 3;
const char* ToString(CacheTier value);

// What went wrong in a tier. The answer goes on without it.
enum class CacheFailure {
  kCorrupt,      // an entry that is cut, changed or wrong was found, and dropped
  kForeign,      // one of another format version
  kUnavailable,  // the tier did not answer in time, or is being left alone after it did not
  kNotWritten,   // an entry could not be written: disk full, read-only
};
inline constexpr size_t kCacheFailureCount = 4;
const char* ToString(CacheFailure value);

// Why a call was turned away.
enum class Shed {
  kQueueFull,
  kTooManyCalls,
  kDeadline,      // what waits already takes longer than the caller would
  kQuota,         // of its tenant
  kRequestBytes,  // those that are open have too many
};
inline constexpr size_t kShedCount = 5;
const char* ToString(Shed value);

// What became of a report.
enum class ReportOutcome {
  kAccepted,
  kAbsurd,       // outside of what can be measured at all
  kOutlier,      // far from what the other jobs say
  kRepeated,     // the job has reported on this revision: replaced its own figures
  kUnknownPlan,  // no such key, revision or digest
};
inline constexpr size_t kReportOutcomeCount = 5;
const char* ToString(ReportOutcome value);

// Why a plan that is cached was solved anew.
enum class ResolveReason { kDrift, kUpgrade, kStale };
inline constexpr size_t kResolveReasonCount = 3;
const char* ToString(ResolveReason value);

// Which Redis: that of the plans, or the one that decisions have of their own.
enum class RedisUse { kCache, kDecisions };
inline constexpr size_t kRedisUseCount = 2;
const char* ToString(RedisUse value);

// What became of the wish to solve for the whole cluster.
enum class LeaseOutcome {
  kGranted,
  kWaited,   // another server solved it meanwhile
  kExpired,  // another server held it for too long
  kFailed,   // nobody could say: solved here
};
inline constexpr size_t kLeaseOutcomeCount = 4;
const char* ToString(LeaseOutcome value);

// Threads for what gRPC's own must not do (server/runtime/intake.h).
enum class Lane {
  kLookups,         // of plans, in a store that must be waited for
  kConversions,     // of large requests: the processor's work alone
  kJudging,         // of plans so far, for those who watch: the same, short
  kAdministration,  // lists, pins, deletions, reports, explanations: the store's, and may be long
  kParked,          // looks of solves that wait for another server's
};
inline constexpr size_t kLaneCount = 5;
const char* ToString(Lane value);

// Files of lines that nobody waits for, and the spans of traces, which are no lines but as easily lost.
enum class LineFile { kLog, kAudit, kSpans };
inline constexpr size_t kLineFileCount = 3;
const char* ToString(LineFile value);

// Of one execution under a plan, for one tenant.
struct ExecutionCost {
  double recompute_seconds = 0;  // device time lost to recomputing and waiting
  double bytes_freed = 0;        // below what store-all takes
  double steps = 0;
  double bytes_copied = 0;  // between device and host memory
};

class ServerMetrics {
 public:
  virtual ~ServerMetrics() = default;

  virtual void RpcStarted(Rpc rpc) = 0;
  // `code` is the number of a gRPC status code, 0..16.
  virtual void RpcHandled(Rpc rpc, int code, double seconds) = 0;

  virtual void CacheLookup(CacheTier tier, bool hit) = 0;
  virtual void CacheEvicted(CacheTier tier, int64_t entries) = 0;
  // An entry that is over the cache's limit even with its newest plan alone.
  virtual void CacheRefused(CacheTier tier) = 0;
  virtual void CacheSize(CacheTier tier, int64_t entries, int64_t bytes) = 0;
  virtual void CacheFailed(CacheTier tier, CacheFailure failure) = 0;
  // Of a look that may wait for the tier.
  virtual void CacheLooked(CacheTier tier, double seconds) = 0;
  // Whether that Redis is being left alone after it has failed.
  virtual void RedisResting(RedisUse use, bool resting) = 0;
  virtual void Leased(LeaseOutcome outcome) = 0;

  virtual void PlanLookedUp(PlanLookup lookup) = 0;
  // A cached or shared plan that the evaluator did not accept under a caller's costs.
  virtual void PlanRefused() = 0;

  virtual void Solved(const std::string& solver, SolveOutcome outcome, double seconds) = 0;
  // Of a plan just solved: makespan over the time without any budget (>= 1), makespan over lower
  // bound, less 1 (>= 0), and peak over budget (<= 1).
  virtual void PlanQuality(double overhead_ratio, double gap, double budget_use) = 0;
  // A caller got a plan by key alone: it need not profile.
  virtual void ProfilingSaved() = 0;
  virtual void Reported(ReportOutcome outcome) = 0;
  // Of an accepted report: measured over predicted time and peak.
  virtual void Measured(double time_ratio, double peak_ratio) = 0;
  // Of one that says it: what was reserved for the step over the measured peak.
  virtual void Reserved(double ratio) = 0;
  // A report says that the measured peak was over the budget.
  virtual void BudgetViolated() = 0;
  // Whom the configuration names now, beside those whom it named before.
  virtual void TenantsNamed(const std::vector<std::string>& tenants) = 0;
  // A tenant that nobody has named counts as "other".
  virtual void Executed(const std::string& tenant, const ExecutionCost& cost) = 0;
  virtual void Resolved(ResolveReason reason, SolveOutcome outcome) = 0;
  virtual void FlightJoined() = 0;
  virtual void QueueDepth(int64_t jobs) = 0;
  // From submission to the start of the solve.
  virtual void QueueWaited(double seconds) = 0;
  // Solver threads that solve now.
  virtual void SolversBusy(int64_t threads) = 0;
  // From submission to a thread of the lane.
  virtual void LaneWaited(Lane lane, double seconds) = 0;
  // What open requests hold now of --request_bytes and the reserve.
  virtual void RequestBytesHeld(int64_t bytes) = 0;
  virtual void CallShed(Shed reason) = 0;
  // Lines that are not written: too many of a kind, or a slow disk, reader or collector.
  virtual void LinesDropped(LineFile file, int64_t lines) = 0;
  // Of the server's own certificate, in seconds since 1970.
  virtual void CertificateExpires(double unix_seconds) = 0;
  // A watched file said something new: taken, or refused for a mistake in it.
  virtual void FileReloaded(bool accepted) = 0;
};

// Counts nothing.
class NoMetrics final : public ServerMetrics {
 public:
  void RpcStarted(Rpc) override {}
  void RpcHandled(Rpc, int, double) override {}
  void CacheLookup(CacheTier, bool) override {}
  void CacheEvicted(CacheTier, int64_t) override {}
  void CacheRefused(CacheTier) override {}
  void CacheSize(CacheTier, int64_t, int64_t) override {}
  void CacheFailed(CacheTier, CacheFailure) override {}
  void CacheLooked(CacheTier, double) override {}
  void RedisResting(RedisUse, bool) override {}
  void Leased(LeaseOutcome) override {}
  void PlanLookedUp(PlanLookup) override {}
  void PlanRefused() override {}
  void Solved(const std::string&, SolveOutcome, double) override {}
  void PlanQuality(double, double, double) override {}
  void ProfilingSaved() override {}
  void Reported(ReportOutcome) override {}
  void Measured(double, double) override {}
  void Reserved(double) override {}
  void BudgetViolated() override {}
  void TenantsNamed(const std::vector<std::string>&) override {}
  void Executed(const std::string&, const ExecutionCost&) override {}
  void Resolved(ResolveReason, SolveOutcome) override {}
  void FlightJoined() override {}
  void QueueDepth(int64_t) override {}
  void QueueWaited(double) override {}
  void SolversBusy(int64_t) override {}
  void LaneWaited(Lane, double) override {}
  void RequestBytesHeld(int64_t) override {}
  void CallShed(Shed) override {}
  void LinesDropped(LineFile, int64_t) override {}
  void CertificateExpires(double) override {}
  void FileReloaded(bool) override {}
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_OBSERVE_SERVER_METRICS_H_
