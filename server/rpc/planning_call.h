// A unary call that planning answers, from its handler's return to its answer.
//
// Planning answers exactly once, whoever is first: the solve, the deadline or OnCancel. That answer is
// the one Finish. gRPC calls OnDone after Finish and after OnCancel, and nothing later: there the call
// deletes itself.
#ifndef STOWAGE_SERVER_RPC_PLANNING_CALL_H_
#define STOWAGE_SERVER_RPC_PLANNING_CALL_H_

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/entries/planning_error.h"
#include "server/rpc/call_handle.h"
#include "server/rpc/compute_request.h"
#include "server/rpc/request_limits.h"
#include "server/rpc/rpc_record.h"
#include "server/rpc/wire_message.h"
#include "server/runtime/byte_budget.h"
#include "server/service/planning_service.h"
#include "server/service/solve_outcome.h"

namespace stowage {

// Of one call. All but the deadline are gRPC's and live until OnDone.
struct CallBytes {
  const grpc::ByteBuffer* request;
  grpc::ByteBuffer* response;
  CallDeadline deadline;
};

template <class Request>
class PlanningCall : public grpc::ServerUnaryReactor {
 public:
  void OnCancel() override { handle_.Cancel(); }
  void OnDone() override { delete this; }

 protected:
  PlanningCall(const CallBytes& bytes, PlanningService* planning, const RpcRecord& record,
               const RequestLimits& limits)
      : deadline_(bytes.deadline),
        planning_(planning),
        limits_(limits),
        handle_(planning),
        record_(record),
        request_(bytes.request),
        response_(bytes.response) {}

  // Has Begin called, for a caller who may: now, or by a thread that may take its time.
  void Start(bool takes_time) {
    if (!record_.caller().ok()) return End(record_.caller().status());
    const Account account = record_.caller()->account();
    absl::StatusOr<ByteBudget::Hold> held =
        planning_->HoldRequest(account, RequestUse::kPlans, request_->Length());
    if (!held.ok()) return End(held.status());
    held_ = std::make_shared<ByteBudget::Hold>(*std::move(held));
    if (!takes_time) return Parse();
    const absl::Status deferred =
        planning_->Defer(Lane::kConversions, account,
                         [this, waiting = record_.trace().StartShared("lane.conversions")](
                             const absl::Status& admitted) {
                           if (waiting) waiting->End();
                           if (!admitted.ok()) return End(admitted);
                           if (handle_.cancelled()) return End(CallCancelledError());
                           Parse();
                         });
    if (!deferred.ok()) End(deferred);
  }

  // Asks planning and sets a copy of the handle: the answer may end this object before planning
  // returns. The request is gone afterwards.
  virtual void Begin(const Request& request) = 0;

  // Says of whose call it is, and hands over what it counts as.
  void Sign(ComputeRequest* asked) {
    asked->deadline = deadline_;
    asked->identity = record_.caller()->identity;
    asked->held = std::move(held_);
    asked->trace = record_.trace();
  }

  // Once; this object may be gone afterwards.
  void End(const absl::Status& status) { this->Finish(record_.Handled(status)); }
  // OK, or why it cannot be sent. What follows is End.
  absl::Status Write(const google::protobuf::MessageLite& response) {
    return WriteAnswer(response, limits_, response_);
  }

  const CallDeadline deadline_;
  PlanningService* const planning_;
  const RequestLimits limits_;
  const CallHandle handle_;
  RpcRecord record_;

 private:
  void Parse() {
    Request request;
    const absl::Status parsed =
        CatchingBadAlloc([&] { return ParseRequest(TakeRequest(request_), &request); });
    if (!parsed.ok()) return End(parsed);
    Begin(request);
  }

  const grpc::ByteBuffer* const request_;
  grpc::ByteBuffer* const response_;
  std::shared_ptr<ByteBudget::Hold> held_;  // until planning has it, or nothing is left
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_PLANNING_CALL_H_
