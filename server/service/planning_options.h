// What planning may use.
#ifndef STOWAGE_SERVER_SERVICE_PLANNING_OPTIONS_H_
#define STOWAGE_SERVER_SERVICE_PLANNING_OPTIONS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "server/entries/planning_problem.h"
#include "server/observe/audit_log.h"
#include "server/runtime/account.h"
#include "server/runtime/intake.h"
#include "server/service/resolver.h"
#include "server/store/leased_solve.h"
#include "server/store/solve_lease.h"
#include "solvers/base/tracer.h"
#include "solvers/model/units.h"
#include "solvers/planner.h"

namespace stowage {

// What may change while a service runs.
struct PlanningLimits {
  size_t queue_limit = 256;        // >= 1; solves that may wait for a thread
  int64_t max_open_calls = 10000;  // of ComputePlan, who joined a flight included
  // What one account may have of threads, queues, open calls and bytes of requests. Where nobody is
  // asked who they are all are the anonymous account, and there is nobody to keep anything for.
  AccountShare share;
};

struct PlanningOptions {
  int solver_threads = 2;  // >= 1
  PlanningLimits limits;
  IntakeOptions intake;  // its share is the one above
  // Of the open requests for plans, in bytes as they came: a request counts as what came until it is
  // converted, then as what is kept of it, a byte for kMemoryPerRequestByte.
  Bytes request_bytes{int64_t{256} << 20};
  // Beside them, for reports and administration alone.
  Bytes request_reserve{int64_t{4} << 20};
  // For the tables of all threads together; each solve gets its share, at least 1 MiB.
  Bytes solver_memory{int64_t{4} << 30};
  // How long a flight may take, queue included, for callers without a deadline.
  std::chrono::nanoseconds max_solve_time = std::chrono::minutes(10);
  // How long a caller, whatever its deadline, may have a solve go on; queue included.
  std::chrono::nanoseconds max_deadline = std::chrono::minutes(30);
  // How long a solve goes on that nobody but a lost watcher has waited for, while no other one waits for its thread. A
  // client notices up to 25 s later than its server that a connection is gone without a word (the keepalive of both),
  // and comes back within the SDK's longest wait. At most 5 s of it where there is a lease.
  std::chrono::nanoseconds watch_grace = std::chrono::seconds(30);
  DigestFunction digest = Sha256;
  // Who of several servers solves; null: they share nothing. Outlives the service.
  SolveLease* lease = nullptr;
  // How a flight waits for another server's solve.
  LeasedSolveOptions lease_wait;
  // What the solver writes on its plans: those of older versions are solved anew.
  std::string solver_version = kSolverVersion;
  ResolverOptions background;  // how often, and how many wait
  // Told of plans that are solved anew; null: there is none. Outlives the service.
  AuditLog* audit = nullptr;
  // Of solves in the background, which are no call's; null: of none. Outlives the service.
  Tracer* tracer = nullptr;
  double trace_share = 0;  // of them, in [0, 1]
};

// Memory that is planned for a byte of a request: what came, its message, and what is made of it.
inline constexpr size_t kMemoryPerRequestByte = 4;

}  // namespace stowage

#endif  // STOWAGE_SERVER_SERVICE_PLANNING_OPTIONS_H_
