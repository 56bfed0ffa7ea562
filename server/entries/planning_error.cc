#include "server/entries/planning_error.h"

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace stowage {
namespace {

constexpr char kReason[] = "stowage/planning_reason";
constexpr char kRetryAfter[] = "stowage/planning_retry_after_ns";
constexpr char kFigure[] = "stowage/planning_figure/";

absl::Status WithPlanningReason(absl::Status status, const std::string& reason) {
  status.SetPayload(kReason, absl::Cord(reason));
  return status;
}

absl::Status WithFigure(absl::Status status, const std::string& name, const std::string& figure) {
  status.SetPayload(absl::StrCat(kFigure, name), absl::Cord(figure));
  return status;
}

// Of a limit that is reached.
absl::Status Limited(const absl::Status& status, int64_t limit) {
  return WithFigure(status, "limit", absl::StrCat(limit));
}

absl::Status Exhausted(const std::string& message, const std::string& reason,
                       std::chrono::nanoseconds retry_after) {
  absl::Status status = WithPlanningReason(absl::ResourceExhaustedError(message), reason);
  status.SetPayload(kRetryAfter, absl::Cord(absl::StrCat(retry_after.count())));
  return status;
}

absl::Status NoStoreError(const char* what, const std::string& why) {
  return WithPlanningReason(absl::UnavailableError(absl::StrCat(what, why)), "STORE_UNAVAILABLE");
}

}  // namespace

absl::Status PlanNotCachedError() {
  return WithPlanningReason(absl::NotFoundError("no plan is cached for these keys and this budget"),
                            "PLAN_NOT_CACHED");
}

absl::Status StoreUnavailableError(const std::string& why) {
  return NoStoreError("plans cannot be changed everywhere now: ", why);
}

absl::Status ListUnavailableError(const std::string& why) {
  return NoStoreError("the list would lack plans: ", why);
}

absl::Status ExportUnavailableError(const std::string& why) {
  return NoStoreError("the export would lack decisions: ", why);
}

absl::Status ImportUnavailableError(const std::string& why) {
  return NoStoreError("not all decisions are where all servers find them: ", why);
}

absl::Status EtagMismatchError(const std::string& etag) {
  return WithFigure(
      WithPlanningReason(absl::AbortedError("the key's plans are not as the etag says any more"),
                         "ETAG_MISMATCH"),
      "etag", etag);
}

absl::Status QueueFullError(size_t limit, std::chrono::nanoseconds retry_after) {
  const absl::Status full =
      Exhausted(absl::StrCat("all ", limit, " places of the solve queue are taken"), "QUEUE_FULL",
                retry_after);
  return WithFigure(Limited(full, static_cast<int64_t>(limit)), "position", absl::StrCat(limit));
}

absl::Status TooManyCallsError(int64_t limit, std::chrono::nanoseconds retry_after) {
  return Limited(Exhausted(absl::StrCat("all ", limit, " calls that may be open at once are"),
                           "TOO_MANY_CALLS", retry_after),
                 limit);
}

absl::Status RequestBytesError(size_t limit, std::chrono::nanoseconds retry_after) {
  return Limited(Exhausted(absl::StrCat("the requests that are open have too many of the ", limit,
                                        " bytes they may have"),
                           "REQUEST_BYTES", retry_after),
                 static_cast<int64_t>(limit));
}

absl::Status DeadlineTooShortError(std::chrono::nanoseconds expected,
                                   std::chrono::nanoseconds retry_after) {
  const std::chrono::duration<double> seconds = expected;
  return WithFigure(Exhausted(absl::StrCat("a plan would come in about ", seconds.count(),
                                           " s, after the caller's deadline"),
                              "DEADLINE_TOO_SHORT", retry_after),
                    "expected_ns", absl::StrCat(expected.count()));
}

absl::Status TenantQuotaError(size_t limit, std::chrono::nanoseconds retry_after) {
  return Limited(
      Exhausted(absl::StrCat("all ", limit, " solves that the tenant may have at once are"),
                "TENANT_QUOTA", retry_after),
      static_cast<int64_t>(limit));
}

absl::Status TenantCallsError(int64_t limit, std::chrono::nanoseconds retry_after) {
  return Limited(
      Exhausted(absl::StrCat("all ", limit, " calls that the tenant may have open at once are"),
                "TENANT_QUOTA", retry_after),
      limit);
}

absl::Status TenantBytesError(size_t limit, std::chrono::nanoseconds retry_after) {
  return Limited(Exhausted(absl::StrCat("the tenant's open requests have too many of the ", limit,
                                        " bytes they may have"),
                           "TENANT_QUOTA", retry_after),
                 static_cast<int64_t>(limit));
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

std::map<std::string, std::string> PlanningFigures(const absl::Status& status) {
  std::map<std::string, std::string> figures;
  status.ForEachPayload([&figures](absl::string_view url, const absl::Cord& payload) {
    if (absl::StartsWith(url, kFigure)) {
      figures.emplace(std::string(absl::StripPrefix(url, kFigure)), std::string(payload));
    }
  });
  return figures;
}

std::optional<std::chrono::nanoseconds> PlanningRetryAfter(const absl::Status& status) {
  const auto payload = status.GetPayload(kRetryAfter);
  int64_t nanos = 0;
  if (!payload || !absl::SimpleAtoi(std::string(*payload), &nanos)) return std::nullopt;
  return std::chrono::nanoseconds(nanos);
}

}  // namespace stowage
