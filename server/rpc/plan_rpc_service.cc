#include "server/rpc/plan_rpc_service.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/codec/codec.h"
#include "server/rpc/build_info.h"
#include "server/rpc/compute_plan_call.h"
#include "server/rpc/compute_request.h"
#include "server/rpc/fit_batch_call.h"
#include "server/rpc/get_frontier_call.h"
#include "server/rpc/get_plan_bytes.h"
#include "server/rpc/rpc_status.h"
#include "server/rpc/watch_plan_call.h"
#include "solvers/model/field_error.h"
#include "solvers/planner.h"

namespace stowage {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

// Of the plans that are handed out now: thousands of them.
constexpr Bytes kReplyBytes{int64_t{32} << 20};

ServerUnaryReactor* FinishNow(CallbackServerContext* context, const RpcRecord& record,
                              const absl::Status& status) {
  ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(record.Handled(ToWireStatus(status)));
  return reactor;
}

// The codec calls it key.digest; here it is one of several.
absl::Status KeyError(int index, const absl::Status& status) {
  const std::optional<FieldViolation> violation = GetFieldViolation(status);
  if (!violation) return status;
  const std::string below = violation->field.substr(std::string("key").size());
  return FieldError(absl::StrCat("keys[", index, "]", below), violation->value, violation->rule);
}

struct KeysAndBudget {
  std::vector<PlanKey> keys;
  Budget budget;
};

absl::StatusOr<KeysAndBudget> Convert(const grpc::ByteBuffer& bytes) {
  v1::GetPlanRequest request;
  if (absl::Status status = ParseRequest(bytes, &request); !status.ok()) return status;
  if (absl::Status status = CheckLimits(request); !status.ok()) return status;
  KeysAndBudget asked;
  for (int i = 0; i < request.keys_size(); ++i) {
    const absl::StatusOr<PlanKey> key = FromProto(request.keys(i));
    if (!key.ok()) return KeyError(i, key.status());
    asked.keys.push_back(*key);
  }
  const absl::StatusOr<Budget> budget = FromProto(request.budget());
  if (!budget.ok()) return budget.status();
  asked.budget = *budget;
  return asked;
}

}  // namespace

PlanRpcService::PlanRpcService(const RequestLimits& limits, const std::string& version,
                               PlanningService* planning, const RpcMonitor& monitor)
    : limits_(limits),
      version_(version),
      planning_(planning),
      monitor_(monitor),
      replies_(kReplyBytes) {}

ServerUnaryReactor* PlanRpcService::GetPlan(CallbackServerContext* context,
                                            const grpc::ByteBuffer* request,
                                            grpc::ByteBuffer* response) {
  RpcRecord record(Rpc::kGetPlan, context, monitor_);
  if (!record.caller().ok()) return FinishNow(context, record, record.caller().status());
  const absl::StatusOr<KeysAndBudget> asked = Convert(*request);
  if (!asked.ok()) return FinishNow(context, record, asked.status());
  ServerUnaryReactor* reactor = context->DefaultReactor();
  planning_->GetPlanAsync(
      asked->keys, asked->budget,
      [this, reactor, record, response](const absl::StatusOr<CachedPlan>& cached) mutable {
        const absl::Status status = cached.ok() ? Fill(*cached, response) : cached.status();
        if (cached.ok()) record.SetKey(cached->key);
        reactor->Finish(record.Handled(ToWireStatus(status)));
      },
      record.caller()->scope());
  return reactor;
}

absl::Status PlanRpcService::Fill(const CachedPlan& cached, grpc::ByteBuffer* response) {
  *response = GetPlanReply(cached, &replies_);
  return CheckSize(response->Length(), limits_);
}

ServerUnaryReactor* PlanRpcService::ComputePlan(CallbackServerContext* context,
                                                const v1::ComputePlanRequest* request,
                                                v1::ComputePlanResponse* response) {
  const RpcRecord record(Rpc::kComputePlan, context, monitor_);
  return new ComputePlanCall(request, DeadlineOf(*context), planning_, record, limits_, response);
}

