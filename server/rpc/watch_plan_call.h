// One WatchPlan on the wire: as ComputePlan, with messages on the way.
//
// One message is on its way at a time. What changes meanwhile is told once, when it has left: a slow
// reader gets fewer messages, and neither the solver nor the server's memory notices. The last message
// is the answer; a cancelled or broken stream leaves the solve to whoever else waits for it, and for a while to its
// own client, who may come back (PlanningService::Cancel).
#ifndef STOWAGE_SERVER_RPC_WATCH_PLAN_CALL_H_
#define STOWAGE_SERVER_RPC_WATCH_PLAN_CALL_H_

#include <grpcpp/support/server_callback.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/rpc/call_handle.h"
#include "server/rpc/compute_request.h"
#include "server/rpc/request_limits.h"
#include "server/rpc/rpc_record.h"
#include "server/service/planning_service.h"
#include "solvers/base/tracer.h"
#include "stowage/v1/plan_service.pb.h"

namespace stowage {

class WatchPlanCall final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  // Starts at once. `request` is gRPC's and lives until OnDone.
  WatchPlanCall(const grpc::ByteBuffer* request, CallDeadline deadline, PlanningService* planning,
                const RpcRecord& record, const RequestLimits& limits);

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  // Outlives the reactor where the solver's thread still knows it.
  class Stream;

  void Begin();

  const grpc::ByteBuffer* const request_;
  const CallDeadline deadline_;
  PlanningService* const planning_;
  const RequestLimits limits_;
  const CallHandle handle_;
  const std::string tenant_;
  const std::string identity_;
  const TraceScope trace_;
  std::string job_;
  const std::shared_ptr<Stream> stream_;
  std::shared_ptr<ByteBudget::Hold> held_;  // until planning has it, or nothing is left
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_WATCH_PLAN_CALL_H_
