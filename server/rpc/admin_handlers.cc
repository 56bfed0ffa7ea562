#include "server/rpc/admin_handlers.h"

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/codec/codec.h"
#include "proto/codec/enum_map.h"
#include "server/rpc/plan_page.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

constexpr int32_t kMostPerPage = 1000;
constexpr int32_t kDefaultPerPage = 100;

constexpr EnumMap<v1::PinAction, PinAction, 6> kActions{{
    {v1::PIN_ACTION_PIN, PinAction::kPin},
    {v1::PIN_ACTION_UNPIN, PinAction::kUnpin},
    {v1::PIN_ACTION_ROLL_BACK, PinAction::kRollBack},
    {v1::PIN_ACTION_PROMOTE, PinAction::kPromote},
    {v1::PIN_ACTION_FREEZE, PinAction::kFreeze},
    {v1::PIN_ACTION_UNFREEZE, PinAction::kUnfreeze},
}};

AdminCaller CallerOf(const RpcRecord& record, const StopToken& stop) {
  const Caller& caller = *record.caller();
  return AdminCaller{record.id(), caller.identity, caller.tenant, !caller.scope(), &stop};
}

// Converted, and told to the record.
absl::StatusOr<PlanKey> KeyOf(const v1::PlanKey& message, RpcRecord* record) {
  absl::StatusOr<PlanKey> key = FromProto(message);
  if (key.ok()) record->SetKey(*key);
  return key;
}

absl::Status AtLeast(const std::string& field, int64_t value, int64_t least) {
  if (value >= least) return absl::OkStatus();
  return FieldError(field, value, absl::StrCat("must be >= ", least));
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

absl::StatusOr<Report> ToReport(const v1::ReportExecutionRequest& request, RpcRecord* record) {
  if (absl::Status status = CheckFigures(request); !status.ok()) return status;
  const absl::StatusOr<PlanKey> key = KeyOf(request.key(), record);
  if (!key.ok()) return key.status();
  const absl::StatusOr<Digest> digest = DigestFromProto("plan_digest", request.plan_digest());
  if (!digest.ok()) return digest.status();
  Report report;
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
  const AdminCaller caller = CallerOf(*record, stop);
  const auto tenant = caller.all_tenants ? std::nullopt : std::make_optional(caller.tenant);
  const absl::StatusOr<std::optional<PlanKey>> after = FromPageToken(request.page_token(), tenant);
  if (!after.ok()) return after.status();
  if (request.has_key()) {
    const absl::StatusOr<PlanKey> key = KeyOf(request.key(), record);
    if (!key.ok()) return key.status();
    FillPage(admin_->ListKey(caller, *key), tenant, limits_, response);
    return absl::OkStatus();
  }
  const int32_t size = request.page_size() == 0 ? kDefaultPerPage : request.page_size();
  const absl::StatusOr<EntryPage> page = admin_->List(caller, *after, static_cast<size_t>(size));
  if (!page.ok()) return page.status();
  FillPage(*page, tenant, limits_, response);
  return absl::OkStatus();
}

absl::Status AdminHandlers::Handle(const v1::PinPlanRequest& request, const StopToken& stop,
                                   RpcRecord* record, v1::PinPlanResponse*) const {
  const absl::StatusOr<PlanKey> key = KeyOf(request.key(), record);
  if (!key.ok()) return key.status();
  PinAction action = PinAction::kPin;
  absl::Status status = FromWire(kActions, "action", request.action(), &action);
  if (!status.ok()) return status;
  if (action == PinAction::kFreeze || action == PinAction::kUnfreeze) {
    return admin_->Pin(CallerOf(*record, stop), *key, RevisionId(), action);
  }
  status = AtLeast("budget_bytes", request.budget_bytes(), 0);
  if (!status.ok()) return status;
  status = AtLeast("revision", request.revision(), 1);
  if (!status.ok()) return status;
  return admin_->Pin(CallerOf(*record, stop), *key,
                     RevisionId{Bytes(request.budget_bytes()), request.revision()}, action);
}

absl::Status AdminHandlers::Handle(const v1::DeletePlanRequest& request, const StopToken& stop,
                                   RpcRecord* record, v1::DeletePlanResponse* response) const {
  const absl::StatusOr<PlanKey> key = KeyOf(request.key(), record);
  if (!key.ok()) return key.status();
  const absl::StatusOr<bool> deleted = admin_->Delete(CallerOf(*record, stop), *key);
  if (!deleted.ok()) return deleted.status();
  response->set_deleted(*deleted);
  return absl::OkStatus();
}

absl::Status AdminHandlers::Handle(const v1::ReportExecutionRequest& request, const StopToken& stop,
                                   RpcRecord* record, v1::ReportExecutionResponse* response) const {
  const absl::StatusOr<Report> report = ToReport(request, record);
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
