// A server in a process of its own, and a plan in its cache.
#ifndef STOWAGE_TESTS_BENCH_LOAD_SERVICE_PROCESS_H_
#define STOWAGE_TESTS_BENCH_LOAD_SERVICE_PROCESS_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "stowage/v1/plan_service.pb.h"
#include "tests/bench/load/call_driver.h"
#include "tests/server/process/child_process.h"

namespace stowage {

class ServiceProcess {
 public:
  // UNAVAILABLE, with what it printed, unless it says where it listens.
  static absl::StatusOr<ServiceProcess> Start(const std::vector<std::string>& command);

  const std::string& address() const { return address_; }
  testing::ChildProcess& process() { return *process_; }
  int64_t resident_bytes() const;
  // Sum over all children of a metric family, 0 without such a family or an endpoint. `family` may go on to the end of a label:
  // name{label="value"
  double Metric(const std::string& family) const;

 private:
  std::unique_ptr<testing::ChildProcess> process_;
  std::string address_;
  std::string metrics_address_;
};

// `stages` stages of sizes that differ with `seed`; at most 8 KiB for 50 stages.
v1::ComputePlanRequest PlanRequest(int stages, int seed, double share_of_store_all);

// A GetPlan that hits, as bytes.
struct CachedRequest {
  std::string request;
  size_t reply_bytes = 0;
};

// Computes a plan and asks for it by key.
absl::StatusOr<CachedRequest> CachePlan(int stages, int seed, CallDriver* driver);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_LOAD_SERVICE_PROCESS_H_
