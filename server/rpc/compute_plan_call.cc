#include "server/rpc/compute_plan_call.h"

#include "proto/codec/codec.h"
#include "server/planning/solve_outcome.h"
#include "server/rpc/hand_out.h"
#include "server/rpc/plan_source.h"

namespace stowage {

ComputePlanCall::ComputePlanCall(const v1::ComputePlanRequest* request, CallDeadline deadline,
                                 PlanningService* planning, const RpcRecord& record,
                                 const RequestLimits& limits, v1::ComputePlanResponse* response)
    : PlanningCall(planning, record, limits),
      request_(request),
      deadline_(deadline),
      response_(response) {
  const size_t bytes = request->ByteSizeLong();
  Start(bytes, IsLarge(bytes));
}

void ComputePlanCall::Begin(MayWait wait) {
  absl::StatusOr<ComputeRequest> request =
      ToComputeRequest(*request_, limits_, record_.caller()->tenant);
  if (!request.ok()) return End(request.status());
  request->deadline = deadline_;
  request->may_wait = wait;
  request->identity = record_.caller()->identity;
  const CallHandle handle = handle_;
  handle.Set(planning_->ComputePlan(
      *request, [this](const absl::StatusOr<ComputeAnswer>& answer) { Answer(answer); }));
}

void ComputePlanCall::Answer(const absl::StatusOr<ComputeAnswer>& answer) {
  if (!answer.ok()) return End(answer.status());
  End(CatchingBadAlloc([&] { return Fill(*answer); }));
}

absl::Status ComputePlanCall::Fill(const ComputeAnswer& answer) {
  *response_->mutable_plan() = ToProto(answer.plan);
  *response_->mutable_key() = ToProto(answer.key);
  response_->set_source(SourceToProto(answer.source));
  absl::Status status = CheckSize(response_->ByteSizeLong(), limits_);
  if (status.ok()) {
    RecordHandOut(answer, DigestOf(response_->plan()), request_->job(), &record_);
  }
  return status;
}

}  // namespace stowage
