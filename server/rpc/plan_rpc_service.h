// stowage.v1.PlanService over a PlanningService: converts, hands over, answers.
#ifndef STOWAGE_SERVER_RPC_PLAN_RPC_SERVICE_H_
#define STOWAGE_SERVER_RPC_PLAN_RPC_SERVICE_H_

#include <grpcpp/support/server_callback.h>

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "server/rpc/admin_handlers.h"
#include "server/rpc/raw_methods.h"
#include "server/rpc/reply_cache.h"
#include "server/rpc/request_limits.h"
#include "server/rpc/rpc_record.h"
#include "server/service/admin.h"
#include "server/service/planning_service.h"
#include "stowage/v1/plan_service.grpc.pb.h"

namespace stowage {

// Every RPC takes and gives bytes (wire_message.h): a test goes through all that the contract has.
using PlanServiceBase =
    RawMethods<v1::PlanService::Service, v1::PlanService::WithRawCallbackMethod_GetPlan,
               v1::PlanService::WithRawCallbackMethod_ComputePlan,
               v1::PlanService::WithRawCallbackMethod_WatchPlan,
               v1::PlanService::WithRawCallbackMethod_GetFrontier,
               v1::PlanService::WithRawCallbackMethod_FitBatch,
               v1::PlanService::WithRawCallbackMethod_ExplainPlan,
               v1::PlanService::WithRawCallbackMethod_ReportExecution,
               v1::PlanService::WithRawCallbackMethod_ListPlans,
               v1::PlanService::WithRawCallbackMethod_GetCapabilities>::Type;

class PlanRpcService final : public PlanServiceBase {
 public:
  // The pointers outlive this object.
  PlanRpcService(const RequestLimits& limits, const std::string& version, PlanningService* planning,
                 PlanStore* store, const RpcMonitor& monitor);

  grpc::ServerUnaryReactor* GetPlan(grpc::CallbackServerContext* context,
                                    const grpc::ByteBuffer* request,
                                    grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ComputePlan(grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* response) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* WatchPlan(grpc::CallbackServerContext* context,
                                                        const grpc::ByteBuffer* request) override;
  grpc::ServerUnaryReactor* GetFrontier(grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* FitBatch(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ExplainPlan(grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ReportExecution(grpc::CallbackServerContext* context,
                                            const grpc::ByteBuffer* request,
                                            grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ListPlans(grpc::CallbackServerContext* context,
                                      const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* GetCapabilities(grpc::CallbackServerContext* context,
                                            const grpc::ByteBuffer* request,
                                            grpc::ByteBuffer* response) override;

 private:
  // As the caller of GetPlan has asked for it.
  struct Wish {
    std::string job;
    bool basic = false;
    std::optional<Digest> held;
  };
  static absl::StatusOr<Wish> WishOf(const v1::GetPlanRequest& request);
  absl::Status Fill(const CachedPlan& cached, const Wish& wish, RpcRecord* record,
                    grpc::ByteBuffer* response);
  v1::GetCapabilitiesResponse CapabilitiesFor(const Caller& caller) const;
  // A call that is one of planning.
  template <class Call>
  grpc::ServerUnaryReactor* StartPlanning(Rpc rpc, grpc::CallbackServerContext* context,
                                          const grpc::ByteBuffer* request,
                                          grpc::ByteBuffer* response);
  // A call that the handlers answer.
  template <class Request, class Response>
  grpc::ServerUnaryReactor* Administer(Rpc rpc, grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request, grpc::ByteBuffer* response);

  const RequestLimits limits_;
  const std::string version_;
  PlanningService* const planning_;
  const RpcMonitor monitor_;
  PlanAdmin admin_;
  const AdminHandlers handlers_;
  ReplyCache replies_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_PLAN_RPC_SERVICE_H_
