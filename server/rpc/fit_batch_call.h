// One FitBatch on the wire. A thread of the intake converts it.
#ifndef STOWAGE_SERVER_RPC_FIT_BATCH_CALL_H_
#define STOWAGE_SERVER_RPC_FIT_BATCH_CALL_H_

#include "absl/status/statusor.h"
#include "server/rpc/compute_request.h"
#include "server/rpc/planning_call.h"
#include "stowage/v1/plan_service.pb.h"

namespace stowage {

class FitBatchCall final : public PlanningCall {
 public:
  // Starts at once. `request` and `response` are gRPC's and live until OnDone.
  FitBatchCall(const v1::FitBatchRequest* request, CallDeadline deadline, PlanningService* planning,
               const RpcRecord& record, const RequestLimits& limits,
               v1::FitBatchResponse* response);

 private:
  void Begin(MayWait wait) override;
  void Answer(const absl::StatusOr<ComputeAnswer>& answer);

  const v1::FitBatchRequest* const request_;
  const CallDeadline deadline_;
  v1::FitBatchResponse* const response_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_FIT_BATCH_CALL_H_
