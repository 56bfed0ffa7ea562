// One GetFrontier on the wire. A thread of the conversions' lane converts it and replays what is cached.
#ifndef STOWAGE_SERVER_RPC_GET_FRONTIER_CALL_H_
#define STOWAGE_SERVER_RPC_GET_FRONTIER_CALL_H_

#include "absl/status/statusor.h"
#include "server/rpc/planning_call.h"
#include "stowage/v1/plan_service.pb.h"

namespace stowage {

class GetFrontierCall final : public PlanningCall<v1::GetFrontierRequest> {
 public:
  // Starts at once.
  GetFrontierCall(const CallBytes& bytes, PlanningService* planning, const RpcRecord& record,
                  const RequestLimits& limits)
      : PlanningCall(bytes, planning, record, limits) {
    Start(/*takes_time=*/true);
  }

 private:
  void Begin(const v1::GetFrontierRequest& request) override;
  void Answer(const absl::StatusOr<ComputeAnswer>& answer, size_t most);
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_GET_FRONTIER_CALL_H_
