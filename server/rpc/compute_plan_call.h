// One ComputePlan on the wire. Large requests are converted by a thread of the intake.
#ifndef STOWAGE_SERVER_RPC_COMPUTE_PLAN_CALL_H_
#define STOWAGE_SERVER_RPC_COMPUTE_PLAN_CALL_H_

#include "absl/status/statusor.h"
#include "server/rpc/compute_request.h"
#include "server/rpc/planning_call.h"
#include "stowage/v1/plan_service.pb.h"

namespace stowage {

class ComputePlanCall final : public PlanningCall {
 public:
  // Starts at once. `request` and `response` are gRPC's and live until OnDone.
  ComputePlanCall(const v1::ComputePlanRequest* request, CallDeadline deadline,
                  PlanningService* planning, const RpcRecord& record, const RequestLimits& limits,
                  v1::ComputePlanResponse* response);

 private:
  void Begin(MayWait wait) override;
  void Answer(const absl::StatusOr<ComputeAnswer>& answer);
  absl::Status Fill(const ComputeAnswer& answer);

  const v1::ComputePlanRequest* const request_;
  const CallDeadline deadline_;
  v1::ComputePlanResponse* const response_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_COMPUTE_PLAN_CALL_H_