ServerUnaryReactor* PlanRpcService::GetCapabilities(CallbackServerContext* context,
                                                    const v1::GetCapabilitiesRequest*,
                                                    v1::GetCapabilitiesResponse* response) {
  const RpcRecord record(Rpc::kGetCapabilities, context, monitor_);
  if (!record.caller().ok()) return FinishNow(context, record, record.caller().status());
  response->set_server_version(version_);
  response->set_build(BuildInfo());
  if (monitor_.authenticator != nullptr) {
    response->set_identity(record.caller()->identity);
    response->set_tenant(record.caller()->tenant);
  }
  response->set_role(ToString(record.caller()->role));
  response->set_key_encoding_version(kEncodingVersion);
  for (const SolverInfo& solver : SolverInfos()) {
    v1::SolverInfo* info = response->add_solvers();
    info->set_name(solver.name);
    info->set_description(solver.description);
    info->set_schedule_class(solver.schedule_class);
  }
  response->set_max_message_bytes(limits_.max_message_bytes);
  response->set_max_stages(limits_.max_stages);
  response->set_max_vertices(limits_.max_vertices);
  for (const Rpc rpc : {Rpc::kGetPlan, Rpc::kComputePlan, Rpc::kWatchPlan, Rpc::kGetFrontier,
                        Rpc::kFitBatch, Rpc::kGetCapabilities}) {
    response->add_implemented_rpcs(ToString(rpc));
  }
  return FinishNow(context, record, absl::OkStatus());
}

ServerUnaryReactor* PlanRpcService::Refuse(CallbackServerContext* context, Rpc rpc) {
  const RpcRecord record(rpc, context, monitor_);
  if (!record.caller().ok()) return FinishNow(context, record, record.caller().status());
  return FinishNow(context, record, NotImplemented(rpc));
}

grpc::ServerWriteReactor<v1::WatchPlanResponse>* PlanRpcService::WatchPlan(
    CallbackServerContext* context, const v1::WatchPlanRequest* request) {
  const RpcRecord record(Rpc::kWatchPlan, context, monitor_);
  return new WatchPlanCall(request, DeadlineOf(*context), planning_, record, limits_);
}

ServerUnaryReactor* PlanRpcService::GetFrontier(CallbackServerContext* context,
                                                const v1::GetFrontierRequest* request,
                                                v1::GetFrontierResponse* response) {
  const RpcRecord record(Rpc::kGetFrontier, context, monitor_);
  return new GetFrontierCall(request, DeadlineOf(*context), planning_, record, limits_, response);
}

ServerUnaryReactor* PlanRpcService::FitBatch(CallbackServerContext* context,
                                             const v1::FitBatchRequest* request,
                                             v1::FitBatchResponse* response) {
  const RpcRecord record(Rpc::kFitBatch, context, monitor_);
  return new FitBatchCall(request, DeadlineOf(*context), planning_, record, limits_, response);
}

ServerUnaryReactor* PlanRpcService::ExplainPlan(CallbackServerContext* context,
                                                const v1::ExplainPlanRequest*,
                                                v1::ExplainPlanResponse*) {
  return Refuse(context, Rpc::kExplainPlan);
}

ServerUnaryReactor* PlanRpcService::ReportExecution(CallbackServerContext* context,
                                                    const v1::ReportExecutionRequest*,
                                                    v1::ReportExecutionResponse*) {
  return Refuse(context, Rpc::kReportExecution);
}

ServerUnaryReactor* PlanRpcService::ListPlans(CallbackServerContext* context,
                                              const v1::ListPlansRequest*, v1::ListPlansResponse*) {
  return Refuse(context, Rpc::kListPlans);
}

ServerUnaryReactor* PlanRpcService::PinPlan(CallbackServerContext* context,
                                            const v1::PinPlanRequest*, v1::PinPlanResponse*) {
  return Refuse(context, Rpc::kPinPlan);
}

ServerUnaryReactor* PlanRpcService::DeletePlan(CallbackServerContext* context,
                                               const v1::DeletePlanRequest*,
                                               v1::DeletePlanResponse*) {
  return Refuse(context, Rpc::kDeletePlan);
}

}  // namespace stowage
