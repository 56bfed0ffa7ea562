#include "server/rpc/compute_plan_call.h"

#include "proto/codec/codec.h"
#include "server/rpc/hand_out.h"
#include "server/rpc/plan_source.h"

namespace stowage {

void ComputePlanCall::Begin(const v1::ComputePlanRequest& request) {
  absl::StatusOr<ComputeRequest> asked =
      ToComputeRequest(request, limits_, record_.caller()->tenant);
  if (!asked.ok()) return End(asked.status());
  Sign(&*asked);
  job_ = asked->job;
  const CallHandle handle = handle_;
  handle.Set(planning_->ComputePlan(
      *asked, [this](const absl::StatusOr<ComputeAnswer>& answer) { Answer(answer); }));
}

void ComputePlanCall::Answer(const absl::StatusOr<ComputeAnswer>& answer) {
  if (!answer.ok()) return End(answer.status());
  End(CatchingBadAlloc([&] { return Fill(*answer); }));
}

absl::Status ComputePlanCall::Fill(const ComputeAnswer& answer) {
  v1::ComputePlanResponse response;
  *response.mutable_plan() = ToProto(answer.plan);
  *response.mutable_key() = ToProto(answer.key);
  response.set_source(SourceToProto(answer.source));
  absl::Status status = Write(response);
  if (status.ok()) RecordHandOut(answer, DigestOf(response.plan()), job_, &record_);
  return status;
}

}  // namespace stowage
