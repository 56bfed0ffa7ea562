#include "server/metrics/prometheus_metrics.h"

#include <prometheus/exposer.h>
#include <prometheus/text_serializer.h>

#include <exception>

#include "absl/strings/str_cat.h"
#include "server/metrics/prometheus_families.h"

namespace stowage {

struct PrometheusMetrics::Endpoint {
  explicit Endpoint(const std::string& address) : exposer(address, 2) {}
  prometheus::Exposer exposer;
};

PrometheusMetrics::PrometheusMetrics(const std::vector<std::string>& solvers,
                                     const std::string& version)
    : families_(std::make_unique<Families>(solvers, version)) {}

PrometheusMetrics::~PrometheusMetrics() = default;

absl::StatusOr<std::string> PrometheusMetrics::Serve(const std::string& address) {
  // The one library here that reports by exception: it ends at this line.
  try {
    endpoint_ = std::make_unique<Endpoint>(address);
  } catch (const std::exception& error) {
    return absl::UnavailableError(absl::StrCat("cannot serve metrics on ", address,
                                               ": port in use or address not valid (", error.what(),
                                               ")"));
  }
  endpoint_->exposer.RegisterCollectable(families_->registry);
  const std::vector<int> ports = endpoint_->exposer.GetListeningPorts();
  if (ports.empty()) {
    return absl::UnavailableError(absl::StrCat("cannot serve metrics on ", address));
  }
  return absl::StrCat(address.substr(0, address.rfind(':')), ":", ports.front());
}

std::string PrometheusMetrics::Text() const {
  return prometheus::TextSerializer().Serialize(families_->registry->Collect());
}

void PrometheusMetrics::RpcStarted(Rpc rpc) {
  families_->rpcs[static_cast<size_t>(rpc)].started->Increment();
}

void PrometheusMetrics::RpcHandled(Rpc rpc, int code, double seconds) {
  const Families::RpcChildren& children = families_->rpcs[static_cast<size_t>(rpc)];
  constexpr size_t kUnknown = 2;
  const size_t index = static_cast<size_t>(code);
  children.handled[index < kStatusCodeCount ? index : kUnknown]->Increment();
  children.seconds->Observe(seconds);
}

void PrometheusMetrics::CacheLookup(bool hit) {
  (hit ? families_->cache_hits : families_->cache_misses)->Increment();
}

void PrometheusMetrics::CacheEvicted(int64_t entries) {
  families_->cache_evictions->Increment(static_cast<double>(entries));
}

void PrometheusMetrics::CacheRefused() { families_->cache_refusals->Increment(); }

void PrometheusMetrics::CacheSize(int64_t entries, int64_t bytes) {
  families_->cache_entries->Set(static_cast<double>(entries));
  families_->cache_bytes->Set(static_cast<double>(bytes));
}

void PrometheusMetrics::PlanLookedUp(PlanLookup lookup) {
  families_->plan_lookups[static_cast<size_t>(lookup)]->Increment();
}

void PrometheusMetrics::PlanRefused() { families_->plans_refused->Increment(); }

void PrometheusMetrics::Solved(const std::string& solver, SolveOutcome outcome, double seconds) {
  auto found = families_->solvers.find(solver);
  if (found == families_->solvers.end()) found = families_->solvers.find("other");
  found->second.outcomes[static_cast<size_t>(outcome)]->Increment();
  found->second.seconds->Observe(seconds);
}

void PrometheusMetrics::PlanQuality(double overhead_ratio, double gap) {
  families_->overhead_ratio->Observe(overhead_ratio);
  families_->gap_ratio->Observe(gap);
}

void PrometheusMetrics::FlightJoined() { families_->flights_joined->Increment(); }

void PrometheusMetrics::QueueDepth(int64_t jobs) {
  families_->queue_jobs->Set(static_cast<double>(jobs));
}

void PrometheusMetrics::QueueRefused() { families_->queue_refusals->Increment(); }

}  // namespace stowage
