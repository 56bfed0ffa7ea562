// What planning may use.
#ifndef STOWAGE_SERVER_PLANNING_PLANNING_OPTIONS_H_
#define STOWAGE_SERVER_PLANNING_PLANNING_OPTIONS_H_

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "server/cache/solve_lease.h"
#include "server/planning/audit_log.h"
#include "server/planning/planning_problem.h"
#include "server/planning/resolver.h"
#include "solvers/model/units.h"
#include "solvers/planner.h"

namespace stowage {

struct PlanningOptions {
  int solver_threads = 2;    // >= 1
  size_t queue_limit = 256;  // >= 1; solves that may wait for a thread
  // Share of the threads and of the queue that the solves of one tenant may take, and of the calls
  // that may be open. Calls without a tenant have no such limit.
  double tenant_share = 0.5;
  int intake_threads = 2;  // >= 1; for large requests and slow stores
  size_t intake_limit = 4096;
  // Of the requests that are open, as they came; in memory each takes about four times that.
  Bytes request_bytes{int64_t{256} << 20};
  // For the tables of all threads together; each solve gets its share, at least 1 MiB.
  Bytes solver_memory{int64_t{4} << 30};
  // How long a flight may take, queue included, for callers without a deadline.
  std::chrono::nanoseconds max_solve_time = std::chrono::minutes(10);
  // How long a caller, whatever its deadline, may have a solve go on; queue included.
  std::chrono::nanoseconds max_deadline = std::chrono::minutes(30);
  int64_t max_open_calls = 10000;  // of ComputePlan, who joined a flight included
  DigestFunction digest = Sha256;
  // Who of several servers solves; null: they share nothing. Outlives the service.
  SolveLease* lease = nullptr;
  // What the solver writes on its plans: those of older versions are solved anew.
  std::string solver_version = kSolverVersion;
  ResolverOptions background;  // how often, and how many wait
  // Told of plans that are solved anew; null: there is none. Outlives the service.
  AuditLog* audit = nullptr;
};

// Solves of one tenant that may wait and run.
inline size_t TenantLimit(const PlanningOptions& options) {
  const double places =
      static_cast<double>(options.queue_limit) + static_cast<double>(options.solver_threads);
  return std::max<size_t>(static_cast<size_t>(places * options.tenant_share), 1);
}

// Threads that the solves of one tenant may take.
inline int TenantThreads(const PlanningOptions& options) {
  return std::max(static_cast<int>(options.solver_threads * options.tenant_share), 1);
}

// Calls of one tenant that may be open.
inline int64_t TenantCalls(const PlanningOptions& options) {
  const double share = static_cast<double>(options.max_open_calls) * options.tenant_share;
  return std::max<int64_t>(static_cast<int64_t>(share), 1);
}

}  // namespace stowage

#endif  // STOWAGE_SERVER_PLANNING_PLANNING_OPTIONS_H_
