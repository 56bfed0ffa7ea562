// ServerMetrics that tests read.
#ifndef STOWAGE_TESTS_SERVER_SUPPORT_COUNTING_METRICS_H_
#define STOWAGE_TESTS_SERVER_SUPPORT_COUNTING_METRICS_H_

#include <array>
#include <atomic>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "server/observe/server_metrics.h"

namespace stowage::testing {

class CountingMetrics final : public ServerMetrics {
 public:
  void RpcStarted(Rpc) override { ++rpcs_started; }
  void RpcHandled(Rpc, int code, double) override {
    ++rpcs_handled[static_cast<size_t>(code)];
    on_handled();
  }
  void CacheLookup(CacheTier, bool hit) override { ++(hit ? cache_hits : cache_misses); }
  void CacheEvicted(CacheTier, int64_t entries) override { cache_evictions += entries; }
  void CacheRefused(CacheTier) override { ++cache_refusals; }
  void CacheSize(CacheTier, int64_t entries, int64_t bytes) override {
    cache_entries = entries;
    cache_bytes = bytes;
  }
  void CacheFailed(CacheTier, CacheFailure failure) override {
    ++cache_failures[static_cast<size_t>(failure)];
  }
  void CacheLooked(CacheTier tier, double) override { ++cache_looks[static_cast<size_t>(tier)]; }
  void RedisResting(RedisUse use, bool resting) override {
    redis_resting[static_cast<size_t>(use)] = resting;
  }
  void Leased(LeaseOutcome outcome) override { ++leases[static_cast<size_t>(outcome)]; }
  void PlanLookedUp(PlanLookup lookup) override { ++lookups[static_cast<size_t>(lookup)]; }
  void PlanRefused() override { ++plans_refused; }
  void Solved(const std::string&, SolveOutcome outcome, double) override {
    ++solves[static_cast<size_t>(outcome)];
  }
  void PlanQuality(double, double, double) override { ++qualities; }
  void ProfilingSaved() override { ++profilings_saved; }
  void Reported(ReportOutcome outcome) override { ++reports[static_cast<size_t>(outcome)]; }
  void Measured(double, double) override { ++measured; }
  void Reserved(double) override { ++reserved; }
  void BudgetViolated() override { ++budget_violations; }
  void TenantsNamed(const std::vector<std::string>& tenants) override {
    std::lock_guard<std::mutex> lock(tenants_mutex_);
    tenants_.insert(tenants.begin(), tenants.end());
  }
  void Executed(const std::string&, const ExecutionCost& cost) override {
    ++executions;
    executed_steps += static_cast<int64_t>(cost.steps);
  }
  void Resolved(ResolveReason reason, SolveOutcome) override {
    ++resolves[static_cast<size_t>(reason)];
  }
  void FlightJoined() override { ++flights_joined; }
  void QueueDepth(int64_t jobs) override { queue_depth = jobs; }
  void QueueWaited(double) override { ++queue_waits; }
  void SolversBusy(int64_t threads) override { solvers_busy = threads; }
  void LaneWaited(Lane lane, double) override { ++lane_waits[static_cast<size_t>(lane)]; }
  void RequestBytesHeld(int64_t bytes) override { request_bytes = bytes; }
  void LinesDropped(LineFile file, int64_t lines) override {
    lines_dropped[static_cast<size_t>(file)] += lines;
  }
  void CertificateExpires(double unix_seconds) override { certificate_expiry = unix_seconds; }
  void CallShed(Shed reason) override { ++sheds[static_cast<size_t>(reason)]; }
  void FileReloaded(bool accepted) override { ++file_reloads[accepted ? 1 : 0]; }

  // All that were ever named.
  std::set<std::string> Tenants() const {
    std::lock_guard<std::mutex> lock(tenants_mutex_);
    return tenants_;
  }
  int64_t Lookups(PlanLookup lookup) const { return lookups[static_cast<size_t>(lookup)]; }
  int64_t Sheds(Shed reason) const { return sheds[static_cast<size_t>(reason)]; }
  int64_t Solves(SolveOutcome outcome) const { return solves[static_cast<size_t>(outcome)]; }

  std::atomic<int64_t> rpcs_started{0};
  std::array<std::atomic<int64_t>, 17> rpcs_handled{};
  // Called as a call ends, on the thread that ends it. Set before the first one.
  std::function<void()> on_handled = [] {};
  std::atomic<int64_t> cache_hits{0};
  std::atomic<int64_t> cache_misses{0};
  std::atomic<int64_t> cache_evictions{0};
  std::atomic<int64_t> cache_refusals{0};
  std::atomic<int64_t> cache_entries{0};
  std::atomic<int64_t> cache_bytes{0};
  std::array<std::atomic<int64_t>, kCacheFailureCount> cache_failures{};
  std::array<std::atomic<int64_t>, kLeaseOutcomeCount> leases{};
  std::array<std::atomic<int64_t>, kPlanLookupCount> lookups{};
  std::atomic<int64_t> plans_refused{0};
  std::array<std::atomic<int64_t>, kSolveOutcomeCount> solves{};
  std::atomic<int64_t> qualities{0};
  std::atomic<int64_t> profilings_saved{0};
  std::array<std::atomic<int64_t>, kReportOutcomeCount> reports{};
  std::atomic<int64_t> measured{0};
  std::atomic<int64_t> reserved{0};
  std::atomic<int64_t> budget_violations{0};
  std::atomic<int64_t> executions{0};
  std::atomic<int64_t> executed_steps{0};
  std::array<std::atomic<int64_t>, kResolveReasonCount> resolves{};
  std::atomic<int64_t> flights_joined{0};
  std::atomic<int64_t> queue_depth{0};
  std::atomic<int64_t> queue_waits{0};
  std::array<std::atomic<int64_t>, kCacheTierCount> cache_looks{};
  std::array<std::atomic<bool>, kRedisUseCount> redis_resting{};
  std::atomic<int64_t> solvers_busy{0};
  std::array<std::atomic<int64_t>, kLaneCount> lane_waits{};
  std::atomic<int64_t> request_bytes{0};
  std::array<std::atomic<int64_t>, kLineFileCount> lines_dropped{};
  std::atomic<double> certificate_expiry{0};
  std::array<std::atomic<int64_t>, kShedCount> sheds{};
  std::array<std::atomic<int64_t>, 2> file_reloads{};  // refused, accepted

 private:
  mutable std::mutex tenants_mutex_;
  std::set<std::string> tenants_;
};

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SERVER_SUPPORT_COUNTING_METRICS_H_
