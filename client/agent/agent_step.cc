#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/agent/agent.h"
#include "client/agent/memory_words.h"
#include "client/agent/out_of_memory.h"
#include "client/agent/step_watch.h"
#include "client/torch/step_failure.h"
#include "client/torch/tracking_allocator.h"
#include "solvers/plan/linked_problem.h"

namespace stowage {
namespace {

absl::Status NothingFits(const PlannedShape& shape) {
  const Plan& plan = shape.adopted->plan;
  return absl::FailedPreconditionError(absl::StrCat(shape.signature.text(), ": no plan within ",
                                                    ToString(plan.budget), " (",
                                                    ToString(plan.status), ")"));
}

}  // namespace

absl::StatusOr<StepReport> Agent::Step(Batch batch) {
  if (!valid_.ok()) return valid_;
  if (SwitchedOff()) {
    ++steps_.plain;
    return model_->PlainStep(std::move(batch), options_.profile.meter);
  }
  PlannedShape* shape = Meet(batch);
  if (options_.shadow) return ShadowStep(std::move(batch), shape);
  if (agreed_) {
    const absl::Status status = AgreeOnReplan(batch, shape);
    if (!status.ok()) return status;
  }
  absl::StatusOr<PlannedShape*> by = ShapeToStepBy(batch, shape);
  if (!by.ok()) return by.status();
  std::optional<Batch> kept;
  if (options_.out_of_memory.retry_step) kept = batch;
  absl::StatusOr<StepReport> report = PlannedRun(std::move(batch), kept.has_value(), *by);
  if (kept && !report.ok() && (*by)->pending) {
    model_->tensors().ZeroGradients();
    by = ShapeToStepBy(*kept, shape);  // within less
    if (!by.ok()) return by.status();
    report = PlannedRun(*std::move(kept), /*retries=*/false, *by);
  }
  if (!report.ok()) return report;
  ++(*by == shape ? steps_.planned : steps_.by_larger);
  if (*by == shape) NoteStep(*report, shape);
  return report;
}

absl::StatusOr<PlannedShape*> Agent::ShapeToStepBy(const Batch& batch, PlannedShape* shape) {
  if (shape->pending && !agreed_) Replan(batch, shape);
  if (shape->step != nullptr) return shape;
  if (shape->adopted) return NothingFits(*shape);
  if (agreed_ || shape->served_by_larger < options_.steps_by_larger) {
    if (PlannedShape* larger = table_.Larger(shape->signature)) {
      ++shape->served_by_larger;
      return table_.Find(larger->signature);  // it was used
    }
  }
  const absl::StatusOr<AdoptedPlan> adopted = PlanUnasked(batch, shape);
  if (!adopted.ok()) return adopted.status();
  if (shape->step == nullptr) return NothingFits(*shape);
  return shape;
}

// For a shape that Plan was not called for.
absl::StatusOr<AdoptedPlan> Agent::PlanUnasked(const Batch& batch, PlannedShape* shape) {
  if (agreed_) {
    return absl::FailedPreconditionError(absl::StrCat(
        shape->signature.text(), ": no rank plans alone: call Plan for this shape on all of them"));
  }
  const absl::StatusOr<Budget> budget = GivenBudget();
  if (!budget.ok()) return budget.status();
  absl::StatusOr<PreparedPlan> prepared = MakePlan(batch, *budget, /*refresh=*/false, shape);
  if (!prepared.ok()) return prepared.status();
  AdoptedPlan adopted = Install(*std::move(prepared), shape);
  if (!room_) room_ = adopted.plan.budget;
  return adopted;
}

void Agent::Replan(const Batch& batch, PlannedShape* shape) {
  const PendingReplan pending = *shape->pending;
  shape->pending.reset();
  LimitHostMemory(pending, shape);
  const bool drifted =
      pending.reason == ReplanReason::kTime || pending.reason == ReplanReason::kPeak;
  absl::StatusOr<PreparedPlan> prepared = MakePlan(batch, pending.budget, drifted, shape);
  absl::Status status = prepared.status();
  if (status.ok() && prepared->step == nullptr) {
    const stowage::Plan& plan = prepared->adopted.plan;
    status =
        absl::NotFoundError(absl::StrCat(ToString(plan.status), " within ", ToString(plan.budget)));
  }
  if (!status.ok()) {
    events_->Emit(PlanFailedEvent{shape->signature.text(), status});
    return;
  }
  Install(*std::move(prepared), shape);
}

absl::StatusOr<StepReport> Agent::PlannedRun(Batch batch, bool retries, PlannedShape* by) {
  const absl::StatusOr<MemoryMeter*> meter = MeterOrInstalled(
      options_.device != nullptr ? options_.device->meter() : options_.profile.meter);
  if (!meter.ok()) return meter.status();
  // What would outlive the recorded step, and then not come again.
  if (arenas_.used()) model_->tensors().EnsureGradients();
  const Bytes before = (*meter)->current() - InputBytes(batch);
  const Bytes beside = (*meter)->reserved() - arenas_.reserved();
  const Bytes input = InputBytes(batch);
  const HostPool* const host = options_.device != nullptr ? options_.device->host() : nullptr;
  const Bytes host_before = host != nullptr ? host->held() : Bytes(0);
  by->step->MeasureInto(options_.measure_steps ? &measured_ : nullptr);
  absl::StatusOr<StepReport> report = arenas_.Run(
      latest_->text(), by->adopted->digest, [&] { return RoomForRegion(beside, input, *by); },
      [&] { return by->step->Run(std::move(batch)); });
  if (!report.ok()) {
    const Bytes host_got = host != nullptr ? host->peak() - host_before : Bytes(0);
    NoteFailure(report.status(), before, (*meter)->peak(), host_got, retries, by);
  }
  if (report.ok()) NoteMemory(*report, beside - input, *by);
  return report;
}

// Where no limit of the device is known, the plan's budget is for what is reserved, too.
Bytes Agent::RoomForRegion(Bytes beside, Bytes input, const PlannedShape& by) const {
  if (!options_.device_limit) return by.adopted->plan.budget - input;
  const absl::StatusOr<DeviceBudget> shared =
      BudgetOfDevice(model_->tensors(), *options_.device_limit);
  return shared.ok() ? stowage::RoomForRegion(*shared, beside, input) : Bytes(0);
}

void Agent::NoteMemory(const StepReport& report, Bytes before, const PlannedShape& by) {
  memory_ = StepMemory();
  memory_.budget = by.adopted->plan.budget;
  memory_.peak = report.peak;
  memory_.reserved_peak = report.peak_reserved - before;
  if (options_.device_limit) memory_.device_limit = options_.device_limit->memory;
  memory_.device_peak = report.peak_reserved;
  arenas_.Describe(&memory_);
}

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
    const stowage::Profile& known = shape->profile ? *shape->profile : *shape->shapes;
    const LinkedProblem linked = LinkedProblemOf(known, options_.plan.recompute_only);
    finding = MemoryWords(*failure, before, linked, shape->adopted->plan.schedule);
  }
  NoteOutOfMemory(status, finding, of_host, of_host ? host : peak - before, retries, shape);
}

