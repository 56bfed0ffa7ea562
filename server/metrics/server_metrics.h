// What the server counts, as an interface: the other rooms say what happened and know no metrics
// library.
//
// Every method is cheap, never blocks for long, never fails and may be called from any thread.
// Times are seconds, sizes are bytes.
#ifndef STOWAGE_SERVER_METRICS_SERVER_METRICS_H_
#define STOWAGE_SERVER_METRICS_SERVER_METRICS_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace stowage {

// The RPCs of stowage.v1.PlanService.
enum class Rpc {
  kGetPlan,
  kComputePlan,
  kWatchPlan,
  kGetFrontier,
  kFitBatch,
  kExplainPlan,
  kReportExecution,
  kListPlans,
  kPinPlan,
  kDeletePlan,
  kGetCapabilities,
};
inline constexpr size_t kRpcCount = 11;
const char* ToString(Rpc rpc);

// What became of a search for a cached plan.
enum class PlanLookup {
  kHit,
  kNoEntry,    // the key is unknown
  kNoBudget,   // the key is known, no plan of it serves the budget
  kRefused,    // a plan serves the budget, but not under the caller's own costs
  kCollision,  // equal digests over different canonical bytes
};
inline constexpr size_t kPlanLookupCount = 5;
const char* ToString(PlanLookup lookup);

enum class SolveOutcome { kFound, kProvenInfeasible, kNotFound, kCancelled, kError };
inline constexpr size_t kSolveOutcomeCount = 5;
const char* ToString(SolveOutcome outcome);

class ServerMetrics {
 public:
  virtual ~ServerMetrics() = default;

  virtual void RpcStarted(Rpc rpc) = 0;
  // `code` is the number of a gRPC status code, 0..16.
  virtual void RpcHandled(Rpc rpc, int code, double seconds) = 0;

  virtual void CacheLookup(bool hit) = 0;
  virtual void CacheEvicted(int64_t entries) = 0;
  // An entry that is over the cache's limit even with its newest plan alone.
  virtual void CacheRefused() = 0;
  virtual void CacheSize(int64_t entries, int64_t bytes) = 0;

  virtual void PlanLookedUp(PlanLookup lookup) = 0;
  // A cached or shared plan that the referee did not accept under a caller's costs.
  virtual void PlanRefused() = 0;

  virtual void Solved(const std::string& solver, SolveOutcome outcome, double seconds) = 0;
  // Of a plan just solved: makespan over the time without any budget (>= 1), and makespan over
  // lower bound, less 1 (>= 0).
  virtual void PlanQuality(double overhead_ratio, double gap) = 0;
  virtual void FlightJoined() = 0;
  virtual void QueueDepth(int64_t jobs) = 0;
  virtual void QueueRefused() = 0;
};

// Counts nothing.
class NoMetrics final : public ServerMetrics {
 public:
  void RpcStarted(Rpc) override {}
  void RpcHandled(Rpc, int, double) override {}
  void CacheLookup(bool) override {}
  void CacheEvicted(int64_t) override {}
  void CacheRefused() override {}
  void CacheSize(int64_t, int64_t) override {}
  void PlanLookedUp(PlanLookup) override {}
  void PlanRefused() override {}
  void Solved(const std::string&, SolveOutcome, double) override {}
  void PlanQuality(double, double) override {}
  void FlightJoined() override {}
  void QueueDepth(int64_t) override {}
  void QueueRefused() override {}
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_METRICS_SERVER_METRICS_H_
