// stowage.v1.PlanAdminService: what administrators change, and what they have decided, out and in.
#ifndef STOWAGE_SERVER_RPC_PLAN_ADMIN_RPC_SERVICE_H_
#define STOWAGE_SERVER_RPC_PLAN_ADMIN_RPC_SERVICE_H_

#include <grpcpp/support/server_callback.h>

#include "server/rpc/change_handlers.h"
#include "server/rpc/decision_handlers.h"
#include "server/rpc/raw_methods.h"
#include "server/rpc/request_limits.h"
#include "server/rpc/rpc_record.h"
#include "server/service/admin.h"
#include "server/service/planning_service.h"
#include "stowage/v1/plan_admin_service.grpc.pb.h"

namespace stowage {

using PlanAdminServiceBase =
    RawMethods<v1::PlanAdminService::Service, v1::PlanAdminService::WithRawCallbackMethod_PinPlan,
               v1::PlanAdminService::WithRawCallbackMethod_UnpinPlan,
               v1::PlanAdminService::WithRawCallbackMethod_RollBackPlan,
               v1::PlanAdminService::WithRawCallbackMethod_PromotePlan,
               v1::PlanAdminService::WithRawCallbackMethod_FreezePlan,
               v1::PlanAdminService::WithRawCallbackMethod_UnfreezePlan,
               v1::PlanAdminService::WithRawCallbackMethod_DeletePlan,
               v1::PlanAdminService::WithRawCallbackMethod_ExportDecisions,
               v1::PlanAdminService::WithRawCallbackMethod_ImportDecisions>::Type;

class PlanAdminRpcService final : public PlanAdminServiceBase {
 public:
  // The pointers outlive this object; `decisions` as of DecisionHandlers.
  PlanAdminRpcService(const RequestLimits& limits, PlanningService* planning, PlanStore* store,
                      DecisionBook* decisions, const RpcMonitor& monitor);

  grpc::ServerUnaryReactor* PinPlan(grpc::CallbackServerContext* context,
                                    const grpc::ByteBuffer* request,
                                    grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* UnpinPlan(grpc::CallbackServerContext* context,
                                      const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* RollBackPlan(grpc::CallbackServerContext* context,
                                         const grpc::ByteBuffer* request,
                                         grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* PromotePlan(grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* FreezePlan(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* UnfreezePlan(grpc::CallbackServerContext* context,
                                         const grpc::ByteBuffer* request,
                                         grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* DeletePlan(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ExportDecisions(grpc::CallbackServerContext* context,
                                            const grpc::ByteBuffer* request,
                                            grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ImportDecisions(grpc::CallbackServerContext* context,
                                            const grpc::ByteBuffer* request,
                                            grpc::ByteBuffer* response) override;

 private:
  template <class Request, class Response, class Handlers>
  grpc::ServerUnaryReactor* Answer(Rpc rpc, Handlers* handlers,
                                   grpc::CallbackServerContext* context,
                                   const grpc::ByteBuffer* request, grpc::ByteBuffer* response);

  const RequestLimits limits_;
  PlanningService* const planning_;
  const RpcMonitor monitor_;
  PlanAdmin admin_;
  ChangeHandlers changes_;
  const DecisionHandlers decisions_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_PLAN_ADMIN_RPC_SERVICE_H_
