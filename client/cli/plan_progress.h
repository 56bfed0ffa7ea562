// How a plan that is being made stands, in a few words.
#ifndef STOWAGE_CLIENT_CLI_PLAN_PROGRESS_H_
#define STOWAGE_CLIENT_CLI_PLAN_PROGRESS_H_

#include <string>

#include "client/rpc/plan_values.h"

namespace stowage {

// "57 s left", "0 s left" when it is over: whole seconds.
std::string TimeLeft(CallOptions::Clock::duration left);

// "275.6 ms, bound 272.5 ms, gap 1.1%, 57 s left"; without a plan so far "57 s left" alone. `left` is
// what the call has until its deadline.
std::string ProgressText(const PlanProgress& progress, CallOptions::Clock::duration left);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_PLAN_PROGRESS_H_
