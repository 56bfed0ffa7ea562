#include "client/rpc/watch_answer.h"

#include <utility>

#include "client/rpc/answer_validation.h"
#include "client/rpc/grpc_messages.h"

namespace stowage {

absl::Status WatchAnswer::Take(const v1::WatchPlanResponse& message) {
  if (done_) return BrokenContract("a message after the last one");
  // Written so that NaN is refused, too.
  if (!(message.progress() >= share_ && message.progress() <= 1.0)) {
    return BrokenContract("progress that falls, or is not in [0, 1]");
  }
  share_ = message.progress();
  done_ = message.done();
  if (message.has_key()) {
    const absl::StatusOr<PlanKey> key = ReadKey(message.key());
    if (!key.ok()) return key.status();
    key_ = *key;
  }
  if (done_) {
    const absl::StatusOr<PlanSource> source = ReadSource(message.source());
    if (!source.ok()) return source.status();
    source_ = *source;
  }
  absl::Status status = TakePlan(message);
  if (!status.ok()) return status;
  if (progress_)
    progress_({share_, plan_ && plan_->status == PlanStatus::kFound ? &*plan_ : nullptr});
  return absl::OkStatus();
}

absl::Status WatchAnswer::TakePlan(const v1::WatchPlanResponse& message) {
  if (message.has_plan()) {
    absl::StatusOr<Plan> plan = ReadPlan(message.plan());
    if (!plan.ok()) return plan.status();
    if (!done_ && plan->status != PlanStatus::kFound) {
      return BrokenContract("a plan so far that is none");
    }
    plan_ = *std::move(plan);
  } else if (!done_) {
    return absl::OkStatus();
  }
  if (!plan_) return BrokenContract("no plan in the last message");
  return done_ ? ValidateAnswer(profile_, budget_, key_options_, &*plan_)
               : ValidateProgress(profile_, budget_, key_options_, &*plan_);
}

absl::StatusOr<PlanReply> WatchAnswer::Finish() {
  if (!done_) return BrokenContract("a stream without its last message");
  if (!key_) return BrokenContract("no key in the last message");
  return PlanReply{*std::move(plan_), *key_, source_};
}

std::optional<PlanReply> WatchAnswer::BestSoFar() {
  if (!plan_) return std::nullopt;
  const PlanKey key = key_ ? *key_ : MakePlanKey(profile_, key_options_);
  return PlanReply{*std::move(plan_), key, source_};
}

}  // namespace stowage
