#include "server/rpc/admin_handlers.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/codec/codec.h"
#include "server/rpc/admin_caller.h"
#include "server/rpc/plan_filter.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

constexpr int32_t kMostPerPage = 1000;
constexpr int32_t kDefaultPerPage = 100;
// Entries are read before it is known whether the page has room for their plans.
constexpr size_t kEntriesAtOnce = 32;

// Tells lists apart for their tokens.
std::string ListOf(const AdminCaller& caller, const v1::ListPlansRequest& request) {
  const std::string whose = caller.all_tenants ? "all" : absl::StrCat("tenant ", caller.tenant);
  return absl::StrCat(whose, "\n", request.key().digest(), "\n", request.filter());
}

// Converted, and told to the record.
absl::StatusOr<PlanKey> KeyOf(const v1::PlanKey& message, RpcRecord* record) {
  absl::StatusOr<PlanKey> key = FromProto(message);
  if (key.ok()) record->SetKey(*key);
  return key;
}

absl::Status CheckFigures(const v1::ReportExecutionRequest& request) {
  struct Rule {
    const char* field;
    int64_t value;
    int64_t least;
  };
  for (const Rule& rule :
       {Rule{"revision", request.revision(), 1}, Rule{"steps", request.steps(), 1},
        Rule{"measured_step_time_ns", request.measured_step_time_ns(), 0},
        Rule{"measured_peak_bytes", request.measured_peak_bytes(), 0},
        Rule{"budget_bytes", request.budget_bytes(), 0},
        Rule{"measured_reserved_peak_bytes", request.measured_reserved_peak_bytes(), 0},
        Rule{"offloaded_bytes", request.offloaded_bytes(), 0},
        Rule{"prefetched_bytes", request.prefetched_bytes(), 0}}) {
    if (absl::Status status = AtLeast(rule.field, rule.value, rule.least); !status.ok()) {
      return status;
    }
  }
  return CheckJob(request.job());
}

absl::StatusOr<ExecutionReport> ToReport(const v1::ReportExecutionRequest& request,
                                         RpcRecord* record) {
  if (absl::Status status = CheckFigures(request); !status.ok()) return status;
  const absl::StatusOr<PlanKey> key = KeyOf(request.key(), record);
  if (!key.ok()) return key.status();
  const absl::StatusOr<Digest> digest = DigestFromProto("plan_digest", request.plan_digest());
  if (!digest.ok()) return digest.status();
  ExecutionReport report;
  report.key = *key;
  report.plan_digest = *digest;
  report.revision = request.revision();
  report.budget = Bytes(request.budget_bytes());
  report.steps = request.steps();
  report.step_time = Nanos(request.measured_step_time_ns());
  report.peak = Bytes(request.measured_peak_bytes());
  report.reserved_peak = Bytes(request.measured_reserved_peak_bytes());
  report.offloaded = Bytes(request.offloaded_bytes());
  report.prefetched = Bytes(request.prefetched_bytes());
  report.job = request.job();
  report.identity = record->caller()->identity;
  report.tenant = record->caller()->tenant;
  return report;
}

// Of a report on a plan that is known.
v1::ReportVerdict ToProto(ReportOutcome outcome) {
  switch (outcome) {
    case ReportOutcome::kAccepted:
    case ReportOutcome::kRepeated:
      return v1::REPORT_VERDICT_ACCEPTED;
    case ReportOutcome::kOutlier:
      return v1::REPORT_VERDICT_OUTLIER;
    case ReportOutcome::kAbsurd:
      return v1::REPORT_VERDICT_ABSURD;
    case ReportOutcome::kUnknownPlan:
      break;
  }
  return v1::REPORT_VERDICT_UNSPECIFIED;
}

}  // namespace

