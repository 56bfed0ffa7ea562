#include "server/planning/planning_error.h"

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

constexpr char kReason[] = "stowage/planning_reason";
constexpr char kRetryAfter[] = "stowage/planning_retry_after_ns";

absl::Status WithPlanningReason(absl::Status status, const std::string& reason) {
  status.SetPayload(kReason, absl::Cord(reason));
  return status;
}

absl::Status Exhausted(const std::string& message, const std::string& reason,
                       std::chrono::nanoseconds retry_after) {
  absl::Status status = WithPlanningReason(absl::ResourceExhaustedError(message), reason);
  status.SetPayload(kRetryAfter, absl::Cord(absl::StrCat(retry_after.count())));
  return status;
}

}  // namespace

absl::Status PlanNotCachedError() {
  return WithPlanningReason(absl::NotFoundError("no plan is cached for these keys and this budget"),
                            "PLAN_NOT_CACHED");
}

absl::Status StoreUnavailableError(const std::string& why) {
  return WithPlanningReason(
      absl::UnavailableError(absl::StrCat("plans cannot be changed everywhere now: ", why)),
      "STORE_UNAVAILABLE");
}

absl::Status ListUnavailableError(const std::string& why) {
  return WithPlanningReason(
      absl::UnavailableError(absl::StrCat("the list would lack plans: ", why)),
      "STORE_UNAVAILABLE");
}

absl::Status QueueFullError(size_t limit, std::chrono::nanoseconds retry_after) {
  return Exhausted(absl::StrCat("all ", limit, " places of the solve queue are taken"),
                   "QUEUE_FULL", retry_after);
}

absl::Status TooManyCallsError(int64_t limit, std::chrono::nanoseconds retry_after) {
  return Exhausted(absl::StrCat("all ", limit, " calls that may be open at once are"),
                   "TOO_MANY_CALLS", retry_after);
}

absl::Status RequestBytesError(size_t limit, std::chrono::nanoseconds retry_after) {
  return Exhausted(absl::StrCat("the requests that are open have too many of the ", limit,
                                " bytes they may have"),
                   "REQUEST_BYTES", retry_after);
}

absl::Status DeadlineTooShortError(std::chrono::nanoseconds expected,
                                   std::chrono::nanoseconds retry_after) {
  const std::chrono::duration<double> seconds = expected;
  return Exhausted(absl::StrCat("a plan would come in about ", seconds.count(),
                                " s, after the caller's deadline"),
                   "DEADLINE_TOO_SHORT", retry_after);
}

absl::Status TenantQuotaError(size_t limit, std::chrono::nanoseconds retry_after) {
  return Exhausted(absl::StrCat("all ", limit, " solves that the tenant may have at once are"),
                   "TENANT_QUOTA", retry_after);
}

absl::Status TenantCallsError(int64_t limit, std::chrono::nanoseconds retry_after) {
  return Exhausted(absl::StrCat("all ", limit, " calls that the tenant may have open at once are"),
                   "TENANT_QUOTA", retry_after);
}

absl::Status TenantBytesError(size_t limit, std::chrono::nanoseconds retry_after) {
  return Exhausted(absl::StrCat("the tenant's open requests have too many of the ", limit,
                                " bytes they may have"),
                   "TENANT_QUOTA", retry_after);
}

absl::Status OutOfMemoryError() {
  return WithPlanningReason(
      absl::ResourceExhaustedError("the server has not enough memory for this solve"),
      "OUT_OF_MEMORY");
}

absl::Status DrainingError() {
  return WithPlanningReason(absl::UnavailableError("the server is shutting down"), "DRAINING");
}

absl::Status CallCancelledError() { return absl::CancelledError("the caller cancelled"); }

absl::Status CallDeadlineError() {
  return absl::DeadlineExceededError("the caller's deadline passed before a plan was found");
}

absl::Status SolveTimeError(std::chrono::nanoseconds limit) {
  const std::chrono::duration<double> seconds = limit;
  return WithPlanningReason(
      absl::DeadlineExceededError(absl::StrCat("no plan was found within ", seconds.count(),
                                               " s, the server's bound for such a call")),
      "SOLVE_TIME");
}

std::string PlanningReason(const absl::Status& status) {
  const auto reason = status.GetPayload(kReason);
  return reason ? std::string(*reason) : "";
}

std::optional<std::chrono::nanoseconds> PlanningRetryAfter(const absl::Status& status) {
  const auto payload = status.GetPayload(kRetryAfter);
  int64_t nanos = 0;
  if (!payload || !absl::SimpleAtoi(std::string(*payload), &nanos)) return std::nullopt;
  return std::chrono::nanoseconds(nanos);
}

}  // namespace stowage
