#include "server/observe/prometheus_metrics.h"

#include <prometheus/exposer.h>
#include <prometheus/text_serializer.h>

#include <exception>

#include "absl/strings/str_cat.h"
#include "server/observe/process_metrics.h"
#include "server/observe/prometheus_families.h"

namespace stowage {

struct PrometheusMetrics::Endpoint {
  explicit Endpoint(const std::string& address) : exposer(address, 2) {}
  const std::shared_ptr<ProcessMetrics> process = std::make_shared<ProcessMetrics>();
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
  endpoint_->exposer.RegisterCollectable(endpoint_->process);
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

void PrometheusMetrics::CacheLookup(CacheTier tier, bool hit) {
  const Families::TierChildren& children = families_->Tier(tier);
  (hit ? children.hits : children.misses)->Increment();
}

void PrometheusMetrics::CacheEvicted(CacheTier tier, int64_t entries) {
  families_->Tier(tier).evictions->Increment(static_cast<double>(entries));
}

void PrometheusMetrics::CacheRefused(CacheTier tier) {
  families_->Tier(tier).refusals->Increment();
}

void PrometheusMetrics::CacheSize(CacheTier tier, int64_t entries, int64_t bytes) {
  families_->Tier(tier).entries->Set(static_cast<double>(entries));
  families_->Tier(tier).bytes->Set(static_cast<double>(bytes));
}

void PrometheusMetrics::CacheFailed(CacheTier tier, CacheFailure failure) {
  families_->Tier(tier).failures[static_cast<size_t>(failure)]->Increment();
}

void PrometheusMetrics::CacheLooked(CacheTier tier, double seconds) {
  families_->Tier(tier).look_seconds->Observe(seconds);
}

void PrometheusMetrics::RedisResting(RedisUse use, bool resting) {
  families_->redis_resting[static_cast<size_t>(use)]->Set(resting ? 1 : 0);
}

void PrometheusMetrics::Leased(LeaseOutcome outcome) {
  families_->leases[static_cast<size_t>(outcome)]->Increment();
}

void PrometheusMetrics::PlanLookedUp(PlanLookup lookup) {
  families_->plan_lookups[static_cast<size_t>(lookup)]->Increment();
}

void PrometheusMetrics::PlanRefused() { families_->plans_refused->Increment(); }

void PrometheusMetrics::Solved(const std::string& solver, SolveOutcome outcome, double seconds) {
  auto found = families_->solvers.find(solver);
  if (found == families_->solvers.end()) found = families_->solvers.find(kOtherLabel);
  found->second.outcomes[static_cast<size_t>(outcome)]->Increment();
  found->second.seconds->Observe(seconds);
}

void PrometheusMetrics::PlanQuality(double overhead_ratio, double gap, double budget_use) {
  families_->overhead_ratio->Observe(overhead_ratio);
  families_->gap_ratio->Observe(gap);
  families_->budget_use_ratio->Observe(budget_use);
}

void PrometheusMetrics::ProfilingSaved() { families_->profilings_saved->Increment(); }

void PrometheusMetrics::Reported(ReportOutcome outcome) {
  families_->reports[static_cast<size_t>(outcome)]->Increment();
}

void PrometheusMetrics::Measured(double time_ratio, double peak_ratio) {
  families_->measured_time_ratio->Observe(time_ratio);
  families_->measured_peak_ratio->Observe(peak_ratio);
}

void PrometheusMetrics::Reserved(double ratio) { families_->reserved_peak_ratio->Observe(ratio); }

void PrometheusMetrics::BudgetViolated() { families_->budget_violations->Increment(); }

void PrometheusMetrics::TenantsNamed(const std::vector<std::string>& tenants) {
  std::lock_guard<std::mutex> lock(families_->tenants_mutex);
  for (const std::string& tenant : tenants) {
    const bool has_room = families_->tenants.size() <= kMostTenantLabels;  // and "other"
    if (has_room && families_->tenants.count(tenant) == 0) families_->AddTenant(tenant);
  }
}

void PrometheusMetrics::Executed(const std::string& tenant, const ExecutionCost& cost) {
  const Families::TenantChildren children = families_->Tenant(tenant);
  children.recompute_seconds->Increment(cost.recompute_seconds);
  children.freed_byte_steps->Increment(cost.bytes_freed * cost.steps);
  children.steps->Increment(cost.steps);
  children.copied_bytes->Increment(cost.bytes_copied * cost.steps);
}

void PrometheusMetrics::Resolved(ResolveReason reason, SolveOutcome outcome) {
  families_->resolves[static_cast<size_t>(reason)][static_cast<size_t>(outcome)]->Increment();
}

void PrometheusMetrics::FlightJoined() { families_->flights_joined->Increment(); }

void PrometheusMetrics::QueueDepth(int64_t jobs) {
  families_->queue_jobs->Set(static_cast<double>(jobs));
}

void PrometheusMetrics::QueueWaited(double seconds) {
  families_->queue_wait_seconds->Observe(seconds);
}

void PrometheusMetrics::SolversBusy(int64_t threads) {
  families_->solvers_busy->Set(static_cast<double>(threads));
}

void PrometheusMetrics::LaneWaited(Lane lane, double seconds) {
  families_->lane_wait_seconds[static_cast<size_t>(lane)]->Observe(seconds);
}

void PrometheusMetrics::RequestBytesHeld(int64_t bytes) {
  families_->request_bytes->Set(static_cast<double>(bytes));
}

void PrometheusMetrics::CallShed(Shed reason) {
  families_->sheds[static_cast<size_t>(reason)]->Increment();
}

void PrometheusMetrics::LinesDropped(LineFile file, int64_t lines) {
  families_->lines_dropped[static_cast<size_t>(file)]->Increment(static_cast<double>(lines));
}

void PrometheusMetrics::CertificateExpires(double unix_seconds) {
  families_->CertificateExpiry()->Set(unix_seconds);
}

void PrometheusMetrics::FileReloaded(bool accepted) {
  families_->file_reloads[accepted ? 1 : 0]->Increment();
}

}  // namespace stowage
