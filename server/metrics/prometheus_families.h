// The families of PrometheusMetrics with all their children. Family::Add takes a lock: every child
// is made once, here, and kept as a pointer. Private to server/metrics.
#ifndef STOWAGE_SERVER_METRICS_PROMETHEUS_FAMILIES_H_
#define STOWAGE_SERVER_METRICS_PROMETHEUS_FAMILIES_H_

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/metrics/prometheus_metrics.h"

namespace stowage {

inline constexpr size_t kStatusCodeCount = 17;

struct PrometheusMetrics::Families {
  Families(const std::vector<std::string>& solvers, const std::string& version);

  struct RpcChildren {
    prometheus::Counter* started = nullptr;
    std::array<prometheus::Counter*, kStatusCodeCount> handled{};
    prometheus::Histogram* seconds = nullptr;
  };
  struct SolverChildren {
    std::array<prometheus::Counter*, kSolveOutcomeCount> outcomes{};
    prometheus::Histogram* seconds = nullptr;
  };

  std::shared_ptr<prometheus::Registry> registry;
  std::array<RpcChildren, kRpcCount> rpcs;
  prometheus::Counter* cache_hits = nullptr;
  prometheus::Counter* cache_misses = nullptr;
  prometheus::Counter* cache_evictions = nullptr;
  prometheus::Counter* cache_refusals = nullptr;
  prometheus::Gauge* cache_entries = nullptr;
  prometheus::Gauge* cache_bytes = nullptr;
  std::array<prometheus::Counter*, kPlanLookupCount> plan_lookups{};
  prometheus::Counter* plans_refused = nullptr;
  std::map<std::string, SolverChildren> solvers;
  prometheus::Histogram* overhead_ratio = nullptr;
  prometheus::Histogram* gap_ratio = nullptr;
  prometheus::Counter* flights_joined = nullptr;
  prometheus::Gauge* queue_jobs = nullptr;
  prometheus::Counter* queue_refusals = nullptr;

 private:
  prometheus::Counter* Counter(const std::string& name, const std::string& help);
  prometheus::Gauge* Gauge(const std::string& name, const std::string& help);
  void AddRpcs();
  void AddCache();
  void AddPlans();
  void AddSolvers(const std::vector<std::string>& names);
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_METRICS_PROMETHEUS_FAMILIES_H_
