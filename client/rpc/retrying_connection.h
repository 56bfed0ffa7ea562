// Tries again what a moment may cure: UNAVAILABLE, after a wait that grows and varies;
// RESOURCE_EXHAUSTED, after the wait that the server asked for, if it did. Never waits past the
// caller's deadline, nor past CallOptions::reach_by: when the wait would not fit, the last error is the
// answer.
//
// A call that got no answer may have been carried out, so UNAVAILABLE is tried again only where a
// second time changes nothing:
//   GetPlan, ComputePlan, GetFrontier, FitBatch, ExplainPlan, ListPlans, GetCapabilities, ExportDecisions
//                           always
//   ImportDecisions         always: what an attempt without an answer has taken counts as known
//   WatchPlan               always, with what is left of the call's time: the next try joins the solve, which goes on for a
//                           while without its watcher, or the server begins with what it had found; the share that is told
//                           never falls. What brought the work further counts as no failed attempt
//   ReportExecution         with a job's name: its later report replaces the earlier one
//   ChangePlan, DeletePlan  with an etag, under one request id (drawn here where there is none): a server that has
//                           made the change says so, another finds that the etag is not the one any more. That is
//                           ABORTED, and says that an attempt before it may have been carried out. Without an etag
//                           never: they may undo what another one did meanwhile
// RESOURCE_EXHAUSTED says that nothing was carried out: all of them are tried again.
#ifndef STOWAGE_CLIENT_RPC_RETRYING_CONNECTION_H_
#define STOWAGE_CLIENT_RPC_RETRYING_CONNECTION_H_

#include <chrono>
#include <functional>
#include <memory>

#include "client/rpc/plan_connection.h"

namespace stowage {

struct RetryPolicy {
  int max_attempts = 4;  // the first one included; at least 1
  std::chrono::milliseconds initial_backoff{100};
  std::chrono::milliseconds max_backoff{2000};
  double multiplier = 2.0;
  // The longest wait that a server may ask for; what it asks for grows by up to `jitter`.
  std::chrono::milliseconds max_server_delay{10000};
  // Each wait of our own is drawn from backoff * [1 - jitter, 1 + jitter], so that a fleet does not come back
  // in step.
  double jitter = 0.3;
};

// What a test replaces.
struct RetryEnvironment {
  std::function<CallOptions::Clock::time_point()> now;
  // Returns early when the token, which may be null, is cancelled.
  std::function<void(std::chrono::nanoseconds, const CancelToken*)> sleep;
  std::function<double()> uniform;  // in [0, 1); called from any thread

  static RetryEnvironment Real();
};

std::unique_ptr<PlanConnection> MakeRetryingConnection(
    std::unique_ptr<PlanConnection> inner, const RetryPolicy& policy = {},
    RetryEnvironment environment = RetryEnvironment::Real());

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_RETRYING_CONNECTION_H_
