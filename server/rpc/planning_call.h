// A unary call that planning answers, from its handler's return to its answer.
//
// Planning answers exactly once, whoever is first: the solve, the deadline or OnCancel. That answer is
// the one Finish. gRPC calls OnDone after Finish and after OnCancel, and nothing later: there the call
// deletes itself.
#ifndef STOWAGE_SERVER_RPC_PLANNING_CALL_H_
#define STOWAGE_SERVER_RPC_PLANNING_CALL_H_

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/server_callback.h>

#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/planning/byte_budget.h"
#include "server/planning/planning_error.h"
#include "server/planning/planning_service.h"
#include "server/rpc/call_handle.h"
#include "server/rpc/request_limits.h"
#include "server/rpc/rpc_record.h"
#include "server/rpc/rpc_status.h"

namespace stowage {

class PlanningCall : public grpc::ServerUnaryReactor {
 public:
  void OnCancel() override { handle_.Cancel(); }
  void OnDone() override { delete this; }

 protected:
  PlanningCall(PlanningService* planning, const RpcRecord& record, const RequestLimits& limits)
      : planning_(planning), limits_(limits), handle_(planning), record_(record) {}

  // Has Begin called, for a caller who may: now, or by a thread that may take its time. `bytes` is the
  // request's size.
  void Start(size_t bytes, bool takes_time) {
    if (!record_.caller().ok()) return End(record_.caller().status());
    absl::StatusOr<ByteBudget::Hold> held = planning_->HoldRequest(bytes);
    if (!held.ok()) return End(held.status());
    held_ = *std::move(held);
    if (!takes_time) return Begin(MayWait::kNo);
    const absl::Status deferred = planning_->Defer([this](const absl::Status& admitted) {
      if (!admitted.ok()) return End(admitted);
      if (handle_.cancelled()) return End(CallCancelledError());
      Begin(MayWait::kYes);
    });
    if (!deferred.ok()) End(deferred);
  }

  // Asks planning and sets a copy of the handle: the answer may end this object before planning
  // returns.
  virtual void Begin(MayWait wait) = 0;

  // Once; this object may be gone afterwards.
  void End(const absl::Status& status) { Finish(record_.Handled(ToWireStatus(status))); }
  void End(const google::protobuf::MessageLite& response) {
    End(CheckSize(response.ByteSizeLong(), limits_));
  }

  PlanningService* const planning_;
  const RequestLimits limits_;
  const CallHandle handle_;
  RpcRecord record_;

 private:
  ByteBudget::Hold held_;  // as long as gRPC has the request
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_PLANNING_CALL_H_
