#include "server/rpc/plan_admin_rpc_service.h"

#include "server/rpc/admin_call.h"

namespace stowage {

using grpc::ByteBuffer;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

PlanAdminRpcService::PlanAdminRpcService(const RequestLimits& limits, PlanningService* planning,
                                         PlanStore* store, const RpcMonitor& monitor)
    : limits_(limits),
      planning_(planning),
      monitor_(monitor),
      admin_(store, monitor.metrics, monitor.audit),
      handlers_(&admin_) {}

template <class Request, class Response>
ServerUnaryReactor* PlanAdminRpcService::Change(Rpc rpc, CallbackServerContext* context,
                                                const ByteBuffer* request, ByteBuffer* response) {
  return new AdminCall(planning_, RpcRecord(rpc, context, monitor_), request->Length(),
                       AnsweredBy<Request, Response>(&handlers_, limits_, request, response));
}

ServerUnaryReactor* PlanAdminRpcService::PinPlan(CallbackServerContext* context,
                                                 const ByteBuffer* request, ByteBuffer* response) {
  return Change<v1::PinPlanRequest, v1::PinPlanResponse>(Rpc::kPinPlan, context, request, response);
}

ServerUnaryReactor* PlanAdminRpcService::UnpinPlan(CallbackServerContext* context,
                                                   const ByteBuffer* request,
                                                   ByteBuffer* response) {
  return Change<v1::UnpinPlanRequest, v1::UnpinPlanResponse>(Rpc::kUnpinPlan, context, request,
                                                             response);
}

ServerUnaryReactor* PlanAdminRpcService::RollBackPlan(CallbackServerContext* context,
                                                      const ByteBuffer* request,
                                                      ByteBuffer* response) {
  return Change<v1::RollBackPlanRequest, v1::RollBackPlanResponse>(Rpc::kRollBackPlan, context,
                                                                   request, response);
}

ServerUnaryReactor* PlanAdminRpcService::PromotePlan(CallbackServerContext* context,
                                                     const ByteBuffer* request,
                                                     ByteBuffer* response) {
  return Change<v1::PromotePlanRequest, v1::PromotePlanResponse>(Rpc::kPromotePlan, context,
                                                                 request, response);
}

ServerUnaryReactor* PlanAdminRpcService::FreezePlan(CallbackServerContext* context,
                                                    const ByteBuffer* request,
                                                    ByteBuffer* response) {
  return Change<v1::FreezePlanRequest, v1::FreezePlanResponse>(Rpc::kFreezePlan, context, request,
                                                               response);
}

ServerUnaryReactor* PlanAdminRpcService::UnfreezePlan(CallbackServerContext* context,
                                                      const ByteBuffer* request,
                                                      ByteBuffer* response) {
  return Change<v1::UnfreezePlanRequest, v1::UnfreezePlanResponse>(Rpc::kUnfreezePlan, context,
                                                                   request, response);
}

ServerUnaryReactor* PlanAdminRpcService::DeletePlan(CallbackServerContext* context,
                                                    const ByteBuffer* request,
                                                    ByteBuffer* response) {
  return Change<v1::DeletePlanRequest, v1::DeletePlanResponse>(Rpc::kDeletePlan, context, request,
                                                               response);
}

}  // namespace stowage
