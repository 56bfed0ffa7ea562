// A unary call about cached plans, from its handler's return to its answer. It waits for the store, so
// a thread of the administration's lane runs it.
//
// That thread, or the handler where the call is refused, finishes it: one Finish. What is cancelled
// before it has begun does nothing. gRPC calls OnDone after Finish and after OnCancel, and nothing
// later: there the call deletes itself.
#ifndef STOWAGE_SERVER_RPC_ADMIN_CALL_H_
#define STOWAGE_SERVER_RPC_ADMIN_CALL_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <cstddef>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/entries/planning_error.h"
#include "server/rpc/request_limits.h"
#include "server/rpc/rpc_record.h"
#include "server/rpc/wire_message.h"
#include "server/runtime/byte_budget.h"
#include "server/service/planning_service.h"
#include "server/service/solve_outcome.h"
#include "solvers/solver.h"

namespace stowage {

class AdminCall final : public grpc::ServerUnaryReactor {
 public:
  // Writes the answer, for a caller who may ask. Once the token says so nobody waits for it.
  using Task = std::function<absl::Status(const StopToken& stop, RpcRecord* record)>;

  // Starts at once. What `task` uses lives until OnDone: a request of `bytes`.
  AdminCall(PlanningService* planning, const RpcRecord& record, size_t bytes, Task task)
      : record_(record), task_(std::move(task)) {
    const absl::Status begun =
        record_.caller().ok() ? Start(planning, bytes) : record_.caller().status();
    if (!begun.ok()) End(begun);
  }

  // Also at the call's deadline.
  void OnCancel() override { stop_.RequestStop(); }
  void OnDone() override { delete this; }

 private:
  absl::Status Start(PlanningService* planning, size_t bytes) {
    const Account account = record_.caller()->account();
    absl::StatusOr<ByteBudget::Hold> held =
        planning->HoldRequest(account, RequestUse::kUpkeep, bytes);
    if (!held.ok()) return held.status();
    held_ = *std::move(held);
    return planning->Defer(Lane::kAdministration, account,
                           [this, waiting = record_.trace().StartShared("lane.administration")](
                               const absl::Status& admitted) {
                             if (waiting) waiting->End();
                             Run(admitted);
                           });
  }

  void Run(const absl::Status& admitted) {
    if (!admitted.ok()) return End(admitted);
    if (stop_.stop_requested()) return End(CallCancelledError());
    End(CatchingBadAlloc([this] { return task_(stop_, &record_); }));
  }

  // This object may be gone afterwards.
  void End(const absl::Status& status) { Finish(record_.Handled(status)); }

  RpcRecord record_;
  const Task task_;
  ByteBudget::Hold held_;  // as long as gRPC has the request
  StopToken stop_;
};

// The task that has one of the handlers answer: parses, hands over, writes. `request` and `response` are gRPC's.
template <class Request, class Response, class Handlers>
AdminCall::Task AnsweredBy(Handlers* handlers, const RequestLimits& limits,
                           const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
  return [handlers, limits, request, response](const StopToken& stop, RpcRecord* asking) {
    Request asked;
    Response answer;
    absl::Status status = ParseRequest(TakeRequest(request), &asked);
    if (status.ok()) status = handlers->Handle(asked, stop, asking, &answer);
    return status.ok() ? WriteAnswer(answer, limits, response) : status;
  };
}

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_ADMIN_CALL_H_
