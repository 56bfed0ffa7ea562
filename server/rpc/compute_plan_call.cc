#include "server/rpc/compute_plan_call.h"

#include <utility>

#include "proto/codec/codec.h"
#include "server/rpc/rpc_status.h"

namespace stowage {
namespace {

v1::PlanSource SourceToProto(AnswerSource source) {
  switch (source) {
    case AnswerSource::kCache:
      return v1::PLAN_SOURCE_CACHE;
    case AnswerSource::kSolved:
      return v1::PLAN_SOURCE_SOLVED;
    case AnswerSource::kShared:
      return v1::PLAN_SOURCE_SHARED;
  }
  return v1::PLAN_SOURCE_UNSPECIFIED;
}

}  // namespace

ComputePlanCall::ComputePlanCall(const absl::StatusOr<ComputeRequest>& request,
                                 PlanningService* planning, const RpcRecord& record,
                                 const RequestLimits& limits, v1::ComputePlanResponse* response)
    : planning_(planning), record_(record), limits_(limits), response_(response) {
  if (!request.ok()) {
    Answer(request.status());
    return;
  }
  // gRPC calls OnCancel only after the handler has returned: call_ is set by then.
  call_ = planning_->ComputePlan(
      *request, [this](const absl::StatusOr<ComputeAnswer>& answer) { Answer(answer); });
}

void ComputePlanCall::OnCancel() {
  if (call_) planning_->Cancel(call_);
}

void ComputePlanCall::OnDone() { delete this; }

void ComputePlanCall::Answer(const absl::StatusOr<ComputeAnswer>& answer) {
  absl::Status status = answer.status();
  if (status.ok()) {
    *response_->mutable_plan() = ToProto(answer->plan);
    *response_->mutable_key() = ToProto(answer->key);
    response_->set_source(SourceToProto(answer->source));
    status = CheckSize(*response_, limits_);
  }
  Finish(record_.Handled(ToWireStatus(status)));
}

}  // namespace stowage