absl::Status AdminHandlers::Handle(const v1::ListPlansRequest& request, const StopToken& stop,
                                   RpcRecord* record, v1::ListPlansResponse* response) const {
  if (request.page_size() < 0 || request.page_size() > kMostPerPage) {
    return FieldError("page_size", request.page_size(),
                      absl::StrCat("must be in [0, ", kMostPerPage, "]"));
  }
  const absl::StatusOr<PlanFilter> filter = PlanFilter::Parse(request.filter());
  if (!filter.ok()) return filter.status();
  const AdminCaller caller = CallerOf(*record, stop);
  const std::string list = ListOf(caller, request);
  const absl::StatusOr<std::optional<PagePosition>> after =
      FromPageToken(request.page_token(), list);
  if (!after.ok()) return after.status();
  std::optional<PlanKey> only;
  if (request.has_key()) {
    const absl::StatusOr<PlanKey> key = KeyOf(request.key(), record);
    if (!key.ok()) return key.status();
    only = *key;
  }
  const auto most =
      static_cast<size_t>(request.page_size() == 0 ? kDefaultPerPage : request.page_size());
  PageWriter page(*filter, most, limits_, response);
  const size_t entries = filter->TakesAll() ? most : size_t{kMostPerPage};
  std::set<std::string> unreachable;
  const absl::StatusOr<std::optional<PagePosition>> next =
      FillPage(caller, {only, *after, entries},
               request.return_partial_success() ? &unreachable : nullptr, &page);
  if (!next.ok()) return next.status();
  for (const std::string& store : unreachable) response->add_unreachable(store);
  response->set_next_page_token(ToPageToken(*next, list));
  return absl::OkStatus();
}

absl::StatusOr<std::optional<PagePosition>> AdminHandlers::FillPage(
    const AdminCaller& caller, const Part& part, std::set<std::string>* unreachable,
    PageWriter* page) const {
  const std::optional<PagePosition>& after = part.after;
  // What the page before has not shown of its last key.
  if (after && after->revision) {
    const absl::StatusOr<EntryPage> rest = admin_->ListKey(caller, after->key, unreachable);
    if (!rest.ok()) return rest.status();
    for (const ListedEntry& listed : rest->entries) {
      if (!page->Add(listed, after->revision)) return page->position() ? page->position() : after;
    }
  }
  if (part.only && after) return std::optional<PagePosition>();
  std::optional<PlanKey> after_key;
  if (after) after_key = after->key;
  size_t entries = 0;
  size_t keys = 0;
  while (entries < part.entries && keys < size_t{kMostPerPage}) {
    const size_t some = std::min(kEntriesAtOnce, part.entries - entries);
    const absl::StatusOr<EntryPage> found =
        part.only ? admin_->ListKey(caller, *part.only, unreachable)
                  : admin_->List(caller, after_key, some, unreachable);
    if (!found.ok()) return found.status();
    for (const ListedEntry& listed : found->entries) {
      if (!page->Add(listed)) return page->position();
    }
    if (!found->next_after) return std::optional<PagePosition>();
    after_key = found->next_after;
    entries += found->entries.size();
    keys += found->looked_at;
  }
  return std::make_optional(PagePosition{*after_key, std::nullopt});
}

absl::Status AdminHandlers::Handle(const v1::ReportExecutionRequest& request, const StopToken& stop,
                                   RpcRecord* record, v1::ReportExecutionResponse* response) const {
  const absl::StatusOr<ExecutionReport> report = ToReport(request, record);
  if (!report.ok()) return report.status();
  const absl::StatusOr<ReportOutcome> outcome = admin_->Report(CallerOf(*record, stop), *report);
  if (!outcome.ok()) return outcome.status();
  response->set_verdict(ToProto(*outcome));
  return absl::OkStatus();
}

absl::Status AdminHandlers::Handle(const v1::ExplainPlanRequest& request, const StopToken& stop,
                                   RpcRecord* record, v1::ExplainPlanResponse* response) const {
  const absl::StatusOr<PlanKey> key = KeyOf(request.key(), record);
  if (!key.ok()) return key.status();
  const absl::StatusOr<Budget> budget = FromProto(request.budget());
  if (!budget.ok()) return budget.status();
  absl::StatusOr<std::string> text = admin_->Explain(CallerOf(*record, stop), *key, *budget);
  if (!text.ok()) return text.status();
  response->set_explanation(*std::move(text));
  return absl::OkStatus();
}

}  // namespace stowage
