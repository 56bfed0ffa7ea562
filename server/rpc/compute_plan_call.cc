#include "server/rpc/compute_plan_call.h"

#include <utility>

#include "proto/codec/codec.h"
#include "server/planning/planning_error.h"
#include "server/rpc/plan_source.h"
#include "server/rpc/rpc_status.h"

namespace stowage {
ComputePlanCall::ComputePlanCall(const v1::ComputePlanRequest* request, CallDeadline deadline,
                                 PlanningService* planning, const RpcRecord& record,
                                 const RequestLimits& limits, v1::ComputePlanResponse* response)
    : request_(request),
      deadline_(deadline),
      planning_(planning),
      record_(record),
      limits_(limits),
      response_(response),
      handle_(planning) {
  if (!IsLarge(*request)) {
    Begin(MayWait::kNo);
    return;
  }
  const absl::Status deferred = planning->Defer([this] { Begin(MayWait::kYes); });
  if (!deferred.ok()) Answer(deferred);
}

void ComputePlanCall::Begin(MayWait wait) {
  if (handle_.cancelled()) return Answer(CallCancelledError());
  absl::StatusOr<ComputeRequest> request = ToComputeRequest(*request_, limits_);
  if (!request.ok()) return Answer(request.status());
  request->deadline = deadline_;
  request->may_wait = wait;
  // The answer may end this object before ComputePlan returns.
  const CallHandle handle = handle_;
  handle.Set(planning_->ComputePlan(
      *request, [this](const absl::StatusOr<ComputeAnswer>& answer) { Answer(answer); }));
}

void ComputePlanCall::OnCancel() { handle_.Cancel(); }

void ComputePlanCall::OnDone() { delete this; }

void ComputePlanCall::Answer(const absl::StatusOr<ComputeAnswer>& answer) {
  absl::Status status = answer.status();
  if (status.ok()) {
    *response_->mutable_plan() = ToProto(answer->plan);
    *response_->mutable_key() = ToProto(answer->key);
    response_->set_source(SourceToProto(answer->source));
    status = CheckSize(response_->ByteSizeLong(), limits_);
  }
  Finish(record_.Handled(ToWireStatus(status)));
}

}  // namespace stowage
