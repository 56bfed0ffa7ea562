#include "server/rpc/watch_plan_call.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "proto/codec/codec.h"
#include "server/entries/planning_error.h"
#include "server/rpc/hand_out.h"
#include "server/rpc/plan_source.h"
#include "server/rpc/wire_message.h"
#include "server/service/solve_outcome.h"

namespace stowage {

class WatchPlanCall::Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(WatchPlanCall* reactor, PlanningService* planning, const CallHandle& handle,
         const RpcRecord& record, const RequestLimits& limits)
      : reactor_(reactor),
        planning_(planning),
        handle_(handle),
        account_(record.caller().ok() ? record.caller()->account() : Account()),
        record_(record),
        limits_(limits) {}

  // There is news: it is judged by a thread of the intake when nothing is on its way.
  void Changed() {
    std::lock_guard<std::mutex> lock(mutex_);
    changed_ = true;
    PullLocked();
  }

  // The handle has its call. News may have come before, and have found none.
  void Begun() {
    std::lock_guard<std::mutex> lock(mutex_);
    begun_ = true;
    changed_ = changed_ || early_;
    PullLocked();
  }

  void Written(bool ok) {
    std::unique_lock<std::mutex> lock(mutex_);
    writing_ = false;
    if (answered_) return EndLocked();
    broken_ = !ok;
    PullLocked();
    lock.unlock();
    if (!ok) handle_.Cancel();
  }

  void Answer(const absl::StatusOr<ComputeAnswer>& answer) {
    grpc::ByteBuffer last;
    const absl::Status status =
        answer.ok() ? CatchingBadAlloc([&] { return Fill(*answer, &last); }) : answer.status();
    std::lock_guard<std::mutex> lock(mutex_);
    answered_ = true;
    status_ = status;
    last_.Swap(&last);
    if (!writing_) EndLocked();
  }

 private:
  absl::Status Fill(const ComputeAnswer& answer, grpc::ByteBuffer* bytes) {
    v1::WatchPlanResponse last;
    last.set_done(true);
    last.set_progress(1.0);
    *last.mutable_plan() = ToProto(answer.plan);
    *last.mutable_key() = ToProto(answer.key);
    last.set_source(SourceToProto(answer.source));
    absl::Status status = WriteAnswer(last, limits_, bytes);
    if (status.ok()) RecordHandOut(answer, DigestOf(last.plan()), reactor_->job_, &record_);
    return status;
  }

  void PullLocked() {
    if (!changed_ || writing_ || pulling_ || answered_ || broken_) return;
    changed_ = false;
    // One that is refused, or not admitted, is told of later, or never: the answer comes all the same.
    const auto pull = [self = shared_from_this()](const absl::Status& admitted) {
      if (admitted.ok()) self->Pull();
    };
    pulling_ = planning_->Defer(Lane::kJudging, account_, pull).ok();
  }

  void Pull() {
    v1::WatchPlanResponse message;
    PlanUpdate update;
    bool has_call = true;
    const absl::Status made = CatchingBadAlloc([&] {
      has_call = Look(&update, &message);
      return absl::OkStatus();
    });
    std::lock_guard<std::mutex> lock(mutex_);
    pulling_ = false;
    if (!has_call && !early_) {
      early_ = true;
      changed_ = changed_ || begun_;
      return PullLocked();
    }
    progress_ = std::max(progress_, message.progress());
    message.set_progress(progress_);
    grpc::ByteBuffer bytes;
    if (!made.ok() || answered_ || broken_ || !WriteAnswer(message, limits_, &bytes).ok()) return;
    if (update.plan) AuditShown(update, message.plan());
    message_.Swap(&bytes);
    writing_ = true;
    reactor_->StartWrite(&message_);
  }

  void AuditShown(const PlanUpdate& update, const v1::Plan& plan) const {
    CatchingBadAlloc([&] {
      RecordBestSoFar(*update.plan, update.key, DigestOf(plan), reactor_->job_, record_);
      return absl::OkStatus();
    }).IgnoreError();
  }

