// What an agent makes of how its steps went: other plans, reports.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/agent/agent.h"
#include "client/agent/memory_words.h"
#include "client/agent/out_of_memory.h"
#include "client/agent/step_watch.h"
#include "client/torch/execute/step_failure.h"
#include "solvers/schedule/instance.h"

namespace stowage {

// What the next plan is to do about it. `before`: live before the step, `peak` the most since; `host`: the
// most that the step held of host memory.
void Agent::NoteFailure(const absl::Status& status, Bytes before, Bytes peak, Bytes host,
                        bool retries, PlannedShape* shape) {
  const std::optional<StepFailure> failure = GetStepFailure(status);
  const StepFault fault = failure ? failure->fault : StepFault::kOther;
  if (fault == StepFault::kImmovable) return NoteImmovable(status, shape);
  if (!absl::IsResourceExhausted(status)) return;
  const bool of_host =
      fault == StepFault::kHostMemory && shape->adopted->plan.prediction.host_peak > Bytes(0);
  std::string finding;
  if (fault == StepFault::kDeviceMemory) {
    const Instance instance = InstanceOf(shape->known(), options_.plan.recompute_only);
    finding = MemoryWords(*failure, before, instance, shape->adopted->plan.schedule);
  }
  NoteOutOfMemory(status, finding, of_host, of_host ? host : peak - before, retries, shape);
}

void Agent::NoteOutOfMemory(const absl::Status& status, const std::string& finding, bool host,
                            Bytes got, bool retries, PlannedShape* shape) {
  const OutOfMemoryOptions& options = options_.out_of_memory;
  const stowage::Plan& plan = shape->adopted->plan;
  const Bytes wanted = host ? plan.prediction.host_peak : plan.prediction.peak;
  const bool asked = shape->fails();
  const bool again = asked || shape->smaller_plans < options.tries;
  events_->Emit(OutOfMemoryEvent{shape->signature.text(), host, wanted, got, again && retries,
                                 std::string(status.message()), finding});
  if (!again) return;
  if (!asked) ++shape->smaller_plans;
  const Bytes less = SmallerBudget(wanted, got, options.factor);
  PendingReplan pending{ReplanReason::kOutOfMemory, less};
  if (host) {
    const bool last = shape->smaller_plans >= options.tries;
    pending = {ReplanReason::kHostMemory, plan.budget, last ? Bytes(0) : less};
  } else if (room_) {
    room_ = std::min(*room_, less);
  }
  AskAgain(pending, absl::StrCat("the step held ", ToString(got), " of ", ToString(wanted)), shape);
  if (!agreed_) LimitHostMemory(pending, shape);
}

void Agent::NoteImmovable(const absl::Status& status, PlannedShape* shape) {
  if (planner_.host_memory() == Bytes(0)) return;  // there was no other plan
  const PendingReplan pending{ReplanReason::kImmovable, shape->adopted->plan.budget, Bytes(0)};
  AskAgain(pending, std::string(status.message()), shape);
  if (!agreed_) LimitHostMemory(pending, shape);
}

// Of all plans from now on. Those of other shapes that take more would fail a step each before they are
// found out.
void Agent::LimitHostMemory(const PendingReplan& pending, const PlannedShape* shape) {
  if (pending.host_memory >= planner_.host_memory()) return;
  planner_.LimitHostMemory(pending.host_memory);
  if (pending.host_memory == Bytes(0)) {
    events_->Emit(CopiesForbiddenEvent{shape->signature.text(), pending.reason});
  }
  for (PlannedShape* other : table_.BeyondHostMemory(pending.host_memory)) {
    if (other == shape) continue;
    const stowage::Plan& plan = other->adopted->plan;
    AskAgain({pending.reason, plan.budget, pending.host_memory},
             absl::StrCat("its plan takes ", ToString(plan.prediction.host_peak),
                          " of host memory, plans may take ", ToString(pending.host_memory)),
             other);
  }
}

void Agent::AskAgain(const PendingReplan& pending, const std::string& words, PlannedShape* shape) {
  shape->pending = pending;
  events_->Emit(ReplanEvent{shape->signature.text(), pending.reason, words, pending.budget});
}

void Agent::NoteLater(const StepReport& report, bool shadow, const PlannedShape& shape) {
  const Digest plan = shape.adopted ? shape.adopted->digest : Digest();
  untimed_.push_back({shape.signature, plan, shadow, report, memory_.reserved_peak});
  NoteTimes(/*waits=*/false);
}

void Agent::NoteTimes(bool waits) {
  while (!untimed_.empty()) {
    try {
      if (!waits && !untimed_.front().report.wall_time.ready()) return;
      untimed_.front().report.wall_time.Get();
    } catch (...) {
      // The device failed: whoever reads what it computed is told.
      untimed_.pop_front();
      continue;
    }
    const UntimedStep step = std::move(untimed_.front());
    untimed_.pop_front();
    PlannedShape* const shape = table_.Find(step.signature);
    if (shape == nullptr) continue;
    if (step.shadow) {
      NoteShadowTime(step.report, shape);
    } else if (shape->step != nullptr && shape->adopted->digest == step.plan) {  // no other since
      NoteStep(step, shape);
    }
  }
}

const MeasuredStep& Agent::measured() {
  NoteEnded();
  try {
    return measured_;
  } catch (...) {
    measured_ = MeasuredStep();
    return measured_;
  }
}

void Agent::NoteStep(const UntimedStep& step, PlannedShape* shape) {
  shape->watch.Add(step.report);
  shape->reserved_peak = step.reserved_peak;
  ReportByItself(shape);
  NoteDrift(shape);
}

void Agent::NoteDrift(PlannedShape* shape) {
  // Less memory is wished for already; or no other rank has this plan.
  if (shape->fails() || shape->alone) return;
  // What was predicted for a larger shape is no prediction for this one.
  if (shape->adopted->for_larger || shape->replans >= options_.drift.replans) return;
  const std::optional<Drift> drift =
      DriftOf(shape->watch, shape->adopted->plan.prediction, options_.drift);
  if (!drift) return;
  ++shape->replans;
  const Bytes budget = shape->adopted->plan.budget;
  AskAgain({drift->reason, budget}, drift->words, shape);
}

// Of ranks one does for all: others may have no way to it.
bool Agent::AsksServer() const { return !agreed_ || agreement_->rank() == 0; }

// The wish of when the plan came may be met by now, or have come up since.
void Agent::OfferProfile(PlannedShape* shape) {
  if (options_.wanted_profile_every == 0) return;
  if (++steps_since_offer_ < options_.wanted_profile_every) return;
  const AdoptedPlan& adopted = *shape->adopted;
  // Nobody keeps a plan that was made here; what this shape takes says nothing of a larger one.
  if (!AsksServer() || shape->pending || adopted.source == PlanSource::kLocal || adopted.for_larger)
    return;
  steps_since_offer_ = 0;
  const absl::StatusOr<PlanReply> reply = connection_->GetPlan(
      {adopted.key}, adopted.plan.budget, planner_.CallWithin(options_.report_timeout));
  if (!reply.ok() || !reply->profile_wanted) return;
  AskAgain({ReplanReason::kProfileWanted, adopted.plan.budget},
           "the server would like a fresh profile", shape);
}

absl::StatusOr<ExecutionVerdict> Agent::SendReport(const PlannedShape& shape) {
  const AdoptedPlan& adopted = *shape.adopted;
  ExecutionMeasurement measured;
  measured.key = adopted.key;
  measured.plan_digest = adopted.digest;
  measured.revision = adopted.plan.revision;
  measured.budget = adopted.plan.budget;
  measured.steps = shape.watch.steps();
  measured.step_time = shape.watch.MedianTime(measured.steps);
  measured.peak = shape.watch.MedianPeak(measured.steps);
  const StepReport& latest = shape.watch.latest();
  measured.reserved_peak = shape.reserved_peak;
  measured.offloaded = latest.offloaded;
  measured.prefetched = latest.prefetched;
  Span reporting = planner_.StartRequest("stowage.report");
  absl::StatusOr<ExecutionVerdict> verdict = connection_->ReportExecution(
      measured, planner_.CallWithin(options_.report_timeout, reporting));
  if (!verdict.ok()) reporting.Fail(std::string(verdict.status().message()));
  reporting.End();
  if (verdict.ok()) {
    const int copies = latest.count(Op::kOffloadStart) + latest.count(Op::kPrefetchStart);
    events_->Emit(ReportSentEvent{shape.signature.text(), measured.steps, measured.step_time,
                                  measured.peak, *verdict, copies, latest.offloaded,
                                  latest.prefetched, measured.reserved_peak});
  } else {
    events_->Emit(ReportRefusedEvent{shape.signature.text(), verdict.status()});
  }
  return verdict;
}

void Agent::ReportByItself(PlannedShape* shape) {
  if (!AsksServer() || shape->reported || shape->watch.steps() != options_.report_after) return;
  // Nobody keeps a plan that was made here; what a plan for a larger shape takes is no measure of it.
  if (shape->adopted->source == PlanSource::kLocal || shape->adopted->for_larger) return;
  shape->reported = true;
  // An event tells if it went wrong: training does not depend on it.
  (void)SendReport(*shape);
}

absl::StatusOr<ExecutionVerdict> Agent::Report() {
  if (!valid_.ok()) return valid_;
  NoteEnded();
  NoteTimes(/*waits=*/true);
  const PlannedShape* shape = latest_ ? table_.Find(*latest_) : nullptr;
  if (options_.shadow || shape == nullptr || shape->step == nullptr || shape->watch.steps() == 0) {
    return absl::FailedPreconditionError("no step has been made by the adopted plan");
  }
  if (shape->adopted->for_larger) {
    return absl::FailedPreconditionError("the adopted plan was made for a larger shape");
  }
  return SendReport(*shape);
}

}  // namespace stowage
