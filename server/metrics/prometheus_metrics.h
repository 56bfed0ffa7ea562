// ServerMetrics for Prometheus, and the endpoint that it scrapes.
#ifndef STOWAGE_SERVER_METRICS_PROMETHEUS_METRICS_H_
#define STOWAGE_SERVER_METRICS_PROMETHEUS_METRICS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/metrics/server_metrics.h"

namespace stowage {

class PrometheusMetrics final : public ServerMetrics {
 public:
  // `solvers`: names that the label "solver" may take; any other counts as "other".
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
  void CacheLookup(bool hit) override;
  void CacheEvicted(int64_t entries) override;
  void CacheRefused() override;
  void CacheSize(int64_t entries, int64_t bytes) override;
  void PlanLookedUp(PlanLookup lookup) override;
  void PlanRefused() override;
  void Solved(const std::string& solver, SolveOutcome outcome, double seconds) override;
  void PlanQuality(double overhead_ratio, double gap) override;
  void FlightJoined() override;
  void QueueDepth(int64_t jobs) override;
  void QueueRefused() override;

 private:
  struct Endpoint;
  struct Families;

  std::unique_ptr<Families> families_;
  std::unique_ptr<Endpoint> endpoint_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_METRICS_PROMETHEUS_METRICS_H_