  // Whether there is a call to look at.
  bool Look(PlanUpdate* update, v1::WatchPlanResponse* message) {
    const auto call = handle_.call();
    if (call) *update = planning_->Latest(call);
    if (update->plan) *message->mutable_plan() = ToProto(*update->plan);
    message->set_progress(update->progress);
    return call != nullptr;
  }

  // Nothing is on its way, and nothing but this will be.
  void EndLocked() {
    const grpc::Status status = record_.Handled(status_);
    if (status_.ok() && !broken_) {
      reactor_->StartWriteAndFinish(&last_, grpc::WriteOptions(), status);
    } else {
      reactor_->Finish(status);
    }
  }

  WatchPlanCall* const reactor_;  // there until EndLocked
  PlanningService* const planning_;
  const CallHandle handle_;
  const Account account_;
  RpcRecord record_;
  const RequestLimits limits_;
  std::mutex mutex_;
  bool changed_ = false;
  bool begun_ = false;
  bool early_ = false;  // news was looked for before there was a call
  bool pulling_ = false;
  bool writing_ = false;
  bool broken_ = false;
  bool answered_ = false;
  double progress_ = 0;
  absl::Status status_;
  grpc::ByteBuffer message_;
  grpc::ByteBuffer last_;
};

WatchPlanCall::WatchPlanCall(const grpc::ByteBuffer* request, CallDeadline deadline,
                             PlanningService* planning, const RpcRecord& record,
                             const RequestLimits& limits)
    : request_(request),
      deadline_(deadline),
      planning_(planning),
      limits_(limits),
      handle_(planning),
      tenant_(record.caller().ok() ? record.caller()->tenant : ""),
      identity_(record.caller().ok() ? record.caller()->identity : ""),
      trace_(record.trace()),
      stream_(std::make_shared<Stream>(this, planning, handle_, record, limits)) {
  if (!record.caller().ok()) {
    stream_->Answer(record.caller().status());
    return;
  }
  const Account account = record.caller()->account();
  absl::StatusOr<ByteBudget::Hold> held =
      planning->HoldRequest(account, RequestUse::kPlans, request->Length());
  if (!held.ok()) {
    stream_->Answer(held.status());
    return;
  }
  held_ = std::make_shared<ByteBudget::Hold>(*std::move(held));
  if (!IsLarge(*request)) {
    Begin();
    return;
  }
  const absl::Status deferred = planning->Defer(
      Lane::kConversions, account,
      [this, waiting = trace_.StartShared("lane.conversions")](const absl::Status& admitted) {
        if (waiting) waiting->End();
        if (!admitted.ok()) {
          const std::shared_ptr<Stream> stream = stream_;  // outlives this object
          return stream->Answer(admitted);
        }
        Begin();
      });
  if (!deferred.ok()) stream_->Answer(deferred);
}

void WatchPlanCall::Begin() {
  // The answer may end this object before ComputePlan returns.
  const std::shared_ptr<Stream> stream = stream_;
  const CallHandle handle = handle_;
  if (handle.cancelled()) return stream->Answer(CallCancelledError());
  v1::WatchPlanRequest message;
  const absl::Status parsed =
      CatchingBadAlloc([&] { return ParseRequest(TakeRequest(request_), &message); });
  if (!parsed.ok()) return stream->Answer(parsed);
  absl::StatusOr<ComputeRequest> request = ToComputeRequest(message, limits_, tenant_);
  if (!request.ok()) return stream->Answer(request.status());
  job_ = request->job;
  request->deadline = deadline_;
  request->identity = identity_;
  request->held = std::move(held_);
  request->trace = trace_;
  handle.Set(planning_->ComputePlan(
      *request, [stream](const absl::StatusOr<ComputeAnswer>& answer) { stream->Answer(answer); },
      [stream] { stream->Changed(); }));
  stream->Begun();
}

void WatchPlanCall::OnWriteDone(bool ok) { stream_->Written(ok); }

void WatchPlanCall::OnCancel() { handle_.Cancel(); }

void WatchPlanCall::OnDone() {
  handle_.Forget();
  delete this;
}

}  // namespace stowage
