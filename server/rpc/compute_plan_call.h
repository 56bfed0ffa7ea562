// One ComputePlan on the wire. Large requests are converted by a thread of their lane.
#ifndef STOWAGE_SERVER_RPC_COMPUTE_PLAN_CALL_H_
#define STOWAGE_SERVER_RPC_COMPUTE_PLAN_CALL_H_

#include <string>

#include "absl/status/statusor.h"
#include "server/rpc/planning_call.h"
#include "stowage/v1/plan_service.pb.h"

namespace stowage {

class ComputePlanCall final : public PlanningCall<v1::ComputePlanRequest> {
 public:
  // Starts at once.
  ComputePlanCall(const CallBytes& bytes, PlanningService* planning, const RpcRecord& record,
                  const RequestLimits& limits)
      : PlanningCall(bytes, planning, record, limits) {
    Start(IsLarge(*bytes.request));
  }

 private:
  void Begin(const v1::ComputePlanRequest& request) override;
  void Answer(const absl::StatusOr<ComputeAnswer>& answer);
  absl::Status Fill(const ComputeAnswer& answer);

  std::string job_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_COMPUTE_PLAN_CALL_H_
