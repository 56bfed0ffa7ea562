// Errors of planning, with the parts that a caller may act on: a reason, figures, and when to try again.
// They travel as payloads of the status; server/rpc puts them on the wire.
#ifndef STOWAGE_SERVER_ENTRIES_PLANNING_ERROR_H_
#define STOWAGE_SERVER_ENTRIES_PLANNING_ERROR_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace stowage {

// NOT_FOUND, PLAN_NOT_CACHED: no key has a plan that serves the budget.
absl::Status PlanNotCachedError();
// UNAVAILABLE, STORE_UNAVAILABLE: a tier of the store did not do what was asked for; nothing is
// certain to be changed, and it may be tried again.
absl::Status StoreUnavailableError(const std::string& why);
// The same of a list, which lacked plans, of an export of decisions, and of an import.
absl::Status ListUnavailableError(const std::string& why);
absl::Status ExportUnavailableError(const std::string& why);
absl::Status ImportUnavailableError(const std::string& why);
// ABORTED, ETAG_MISMATCH: somebody has changed the entry since the caller looked at it; `etag` holds now.
absl::Status EtagMismatchError(const std::string& etag);
// RESOURCE_EXHAUSTED, QUEUE_FULL and TOO_MANY_CALLS: with a time to retry after, for waiting helps.
absl::Status QueueFullError(size_t limit, std::chrono::nanoseconds retry_after);
absl::Status TooManyCallsError(int64_t limit, std::chrono::nanoseconds retry_after);
// RESOURCE_EXHAUSTED, REQUEST_BYTES: the open requests have too many bytes for one more.
absl::Status RequestBytesError(size_t limit, std::chrono::nanoseconds retry_after);
// RESOURCE_EXHAUSTED, DEADLINE_TOO_SHORT: what waits already takes longer than the caller would.
absl::Status DeadlineTooShortError(std::chrono::nanoseconds expected,
                                   std::chrono::nanoseconds retry_after);
// RESOURCE_EXHAUSTED, TENANT_QUOTA: the share of the queue is taken that is the caller's tenant's, or
// without one the caller's own (account.h).
absl::Status TenantQuotaError(size_t limit, std::chrono::nanoseconds retry_after);
// RESOURCE_EXHAUSTED, TENANT_QUOTA: the share of the open calls, or of the bytes of open requests, is
// taken.
absl::Status TenantCallsError(int64_t limit, std::chrono::nanoseconds retry_after);
absl::Status TenantBytesError(size_t limit, std::chrono::nanoseconds retry_after);
// RESOURCE_EXHAUSTED, OUT_OF_MEMORY: a solve needed more than the process can get.
absl::Status OutOfMemoryError();
// UNAVAILABLE, DRAINING: this server is going away; another one may answer.
absl::Status DrainingError();
// CANCELLED and DEADLINE_EXCEEDED, of one caller.
absl::Status CallCancelledError();
absl::Status CallDeadlineError();
// DEADLINE_EXCEEDED, SOLVE_TIME: the server's own bounds, for callers without a deadline and for those
// with a later one.
absl::Status SolveTimeError(std::chrono::nanoseconds limit);

// "" when the status has none.
std::string PlanningReason(const absl::Status& status);
// By their names: "limit" of what is taken, "position" in the queue, "expected_ns" until a plan would come,
// "etag"; empty when the status has none.
std::map<std::string, std::string> PlanningFigures(const absl::Status& status);
std::optional<std::chrono::nanoseconds> PlanningRetryAfter(const absl::Status& status);

}  // namespace stowage

#endif  // STOWAGE_SERVER_ENTRIES_PLANNING_ERROR_H_
