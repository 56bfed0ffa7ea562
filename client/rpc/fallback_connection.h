// A second connection for when the first cannot be reached, or has no time: UNAVAILABLE from the primary
// (put a retrying connection there), or RESOURCE_EXHAUSTED with a time to retry after, sends the call to
// the fallback. Every other answer of the primary stands, errors included: a server that says no is not
// away, and one that still thinks at the deadline has used up the time that a second try would need.
//
// Reaching the primary, and trying again while it is busy, takes at most a quarter of a call's time: the
// rest is for planning here. One that was away is left alone for a while: calls go to the fallback at
// once, but one after each pause, which asks the primary for a moment and finds out whether it is back.
// The pauses grow while it is not.
//
// What makes plans falls back (progress of WatchPlan then stands still until the second has caught
// up). What a server is (GetCapabilities: its tenant is part of every key) and keeps (ExplainPlan,
// ReportExecution, ListPlans, ChangePlan, DeletePlan) is the primary's alone: its error is the answer;
// GetCapabilities of one that is left alone is UNAVAILABLE at once.
#ifndef STOWAGE_CLIENT_RPC_FALLBACK_CONNECTION_H_
#define STOWAGE_CLIENT_RPC_FALLBACK_CONNECTION_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "client/rpc/plan_connection.h"

namespace stowage {

struct FallbackPolicy {
  // How long a primary that is away is left alone, at first and at most.
  std::chrono::milliseconds first_pause{5000};
  std::chrono::milliseconds longest_pause{60000};
  // What finding out whether it is back may take.
  std::chrono::milliseconds probe{1000};
  std::function<CallOptions::Clock::time_point()> now = CallOptions::Clock::now;  // a test's own
};

// `said` is called at the first fall-back only, however often it happens, with one sentence for
// people: "stowaged at X is not reachable (...): falling back to local planning", or "is busy". On the
// calling thread; may be empty.
std::unique_ptr<PlanConnection> MakeFallbackConnection(std::unique_ptr<PlanConnection> primary,
                                                       std::unique_ptr<PlanConnection> fallback,
                                                       std::function<void(const std::string&)> said,
                                                       const FallbackPolicy& policy = {});

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_FALLBACK_CONNECTION_H_
