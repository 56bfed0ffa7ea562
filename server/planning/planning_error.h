// Errors of planning, with the parts that a caller may act on: a reason, and when to try again.
// They travel as payloads of the status; server/rpc puts them on the wire.
#ifndef STOWAGE_SERVER_PLANNING_PLANNING_ERROR_H_
#define STOWAGE_SERVER_PLANNING_PLANNING_ERROR_H_

#include <chrono>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace stowage {

// NOT_FOUND, PLAN_NOT_CACHED: no key has a plan that serves the budget.
absl::Status PlanNotCachedError();
// RESOURCE_EXHAUSTED, QUEUE_FULL.
absl::Status QueueFullError(size_t limit, std::chrono::nanoseconds retry_after);
// UNAVAILABLE, DRAINING: this server is going away; another one may answer.
absl::Status DrainingError();
// CANCELLED and DEADLINE_EXCEEDED, of one caller.
absl::Status CallCancelledError();
absl::Status CallDeadlineError();

// "" when the status has none.
std::string PlanningReason(const absl::Status& status);
std::optional<std::chrono::nanoseconds> PlanningRetryAfter(const absl::Status& status);

}  // namespace stowage

#endif  // STOWAGE_SERVER_PLANNING_PLANNING_ERROR_H_
