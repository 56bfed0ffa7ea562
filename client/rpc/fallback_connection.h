// A second connection for when the first cannot be reached, has no time, or takes too much of it: UNAVAILABLE
// from the primary (put a retrying connection there), or RESOURCE_EXHAUSTED with a time to retry after, sends the
// call to the fallback. Every other answer of the primary stands, errors included: a server that says no is not away.
//
// Reaching the primary, and trying again while it is busy, takes at most a quarter of a call's time: the
// rest is for planning here. One that was away is left alone for a while: calls go to the fallback at
// once, but one after each pause, which asks the primary for a moment and finds out whether it is back.
// The pauses grow while it is not.
//
// A job's start waits no longer than planning here would take, and FallbackPolicy::patience for each of its calls: one, where
// the primary hangs, and up to three, where it answers each just in time. Of ComputePlan and
// WatchPlan the primary has so long, or that quarter, to itself; then the fallback plans beside it, and who is first
// wins. An answer of the primary ends the fallback's solve, errors included but those that send calls to the fallback,
// and DEADLINE_EXCEEDED: then the fallback's is the answer. A plan of the fallback, or its proof that nothing
// fits, is the answer; where it fails, or finds and proves nothing, the primary is waited for. A call to the primary that
// nobody waits for goes on, so that the server has the plan for those who ask next: to its deadline, the caller's token, or
// the end of the connection, the four latest of them.
//
// GetPlan and GetCapabilities, with which a start begins, need no solve: a primary that has not answered them within the
// patience is as one that cannot be reached. GetFrontier and FitBatch have the whole of their time: no start
// waits for them, and they are many solves, which a busy machine has better made elsewhere. What is beside is on threads
// of its own; progress is told on the thread of the call, while it goes on.
// A forked child, which has no server, and the patience kNever start none.
//
// What makes plans falls back (progress of WatchPlan then stands still until the second has caught
// up). What a server is (GetCapabilities: its tenant is part of every key) and keeps (ExplainPlan,
// ReportExecution, ListPlans, ChangePlan, DeletePlan, ExportDecisions, ImportDecisions) is the primary's alone: its error is the answer;
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
  // How long the primary has to itself before the fallback plans beside it. What is not positive counts as kNever.
  std::chrono::milliseconds patience{2000};
  // Beyond any call, as is whatever is more: the primary has all of its time to itself.
  static constexpr std::chrono::milliseconds kNever = std::chrono::hours(24 * 365);
  std::function<CallOptions::Clock::time_point()> now = CallOptions::Clock::now;  // a test's own
};

// `said` is called at the first fall-back only, however often it happens, with one sentence for
// people: "stowaged at X is not reachable (...): falling back to local planning", or "is busy (...)", or "has not
// answered yet" where the fallback was first. On the calling thread; may be empty.
std::unique_ptr<PlanConnection> MakeFallbackConnection(std::unique_ptr<PlanConnection> primary,
                                                       std::unique_ptr<PlanConnection> fallback,
                                                       std::function<void(const std::string&)> said,
                                                       const FallbackPolicy& policy = {});

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_FALLBACK_CONNECTION_H_
