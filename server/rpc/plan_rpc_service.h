// stowage.v1.PlanService over a PlanningService: converts, hands over, answers.
#ifndef STOWAGE_SERVER_RPC_PLAN_RPC_SERVICE_H_
#define STOWAGE_SERVER_RPC_PLAN_RPC_SERVICE_H_

#include <grpcpp/support/server_callback.h>

#include <string>

#include "absl/status/statusor.h"
#include "server/planning/admin.h"
#include "server/planning/planning_service.h"
#include "server/rpc/admin_handlers.h"
#include "server/rpc/reply_cache.h"
#include "server/rpc/request_limits.h"
#include "server/rpc/rpc_record.h"
#include "stowage/v1/plan_service.grpc.pb.h"

namespace stowage {

// GetPlan is the hot path: its messages stay bytes.
using PlanServiceBase =
    v1::PlanService::WithRawCallbackMethod_GetPlan<v1::PlanService::CallbackService>;

class PlanRpcService final : public PlanServiceBase {
 public:
  // The pointers outlive this object.
  PlanRpcService(const RequestLimits& limits, const std::string& version, PlanningService* planning,
                 PlanStore* store, const RpcMonitor& monitor);

  grpc::ServerUnaryReactor* GetPlan(grpc::CallbackServerContext* context,
                                    const grpc::ByteBuffer* request,
                                    grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ComputePlan(grpc::CallbackServerContext* context,
                                        const v1::ComputePlanRequest* request,
                                        v1::ComputePlanResponse* response) override;
  grpc::ServerUnaryReactor* GetCapabilities(grpc::CallbackServerContext* context,
                                            const v1::GetCapabilitiesRequest* request,
                                            v1::GetCapabilitiesResponse* response) override;

  grpc::ServerWriteReactor<v1::WatchPlanResponse>* WatchPlan(
      grpc::CallbackServerContext* context, const v1::WatchPlanRequest* request) override;
  grpc::ServerUnaryReactor* GetFrontier(grpc::CallbackServerContext* context,
                                        const v1::GetFrontierRequest* request,
                                        v1::GetFrontierResponse* response) override;
  grpc::ServerUnaryReactor* FitBatch(grpc::CallbackServerContext* context,
                                     const v1::FitBatchRequest* request,
                                     v1::FitBatchResponse* response) override;
  grpc::ServerUnaryReactor* ExplainPlan(grpc::CallbackServerContext* context,
                                        const v1::ExplainPlanRequest* request,
                                        v1::ExplainPlanResponse* response) override;
  grpc::ServerUnaryReactor* ReportExecution(grpc::CallbackServerContext* context,
                                            const v1::ReportExecutionRequest* request,
                                            v1::ReportExecutionResponse* response) override;
  grpc::ServerUnaryReactor* ListPlans(grpc::CallbackServerContext* context,
                                      const v1::ListPlansRequest* request,
                                      v1::ListPlansResponse* response) override;
  grpc::ServerUnaryReactor* PinPlan(grpc::CallbackServerContext* context,
                                    const v1::PinPlanRequest* request,
                                    v1::PinPlanResponse* response) override;
  grpc::ServerUnaryReactor* DeletePlan(grpc::CallbackServerContext* context,
                                       const v1::DeletePlanRequest* request,
                                       v1::DeletePlanResponse* response) override;

 private:
  absl::Status Fill(const CachedPlan& cached, const std::string& job, RpcRecord* record,
                    grpc::ByteBuffer* response);
  template <class Request, class Response>
  grpc::ServerUnaryReactor* Administer(Rpc rpc, grpc::CallbackServerContext* context,
                                       const Request* request, Response* response);

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