void Agent::NoteOutOfMemory(const absl::Status& status, const std::string& finding, bool host,
                            Bytes got, bool retries, PlannedShape* shape) {
  const OutOfMemoryOptions& options = options_.out_of_memory;
  const stowage::Plan& plan = shape->adopted->plan;
  const Bytes wanted = host ? plan.prediction.host_peak : plan.prediction.peak;
  const bool again = shape->pending || shape->smaller_plans < options.tries;
  events_->Emit(OutOfMemoryEvent{shape->signature.text(), host, wanted, got, again && retries,
                                 std::string(status.message()), finding});
  if (!again) return;
  if (!shape->pending) ++shape->smaller_plans;
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

void Agent::NoteStep(const StepReport& report, PlannedShape* shape) {
  shape->watch.Add(report);
  ReportByItself(shape);
  // What was predicted for a larger shape is no prediction for this one.
  if (shape->adopted->for_larger || shape->replans >= options_.drift.replans) return;
  const std::optional<Drift> drift =
      DriftOf(shape->watch, shape->adopted->plan.prediction, options_.drift);
  if (!drift) return;
  ++shape->replans;
  const Bytes budget = shape->adopted->plan.budget;
  AskAgain({drift->reason, budget}, drift->words, shape);
}

absl::StatusOr<StepReport> Agent::ShadowStep(Batch batch, PlannedShape* shape) {
  if (!shape->adopted && !shape->shadowed) {
    shape->shadowed = true;
    const absl::Status status = PlanUnasked(batch, shape).status();
    if (!status.ok()) events_->Emit(PlanFailedEvent{shape->signature.text(), status});
  }
  absl::StatusOr<StepReport> report = model_->PlainStep(std::move(batch), options_.profile.meter);
  if (!report.ok()) return report;
  ++steps_.shadow;
  StepWatch& watch = shape->watch;
  watch.Add(*report);
  if (shape->step != nullptr && watch.steps() % options_.shadow_every == 0) {
    const stowage::Plan& plan = shape->adopted->plan;
    events_->Emit(
        ShadowEvent{shape->signature.text(), watch.steps(), watch.MedianTime(options_.shadow_every),
                    watch.MedianPeak(options_.shadow_every), plan.bounds.store_all_makespan,
                    plan.bounds.store_all_peak, plan.prediction.makespan, plan.prediction.peak});
  }
  return report;
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
  measured.reserved_peak = memory_.reserved_peak;
  measured.sent = latest.sent;
  measured.fetched = latest.fetched;
  absl::StatusOr<ExecutionVerdict> verdict =
      connection_->ReportExecution(measured, planner_.CallWithin(options_.report_timeout));
  if (verdict.ok()) {
    const int copies = latest.count(Op::kOffloadStart) + latest.count(Op::kPrefetchStart);
    events_->Emit(ReportSentEvent{shape.signature.text(), measured.steps, measured.step_time,
                                  measured.peak, *verdict, copies, latest.sent, latest.fetched,
                                  measured.reserved_peak});
  } else {
    events_->Emit(ReportRefusedEvent{shape.signature.text(), verdict.status()});
  }
  return verdict;
}

void Agent::ReportByItself(PlannedShape* shape) {
  if (shape->reported || shape->watch.steps() != options_.report_after) return;
  // Nobody keeps a plan that was made here; what a plan for a larger shape takes is no measure of it.
  if (shape->adopted->source == PlanSource::kLocal || shape->adopted->for_larger) return;
  shape->reported = true;
  // An event tells if it went wrong: training does not depend on it.
  (void)SendReport(*shape);
}

absl::StatusOr<ExecutionVerdict> Agent::Report() {
  if (!valid_.ok()) return valid_;
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
