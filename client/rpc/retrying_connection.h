// Tries again what a moment may cure: UNAVAILABLE, after a wait that grows and varies;
// RESOURCE_EXHAUSTED, after the wait that the server asked for, if it did. All calls of
// PlanConnection are idempotent. Never waits past the caller's deadline: when the wait would not
// fit, the last error is the answer.
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
  std::function<void(std::chrono::nanoseconds)> sleep;
  std::function<double()> uniform;  // in [0, 1); called from any thread

  static RetryEnvironment Real();
};

std::unique_ptr<PlanConnection> MakeRetryingConnection(
    std::unique_ptr<PlanConnection> inner, const RetryPolicy& policy = {},
    RetryEnvironment environment = RetryEnvironment::Real());

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_RETRYING_CONNECTION_H_
