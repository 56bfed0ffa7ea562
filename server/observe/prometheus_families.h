// The families of PrometheusMetrics with all their children. Family::Add takes a lock: every child
// is made once, here (those of tenants when they are named), and kept as a pointer. Private to server/observe.
#ifndef STOWAGE_SERVER_OBSERVE_PROMETHEUS_FAMILIES_H_
#define STOWAGE_SERVER_OBSERVE_PROMETHEUS_FAMILIES_H_

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/observe/prometheus_metrics.h"

namespace stowage {

inline constexpr size_t kStatusCodeCount = 17;
// What a label says for all values that it may not take.
inline constexpr char kOtherLabel[] = "other";

struct PrometheusMetrics::Families {
  Families(const std::vector<std::string>& solver_names, const std::string& version);

  struct RpcChildren {
    prometheus::Counter* started = nullptr;
    std::array<prometheus::Counter*, kStatusCodeCount> handled{};
    prometheus::Histogram* seconds = nullptr;
  };
  struct TierChildren {
    prometheus::Counter* hits = nullptr;
    prometheus::Counter* misses = nullptr;
    prometheus::Counter* evictions = nullptr;
    prometheus::Counter* refusals = nullptr;
    prometheus::Gauge* entries = nullptr;
    prometheus::Gauge* bytes = nullptr;
    std::array<prometheus::Counter*, kCacheFailureCount> failures{};
    prometheus::Histogram* look_seconds = nullptr;
  };
  struct TenantChildren {
    prometheus::Counter* recompute_seconds = nullptr;
    prometheus::Counter* freed_byte_steps = nullptr;
    prometheus::Counter* steps = nullptr;
    prometheus::Counter* copied_bytes = nullptr;
  };
  struct SolverChildren {
    std::array<prometheus::Counter*, kSolveOutcomeCount> outcomes{};
    prometheus::Histogram* seconds = nullptr;
  };

  std::shared_ptr<prometheus::Registry> registry;
  std::array<RpcChildren, kRpcCount> rpcs;
  std::array<TierChildren, kCacheTierCount> tiers;
  std::array<prometheus::Gauge*, kRedisUseCount> redis_resting{};
  std::array<prometheus::Counter*, kLeaseOutcomeCount> leases{};
  std::array<prometheus::Counter*, kPlanLookupCount> plan_lookups{};
  prometheus::Counter* plans_refused = nullptr;
  std::map<std::string, SolverChildren> solvers;
  prometheus::Histogram* overhead_ratio = nullptr;
  prometheus::Histogram* gap_ratio = nullptr;
  prometheus::Histogram* budget_use_ratio = nullptr;
  prometheus::Counter* profilings_saved = nullptr;
  std::array<prometheus::Counter*, kReportOutcomeCount> reports{};
  prometheus::Histogram* measured_time_ratio = nullptr;
  prometheus::Histogram* measured_peak_ratio = nullptr;
  prometheus::Histogram* reserved_peak_ratio = nullptr;
  prometheus::Counter* budget_violations = nullptr;
  mutable std::mutex tenants_mutex;
  std::map<std::string, TenantChildren> tenants;  // "other" among them
  std::array<std::array<prometheus::Counter*, kSolveOutcomeCount>, kResolveReasonCount> resolves{};
  prometheus::Counter* flights_joined = nullptr;
  prometheus::Gauge* queue_jobs = nullptr;
  prometheus::Histogram* queue_wait_seconds = nullptr;
  prometheus::Gauge* solvers_busy = nullptr;
  std::array<prometheus::Histogram*, kLaneCount> lane_wait_seconds{};
  prometheus::Gauge* request_bytes = nullptr;
  std::array<prometheus::Counter*, kShedCount> sheds{};
  std::array<prometheus::Counter*, 2> file_reloads{};  // refused, accepted
  std::array<prometheus::Counter*, kLineFileCount> lines_dropped{};

  const TierChildren& Tier(CacheTier tier) const { return tiers[static_cast<size_t>(tier)]; }

  // Not there before it is first asked for: a server without a certificate has no such time.
  prometheus::Gauge* CertificateExpiry() const { return &certificate_expiry_->Add({}); }

  // The tenant's, or those of "other".
  TenantChildren Tenant(const std::string& name) const;
  // A new one. Under tenants_mutex.
  void AddTenant(const std::string& name);

 private:
  prometheus::Family<prometheus::Counter>* recompute_seconds_ = nullptr;
  prometheus::Family<prometheus::Counter>* freed_byte_steps_ = nullptr;
  prometheus::Family<prometheus::Counter>* reported_steps_ = nullptr;
  prometheus::Family<prometheus::Counter>* copied_bytes_ = nullptr;
  prometheus::Family<prometheus::Gauge>* certificate_expiry_ = nullptr;

  prometheus::Counter* Counter(const std::string& name, const std::string& help);
  prometheus::Gauge* Gauge(const std::string& name, const std::string& help);
  prometheus::Histogram* Histogram(const std::string& name, const std::string& help,
                                   const prometheus::Histogram::BucketBoundaries& buckets);
  // One counter per value of an enum, in its order.
  template <size_t N, class Name>
  void Enumerate(const std::string& name, const std::string& help, const std::string& label,
                 std::array<prometheus::Counter*, N>* children, Name value);
  void AddRpcs();
  void AddCache();
  void AddPlans();
  void AddQuality();
  void AddReports();
  void AddTenants();
  void AddQueue();
  void AddFiles();
  void AddSolvers(const std::vector<std::string>& names);
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_OBSERVE_PROMETHEUS_FAMILIES_H_
