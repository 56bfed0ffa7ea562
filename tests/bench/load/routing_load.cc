#include "tests/bench/load/routing_load.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "client/rpc/rendezvous.h"
#include "proto/codec/codec.h"
#include "solvers/model/canonical.h"
#include "tests/bench/load/call_driver.h"
#include "tests/bench/load/service_process.h"

namespace stowage {
namespace {

// A network's request, and where it belongs.
struct Network {
  std::string request;
  PlanKey key;
};

absl::StatusOr<std::vector<Network>> Networks(const RoutingOptions& options) {
  std::vector<Network> networks;
  for (int seed = 0; seed < options.networks; ++seed) {
    const v1::ComputePlanRequest request = PlanRequest(options.stages, seed, 0.5);
    const absl::StatusOr<Profile> profile = FromProto(request.profile());
    if (!profile.ok()) return profile.status();
    networks.push_back({request.SerializeAsString(), MakePlanKey(*profile, {})});
  }
  return networks;
}

class Fleet {
 public:
  static absl::StatusOr<Fleet> Start(const RoutingOptions& options) {
    Fleet fleet;
    for (int i = 0; i < options.replicas; ++i) {
      absl::StatusOr<ServiceProcess> replica = ServiceProcess::Start(options.stowaged);
      if (!replica.ok()) return replica.status();
      fleet.drivers_.push_back(std::make_unique<CallDriver>(replica->address(), 2));
      fleet.replicas_.push_back(*std::move(replica));
    }
    return fleet;
  }

  size_t size() const { return replicas_.size(); }

  size_t ReplicaOf(const PlanKey& key) const {
    size_t best = 0;
    for (size_t i = 1; i < size(); ++i) {
      if (Score(key, i) > Score(key, best)) best = i;
    }
    return best;
  }

  void Ask(size_t replica, const std::string& request, const CallDriver::Done& done) {
    drivers_[replica]->Start("/stowage.v1.PlanService/ComputePlan", request,
                             std::chrono::seconds(120), done);
  }

  // Until all have answered.
  void Finish() {
    for (const auto& driver : drivers_) driver->Finish();
  }

  double Sum(const std::string& metric) const {
    double sum = 0;
    for (const ServiceProcess& replica : replicas_) sum += replica.Metric(metric);
    return sum;
  }

 private:
  uint64_t Score(const PlanKey& key, size_t replica) const {
    return RendezvousScore(key, replicas_[replica].address());
  }

  std::vector<ServiceProcess> replicas_;
  std::vector<std::unique_ptr<CallDriver>> drivers_;
};

enum class Way { kInTurn, kByKey };

// Answers with the bytes that the replicas' memories hold.
absl::StatusOr<double> RunWay(const RoutingOptions& options, Way way) {
  if (options.empty_store) options.empty_store();
  const absl::StatusOr<std::vector<Network>> networks = Networks(options);
  if (!networks.ok()) return networks.status();
  absl::StatusOr<Fleet> fleet = Fleet::Start(options);
  if (!fleet.ok()) return fleet.status();
  absl::Status status;
  std::vector<double> new_seconds, known_seconds;
  size_t turn = 0;
  for (int job = 0; job < options.jobs; ++job) {
    for (const Network& network : *networks) {
      double last = 0;
      for (int rank = 0; rank < options.ranks; ++rank) {
        const size_t replica =
            way == Way::kInTurn ? turn++ % fleet->size() : fleet->ReplicaOf(network.key);
        fleet->Ask(replica, network.request, [&](const CallResult& result) {
          last = std::max(last, result.seconds);
          if (!result.status.ok()) status = absl::InternalError(result.status.error_message());
        });
      }
      fleet->Finish();
      if (!status.ok()) return status;
      (job == 0 ? new_seconds : known_seconds).push_back(last);
      turn += 1;  // the next job does not begin where this one ended
    }
  }
  const double solves = fleet->Sum("stowage_solves_total");
  const double leases = fleet->Sum("stowage_leases_total");
  const double bytes = fleet->Sum("stowage_cache_bytes{tier=\"memory\"");
  std::printf(
      "%-8s solves %.0f, leases for each %.2f, last rank of a new network %.1f ms, of a known one "
      "%.2f ms, in the replicas' memories %.0f entries, %.2f MB\n",
      way == Way::kInTurn ? "in turn" : "by key", solves, leases / std::max(solves, 1.0),
      1e3 * Quantile(new_seconds, 0.5), 1e3 * Quantile(known_seconds, 0.5),
      fleet->Sum("stowage_cache_entries{tier=\"memory\""), 1e-6 * bytes);
  if (solves != options.networks) return absl::InternalError("not one solve for each network");
  if (way == Way::kByKey && leases != solves) {
    return absl::InternalError("by key not one lease for each solve");
  }
  return bytes;
}

}  // namespace

absl::Status RunRouting(const RoutingOptions& options) {
  std::printf("%d replicas, %d networks of %d stages, %d jobs of each, %d ranks that ask at once\n",
              options.replicas, options.networks, options.stages, options.jobs, options.ranks);
  const absl::StatusOr<double> in_turn = RunWay(options, Way::kInTurn);
  if (!in_turn.ok()) return in_turn.status();
  const absl::StatusOr<double> by_key = RunWay(options, Way::kByKey);
  if (!by_key.ok()) return by_key.status();
  if (options.replicas > 1 && *by_key >= *in_turn) {
    return absl::InternalError("asking by key does not hold less");
  }
  return absl::OkStatus();
}

}  // namespace stowage
