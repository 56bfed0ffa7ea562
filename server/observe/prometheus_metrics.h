// ServerMetrics for Prometheus, and the endpoint that it scrapes.
#ifndef STOWAGE_SERVER_OBSERVE_PROMETHEUS_METRICS_H_
#define STOWAGE_SERVER_OBSERVE_PROMETHEUS_METRICS_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/observe/server_metrics.h"

namespace stowage {

// Tenants that have labels of their own, over the life of the process.
inline constexpr size_t kMostTenantLabels = 1000;

// Labels take the values that they are told; any other counts as "other", and so do tenants beyond
// the limit: no label grows without bound.
class PrometheusMetrics final : public ServerMetrics {
 public:
  PrometheusMetrics(const std::vector<std::string>& solvers, const std::string& version);
  ~PrometheusMetrics() override;

  // Serves the metrics on `address` ("127.0.0.1:7071", port 0 for any) at /metrics until this
  // object dies; returns the bound address. UNAVAILABLE when the address cannot be bound. At most
  // one call.
  absl::StatusOr<std::string> Serve(const std::string& address);

  // All metrics in the text format that Prometheus scrapes.
  std::string Text() const;

  void RpcStarted(Rpc rpc) override;
  void RpcHandled(Rpc rpc, int code, double seconds) override;
  void CacheLookup(CacheTier tier, bool hit) override;
  void CacheEvicted(CacheTier tier, int64_t entries) override;
  void CacheRefused(CacheTier tier) override;
  void CacheSize(CacheTier tier, int64_t entries, int64_t bytes) override;
  void CacheFailed(CacheTier tier, CacheFailure failure) override;
  void CacheLooked(CacheTier tier, double seconds) override;
  void RedisResting(RedisUse use, bool resting) override;
  void Leased(LeaseOutcome outcome) override;
  void PlanLookedUp(PlanLookup lookup) override;
  void PlanRefused() override;
  void Solved(const std::string& solver, SolveOutcome outcome, double seconds) override;
  void PlanQuality(double overhead_ratio, double gap, double budget_use) override;
  void ProfilingSaved() override;
  void Reported(ReportOutcome outcome) override;
  void Measured(double time_ratio, double peak_ratio) override;
  void Reserved(double ratio) override;
  void BudgetViolated() override;
  void TenantsNamed(const std::vector<std::string>& tenants) override;
  void Executed(const std::string& tenant, const ExecutionCost& cost) override;
  void Resolved(ResolveReason reason, SolveOutcome outcome) override;
  void FlightJoined() override;
  void QueueDepth(int64_t jobs) override;
  void QueueWaited(double seconds) override;
  void SolversBusy(int64_t threads) override;
  void LaneWaited(Lane lane, double seconds) override;
  void RequestBytesHeld(int64_t bytes) override;
  void CallShed(Shed reason) override;
  void LinesDropped(LineFile file, int64_t lines) override;
  void CertificateExpires(double unix_seconds) override;
  void FileReloaded(bool accepted) override;

 private:
  struct Endpoint;
  struct Families;

  std::unique_ptr<Families> families_;
  std::unique_ptr<Endpoint> endpoint_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_OBSERVE_PROMETHEUS_METRICS_H_
