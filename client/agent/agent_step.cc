#include <utility>

#include "absl/strings/str_cat.h"
#include "client/agent/agent.h"
#include "client/torch/memory/tracking_allocator.h"

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
    return model_->PlainStep(std::move(batch), {MeterOf(options_), options_.device});
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
  if (kept && !report.ok() && (*by)->fails()) {
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
  // With a profile of now, unless it is memory that is missing.
  const bool refresh = !StopsSteps(pending.reason);
  absl::StatusOr<PreparedPlan> prepared = MakePlan(batch, pending.budget, refresh, shape);
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
  const absl::StatusOr<MemoryMeter*> meter = MeterOrInstalled(MeterOf(options_));
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

absl::StatusOr<StepReport> Agent::ShadowStep(Batch batch, PlannedShape* shape) {
  if (!shape->adopted && !shape->shadowed) {
    shape->shadowed = true;
    const absl::Status status = PlanUnasked(batch, shape).status();
    if (!status.ok()) events_->Emit(PlanFailedEvent{shape->signature.text(), status});
  }
  absl::StatusOr<StepReport> report =
      model_->PlainStep(std::move(batch), {MeterOf(options_), options_.device});
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

}  // namespace stowage
