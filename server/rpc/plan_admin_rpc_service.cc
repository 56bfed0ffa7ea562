#include "server/rpc/plan_admin_rpc_service.h"

#include "server/rpc/admin_call.h"

namespace stowage {

using grpc::ByteBuffer;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

PlanAdminRpcService::PlanAdminRpcService(const RequestLimits& limits, PlanningService* planning,
                                         PlanStore* store, DecisionBook* decisions,
                                         const RpcMonitor& monitor)
    : limits_(limits),
      planning_(planning),
      monitor_(monitor),
      admin_(store, monitor.metrics, monitor.audit),
      changes_(&admin_),
      decisions_(limits, decisions) {}

template <class Request, class Response, class Handlers>
ServerUnaryReactor* PlanAdminRpcService::Answer(Rpc rpc, Handlers* handlers,
                                                CallbackServerContext* context,
                                                const ByteBuffer* request, ByteBuffer* response) {
  return new AdminCall(planning_, RpcRecord(rpc, context, monitor_), request->Length(),
                       AnsweredBy<Request, Response>(handlers, limits_, request, response));
}

ServerUnaryReactor* PlanAdminRpcService::PinPlan(CallbackServerContext* context,
                                                 const ByteBuffer* request, ByteBuffer* response) {
  return Answer<v1::PinPlanRequest, v1::PinPlanResponse>(Rpc::kPinPlan, &changes_, context, request,
                                                         response);
}

ServerUnaryReactor* PlanAdminRpcService::UnpinPlan(CallbackServerContext* context,
                                                   const ByteBuffer* request,
                                                   ByteBuffer* response) {
  return Answer<v1::UnpinPlanRequest, v1::UnpinPlanResponse>(Rpc::kUnpinPlan, &changes_, context,
                                                             request, response);
}

ServerUnaryReactor* PlanAdminRpcService::RollBackPlan(CallbackServerContext* context,
                                                      const ByteBuffer* request,
                                                      ByteBuffer* response) {
  return Answer<v1::RollBackPlanRequest, v1::RollBackPlanResponse>(Rpc::kRollBackPlan, &changes_,
                                                                   context, request, response);
}

ServerUnaryReactor* PlanAdminRpcService::PromotePlan(CallbackServerContext* context,
                                                     const ByteBuffer* request,
                                                     ByteBuffer* response) {
  return Answer<v1::PromotePlanRequest, v1::PromotePlanResponse>(Rpc::kPromotePlan, &changes_,
                                                                 context, request, response);
}

ServerUnaryReactor* PlanAdminRpcService::FreezePlan(CallbackServerContext* context,
                                                    const ByteBuffer* request,
                                                    ByteBuffer* response) {
  return Answer<v1::FreezePlanRequest, v1::FreezePlanResponse>(Rpc::kFreezePlan, &changes_, context,
                                                               request, response);
}

ServerUnaryReactor* PlanAdminRpcService::UnfreezePlan(CallbackServerContext* context,
                                                      const ByteBuffer* request,
                                                      ByteBuffer* response) {
  return Answer<v1::UnfreezePlanRequest, v1::UnfreezePlanResponse>(Rpc::kUnfreezePlan, &changes_,
                                                                   context, request, response);
}

ServerUnaryReactor* PlanAdminRpcService::DeletePlan(CallbackServerContext* context,
                                                    const ByteBuffer* request,
                                                    ByteBuffer* response) {
  return Answer<v1::DeletePlanRequest, v1::DeletePlanResponse>(Rpc::kDeletePlan, &changes_, context,
                                                               request, response);
}

ServerUnaryReactor* PlanAdminRpcService::ExportDecisions(CallbackServerContext* context,
                                                         const ByteBuffer* request,
                                                         ByteBuffer* response) {
  return Answer<v1::ExportDecisionsRequest, v1::ExportDecisionsResponse>(
      Rpc::kExportDecisions, &decisions_, context, request, response);
}

ServerUnaryReactor* PlanAdminRpcService::ImportDecisions(CallbackServerContext* context,
                                                         const ByteBuffer* request,
                                                         ByteBuffer* response) {
  return Answer<v1::ImportDecisionsRequest, v1::ImportDecisionsResponse>(
      Rpc::kImportDecisions, &decisions_, context, request, response);
}

}  // namespace stowage
