// One ComputePlan on the wire, from its handler's return to its answer.
//
// Planning answers exactly once, whoever is first: the solve, the deadline or OnCancel. That answer
// is the one Finish. gRPC calls OnDone after Finish and after OnCancel, and nothing later: there
// the call deletes itself. Large requests are converted by a thread of the intake.
#ifndef STOWAGE_SERVER_RPC_COMPUTE_PLAN_CALL_H_
#define STOWAGE_SERVER_RPC_COMPUTE_PLAN_CALL_H_

#include <grpcpp/support/server_callback.h>

#include "absl/status/statusor.h"
#include "server/planning/planning_service.h"
#include "server/rpc/call_handle.h"
#include "server/rpc/compute_request.h"
#include "server/rpc/request_limits.h"
#include "server/rpc/rpc_record.h"
#include "stowage/v1/plan_service.pb.h"

namespace stowage {

class ComputePlanCall final : public grpc::ServerUnaryReactor {
 public:
  // Starts at once. `request` and `response` are gRPC's and live until OnDone.
  ComputePlanCall(const v1::ComputePlanRequest* request, CallDeadline deadline,
                  PlanningService* planning, const RpcRecord& record, const RequestLimits& limits,
                  v1::ComputePlanResponse* response);

  void OnCancel() override;
  void OnDone() override;

 private:
  void Begin(MayWait wait);
  void Answer(const absl::StatusOr<ComputeAnswer>& answer);

  const v1::ComputePlanRequest* const request_;
  const CallDeadline deadline_;
  PlanningService* const planning_;
  const RpcRecord record_;
  const RequestLimits limits_;
  v1::ComputePlanResponse* const response_;
  const CallHandle handle_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_COMPUTE_PLAN_CALL_H_
