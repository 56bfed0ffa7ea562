#include "server/rpc/plan_rpc_service.h"

#include <google/protobuf/arena.h>

#include <array>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/codec/codec.h"
#include "proto/codec/enum_map.h"
#include "server/rpc/admin_call.h"
#include "server/rpc/build_info.h"
#include "server/rpc/compute_plan_call.h"
#include "server/rpc/compute_request.h"
#include "server/rpc/fit_batch_call.h"
#include "server/rpc/get_frontier_call.h"
#include "server/rpc/get_plan_bytes.h"
#include "server/rpc/hand_out.h"
#include "server/rpc/watch_plan_call.h"
#include "server/rpc/wire_message.h"
#include "server/service/solve_outcome.h"
#include "solvers/model/field_error.h"
#include "solvers/planner.h"

namespace stowage {
namespace {

using grpc::ByteBuffer;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

// Of the plans that are handed out now: thousands of them.
constexpr Bytes kReplyBytes{int64_t{32} << 20};

ServerUnaryReactor* FinishNow(CallbackServerContext* context, const RpcRecord& record,
                              const absl::Status& status) {
  ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(record.Handled(status));
  return reactor;
}

// The codec calls it key.digest; here it is one of several.
absl::Status KeyError(int index, const absl::Status& status) {
  const std::optional<FieldViolation> violation = GetFieldViolation(status);
  if (!violation) return status;
  const std::string below = violation->field.substr(std::string("key").size());
  return FieldError(absl::StrCat("keys[", index, "]", below), violation->value, violation->rule);
}

struct AskedByKey {
  std::vector<PlanKey> keys;
  Budget budget;
};

constexpr EnumMap<v1::PlanView, bool, 3> kIsBasic{{
    {v1::PLAN_VIEW_UNSPECIFIED, false},
    {v1::PLAN_VIEW_BASIC, true},
    {v1::PLAN_VIEW_FULL, false},
}};

absl::StatusOr<AskedByKey> Convert(const v1::GetPlanRequest& request) {
  if (absl::Status status = CheckLimits(request); !status.ok()) return status;
  AskedByKey asked;
  asked.keys.reserve(static_cast<size_t>(request.keys_size()));
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
                               PlanningService* planning, PlanStore* store,
                               const RpcMonitor& monitor)
    : limits_(limits),
      version_(version),
      planning_(planning),
      monitor_(monitor),
      admin_(store, monitor.metrics, monitor.audit, monitor.reported_steps),
      handlers_(limits, &admin_),
      replies_(kReplyBytes) {}

absl::StatusOr<PlanRpcService::Wish> PlanRpcService::WishOf(const v1::GetPlanRequest& request) {
  Wish wish;
  wish.job = request.job();
  absl::Status status = FromWire(kIsBasic, "view", request.view(), &wish.basic);
  if (!status.ok()) return status;
  if (request.held_digest().empty()) return wish;
  const absl::StatusOr<Digest> held = DigestFromProto("held_digest", request.held_digest());
  if (!held.ok()) return held.status();
  wish.held = *held;
  return wish;
}

ServerUnaryReactor* PlanRpcService::GetPlan(CallbackServerContext* context,
                                            const ByteBuffer* request, ByteBuffer* response) {
  RpcRecord record(Rpc::kGetPlan, context, monitor_);
  if (!record.caller().ok()) return FinishNow(context, record, record.caller().status());
  // A request is small: its parts are on the stack.
  alignas(std::max_align_t) std::array<char, 1024> block;
  google::protobuf::ArenaOptions on_stack;
  on_stack.initial_block = block.data();
  on_stack.initial_block_size = block.size();
  google::protobuf::Arena arena(on_stack);
  auto* const message = google::protobuf::Arena::CreateMessage<v1::GetPlanRequest>(&arena);
  const absl::Status parsed = ParseRequest(*request, message);
  if (!parsed.ok()) return FinishNow(context, record, parsed);
  const absl::StatusOr<AskedByKey> asked = Convert(*message);
  if (!asked.ok()) return FinishNow(context, record, asked.status());
  const absl::StatusOr<Wish> wish = WishOf(*message);
  if (!wish.ok()) return FinishNow(context, record, wish.status());
  ServerUnaryReactor* reactor = context->DefaultReactor();
  const TenantScope scope = record.caller()->scope();
  const Account account = record.caller()->account();
  const TraceScope trace = record.trace();
  planning_->GetPlanAsync(
      asked->keys, asked->budget,
      [this, reactor, record = std::move(record), response,
       wish = *wish](const absl::StatusOr<CachedPlan>& cached) mutable {
        const absl::Status status =
            cached.ok() ? CatchingBadAlloc([&] { return Fill(*cached, wish, &record, response); })
                        : cached.status();
        reactor->Finish(record.Handled(status));
      },
      scope, account, trace);
  return reactor;
}

absl::Status PlanRpcService::Fill(const CachedPlan& cached, const Wish& wish, RpcRecord* record,
                                  ByteBuffer* response) {
  const WrittenPlan written = replies_.Write(cached.plan);
  const bool unchanged = wish.held == written.digest;
  ByteBuffer reply = GetPlanReply(cached, written, wish.basic || unchanged, unchanged);
  response->Swap(&reply);
  absl::Status status = CheckSize(response->Length(), limits_);
  if (status.ok()) RecordHandOut(cached, written.digest, wish.job, record);
  return status;
}

template <class Call>
ServerUnaryReactor* PlanRpcService::StartPlanning(Rpc rpc, CallbackServerContext* context,
                                                  const ByteBuffer* request, ByteBuffer* response) {
  const RpcRecord record(rpc, context, monitor_);
  return new Call({request, response, DeadlineOf(*context)}, planning_, record, limits_);
}

ServerUnaryReactor* PlanRpcService::ComputePlan(CallbackServerContext* context,
                                                const ByteBuffer* request, ByteBuffer* response) {
  return StartPlanning<ComputePlanCall>(Rpc::kComputePlan, context, request, response);
}

ServerUnaryReactor* PlanRpcService::GetFrontier(CallbackServerContext* context,
                                                const ByteBuffer* request, ByteBuffer* response) {
  return StartPlanning<GetFrontierCall>(Rpc::kGetFrontier, context, request, response);
}

ServerUnaryReactor* PlanRpcService::FitBatch(CallbackServerContext* context,
                                             const ByteBuffer* request, ByteBuffer* response) {
  return StartPlanning<FitBatchCall>(Rpc::kFitBatch, context, request, response);
}

grpc::ServerWriteReactor<ByteBuffer>* PlanRpcService::WatchPlan(CallbackServerContext* context,
                                                                const ByteBuffer* request) {
  const RpcRecord record(Rpc::kWatchPlan, context, monitor_);
  return new WatchPlanCall(request, DeadlineOf(*context), planning_, record, limits_);
}

ServerUnaryReactor* PlanRpcService::GetCapabilities(CallbackServerContext* context,
                                                    const ByteBuffer* request,
                                                    ByteBuffer* response) {
  const RpcRecord record(Rpc::kGetCapabilities, context, monitor_);
  if (!record.caller().ok()) return FinishNow(context, record, record.caller().status());
  v1::GetCapabilitiesRequest asked;
  absl::Status status = ParseRequest(*request, &asked);
  if (status.ok()) status = WriteAnswer(CapabilitiesFor(*record.caller()), limits_, response);
  return FinishNow(context, record, status);
}

v1::GetCapabilitiesResponse PlanRpcService::CapabilitiesFor(const Caller& caller) const {
  v1::GetCapabilitiesResponse response;
  response.set_server_version(version_);
  response.set_build(BuildInfo());
  if (monitor_.authenticator != nullptr) {
    response.set_identity(caller.identity);
    response.set_tenant(caller.tenant);
  }
  response.set_role(ToString(caller.role));
  response.set_key_encoding_version(kEncodingVersion);
  for (const Solver* solver : AllSolvers()) {
    v1::SolverInfo* info = response.add_solvers();
    info->set_name(solver->info().name);
    info->set_description(solver->info().description);
    info->set_schedule_class(solver->info().schedule_class);
  }
  response.set_max_message_bytes(limits_.max_message_bytes);
  response.set_max_stages(limits_.max_stages);
  response.set_max_vertices(limits_.max_vertices);
  for (size_t i = 0; i < kRpcCount; ++i) {
    response.add_implemented_rpcs(ToString(static_cast<Rpc>(i)));
  }
  return response;
}

template <class Request, class Response>
ServerUnaryReactor* PlanRpcService::Administer(Rpc rpc, CallbackServerContext* context,
                                               const ByteBuffer* request, ByteBuffer* response) {
  return new AdminCall(planning_, RpcRecord(rpc, context, monitor_), request->Length(),
                       AnsweredBy<Request, Response>(&handlers_, limits_, request, response));
}

ServerUnaryReactor* PlanRpcService::ExplainPlan(CallbackServerContext* context,
                                                const ByteBuffer* request, ByteBuffer* response) {
  return Administer<v1::ExplainPlanRequest, v1::ExplainPlanResponse>(Rpc::kExplainPlan, context,
                                                                     request, response);
}

ServerUnaryReactor* PlanRpcService::ReportExecution(CallbackServerContext* context,
                                                    const ByteBuffer* request,
                                                    ByteBuffer* response) {
  return Administer<v1::ReportExecutionRequest, v1::ReportExecutionResponse>(
      Rpc::kReportExecution, context, request, response);
}

ServerUnaryReactor* PlanRpcService::ListPlans(CallbackServerContext* context,
                                              const ByteBuffer* request, ByteBuffer* response) {
  return Administer<v1::ListPlansRequest, v1::ListPlansResponse>(Rpc::kListPlans, context, request,
                                                                 response);
}

}  // namespace stowage
