// One FitBatch on the wire. A thread of the conversions' lane converts it.
#ifndef STOWAGE_SERVER_RPC_FIT_BATCH_CALL_H_
#define STOWAGE_SERVER_RPC_FIT_BATCH_CALL_H_

#include "absl/status/statusor.h"
#include "server/rpc/planning_call.h"
#include "stowage/v1/plan_service.pb.h"

namespace stowage {

class FitBatchCall final : public PlanningCall<v1::FitBatchRequest> {
 public:
  // Starts at once.
  FitBatchCall(const CallBytes& bytes, PlanningService* planning, const RpcRecord& record,
               const RequestLimits& limits)
      : PlanningCall(bytes, planning, record, limits) {
    Start(/*takes_time=*/true);
  }

 private:
  void Begin(const v1::FitBatchRequest& request) override;
  void Answer(const absl::StatusOr<ComputeAnswer>& answer);
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_FIT_BATCH_CALL_H_
