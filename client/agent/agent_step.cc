#include <algorithm>
#include <cstddef>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "client/agent/agent.h"
#include "client/torch/execute/step_failure.h"
#include "client/torch/memory/tracking_allocator.h"
#include "solvers/model/problem.h"
#include "solvers/planner.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/schedule.h"

namespace stowage {
namespace {

bool MustKeep(const Problem& problem, int part) {
  if (const Chain* chain = std::get_if<Chain>(&problem)) return chain->stage(part).must_keep;
  return std::get<Graph>(problem).vertex(part - 1).must_keep;
}

absl::Status NothingFits(const PlannedShape& shape) {
  const Plan& plan = shape.adopted->plan;
  return absl::FailedPreconditionError(absl::StrCat(shape.signature.text(), ": no plan within ",
                                                    ToString(plan.budget), " (",
                                                    ToString(plan.status), ")"));
}

}  // namespace

absl::StatusOr<StepReport> Agent::Step(Batch batch) {
  const absl::Status listed = CheckBatch(batch);
  if (!listed.ok()) return listed;
  NoteEnded();
  Overlap();
  const auto plain_step = [this](Batch whole) {
    ++steps_.plain;
    return model_->PlainStep(std::move(whole), {MeterOf(options_), options_.device});
  };
  if (!agreed_ && SwitchedOff()) return plain_step(std::move(batch));
  PlannedShape* shape = FindOrAddShape(batch);
  if (options_.shadow) return ShadowStep(std::move(batch), shape);
  const absl::StatusOr<PlannedShape*> by = ShapeOfStep(batch, /*whole=*/true, shape);
  if (!by.ok()) return by.status();
  absl::StatusOr<StepReport> report =
      *by == nullptr ? plain_step(std::move(batch)) : StepBy(std::move(batch), *by, shape);
  // What comes of an error here, the next step says.
  if (tells_) (void)SayOfStep();
  return report;
}

absl::StatusOr<StepReport> Agent::StepBy(Batch batch, PlannedShape* by, PlannedShape* shape) {
  const bool retries = options_.out_of_memory.retry_step;
  std::optional<Batch> kept;
  std::optional<AddedGradients> added;
  if (retries || FinishesSteps()) kept = batch;
  if (FinishesSteps()) added.emplace(model_->tensors().parameters());
  absl::StatusOr<StepReport> report = PlannedRun(std::move(batch), retries, by == shape, by);
  if (report.ok()) return report;
  if (added) return FinishStep(*std::move(kept), *added, report.status(), *by);
  if (!retries || !by->fails()) return report;
  model_->tensors().ZeroGradients();
  const absl::StatusOr<PlannedShape*> again =
      ShapeToStepBy(*kept, /*whole=*/true, shape);  // within less
  if (!again.ok()) return again.status();
  return PlannedRun(*std::move(kept), /*retries=*/false, *again == shape, *again);
}

// Whether a part that may communicate, and so runs once in a step on all ranks, has begun to. `failure`: where it ended; none: nobody
// knows.
bool Agent::HasCommunicated(const std::optional<StepFailure>& failure,
                            const PlannedShape& by) const {
  if (!agreed_ || !model_->may_communicate()) return false;
  if (!failure) return true;
  const Schedule& schedule = by.adopted->plan.schedule;
  const size_t begun = std::min(failure->instruction + 1, schedule.size());
  const Problem& problem = by.known().problem;
  return std::any_of(schedule.begin(), schedule.begin() + static_cast<std::ptrdiff_t>(begun),
                     [&problem](const Instruction& instruction) {
                       return IsForward(instruction.op) && MustKeep(problem, instruction.stage);
                     });
}

// Nobody else knows of it: what other ranks wait for comes, if later.
absl::StatusOr<StepReport> Agent::FinishStep(Batch batch, const AddedGradients& added,
                                             const absl::Status& failed, const PlannedShape& by) {
  const std::optional<StepFailure> failure = GetStepFailure(failed);
  const bool immovable = failure && failure->fault == StepFault::kImmovable;
  if (!absl::IsResourceExhausted(failed) && !immovable) return failed;
  // It was none of the plan's instructions.
  if (!failure && !added.Parameters().empty()) return failed;
  if (HasCommunicated(failure, by)) return failed;
  arenas_.Release();
  const stowage::Profile& known = by.known();
  PlanOptions options;
  options.recompute_only = true;
  const absl::StatusOr<stowage::Plan> plan =
      stowage::MakePlan(InstanceOf(known, /*recompute_only=*/true), LeastBudget{}, options);
  if (!plan.ok() || plan->status != PlanStatus::kFound) return failed;
  if (plan->prediction.peak > by.adopted->plan.budget) {
    absl::Status beyond(failed.code(),
                        absl::StrCat(std::string(failed.message()), "; and the least plan takes ",
                                     ToString(plan->prediction.peak), " without copies, of ",
                                     ToString(by.adopted->plan.budget)));
    if (failure) SetStepFailure(*failure, &beyond);
    return beyond;
  }
  const absl::StatusOr<std::unique_ptr<PlannedStep>> step =
      model_->Prepare(known.problem, plan->schedule, batch, options_.device);
  if (!step.ok()) return failed;
  const LeavingGradients leaving(added.Parameters());
  absl::StatusOr<StepReport> report = (*step)->Run(std::move(batch));
  if (report.ok()) ++steps_.finished;
  return report;
}

// `whole`: Step's, which ends also where its plan fails.
absl::StatusOr<PlannedShape*> Agent::ShapeOfStep(const Batch& batch, bool whole,
                                                 PlannedShape* shape) {
  absl::StatusOr<PlannedShape*> by(nullptr);
  if (agreed_) {
    // They have agreed on nothing: the others cannot step but so.
    if (!room_ && !wanted_ && !OffBy().empty()) return by;
    const absl::Status status = AgreeBeforeStep(batch, shape);
    if (!status.ok()) return status;
  }
  const bool plain = agreed_ && (SwitchedOff() || (!room_ && wanted_));
  if (!plain) {
    by = ShapeToStepBy(batch, whole, shape);
    if (by.ok()) stepped_by_ = (*by)->signature;
  }
  if (!agreed_) return by;
  if (agreement_->votes()) {
    tells_ = by.ok();
  } else if (!by.ok()) {
    --steps_since_agreement_;  // the caller's next batch is that of the step that the others are in
  }
  return by;
}

absl::StatusOr<PlannedShape*> Agent::ShapeToStepBy(const Batch& batch, bool whole,
                                                   PlannedShape* shape) {
  if (shape->pending && !agreed_) Replan(batch, shape);
  if (shape->alone && shape->fails()) PlanAloneForLess(batch, shape);
  if (shape->step != nullptr) return shape;
  if (shape->adopted) return NothingFits(*shape);
  if (agreed_ || shape->served_by_larger < options_.steps_by_larger) {
    PlannedShape* larger = table_.Larger(shape->signature);
    // Until all plan again for the larger shape, which takes a step of it. One that does not come is not waited for.
    if (larger == nullptr && agreed_ && whole && shape->served_by_larger < options_.drift.window) {
      larger = table_.Larger(shape->signature, /*fails=*/true);
    }
    if (larger != nullptr) {
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
    if (!room_ || model_->may_communicate()) {
      return absl::FailedPreconditionError(
          absl::StrCat(shape->signature.text(),
                       room_ ? ": no rank measures alone what may communicate"
                             : ": the ranks have not agreed on a budget",
                       ": call Plan for this shape on all of them"));
    }
    absl::StatusOr<PreparedPlan> prepared = PlanAlone(batch, *room_, shape);
    if (!prepared.ok()) return prepared.status();
    InstallAlone(*std::move(prepared), shape);
    return *shape->adopted;
  }
  const absl::StatusOr<Budget> budget = room_     ? Budget(*room_)
                                        : wanted_ ? *wanted_
                                                  : BudgetOfOptions();
  if (!budget.ok()) return budget.status();
  absl::StatusOr<std::optional<PreparedPlan>> prepared =
      MakePlan(batch, *budget, /*refresh=*/false, shape);
  if (!prepared.ok()) return prepared.status();
  AdoptedPlan adopted = Install(**std::move(prepared), shape);
  if (!room_) room_ = adopted.plan.budget;
  return adopted;
}

// One of several ranks, for a batch that the others may not have: they wait for its gradients, and for nothing else that it
// does. Once all are at this shape they plan for it together.
absl::StatusOr<PreparedPlan> Agent::PlanAlone(const Batch& batch, Bytes budget,
                                              PlannedShape* shape) {
  arenas_.Release();
  return planner_.PlanHere(batch, budget, shape);
}

void Agent::InstallAlone(PreparedPlan prepared, PlannedShape* shape) {
  Install(std::move(prepared), shape);
  shape->alone = true;
  shape->pending = PendingReplan{ReplanReason::kPlannedAlone, *room_};
}

// In place of a plan that there is, and that stays where there is no other.
void Agent::InstallOrTell(absl::StatusOr<PreparedPlan> prepared, bool alone, PlannedShape* shape) {
  absl::Status status = prepared.status();
  if (status.ok() && prepared->step == nullptr) {
    const stowage::Plan& plan = prepared->adopted.plan;
    status =
        absl::NotFoundError(absl::StrCat(ToString(plan.status), " within ", ToString(plan.budget)));
  }
  if (!status.ok()) {
    events_->Emit(PlanFailedEvent{shape->signature.text(), status});
  } else if (alone) {
    InstallAlone(*std::move(prepared), shape);
  } else {
    Install(*std::move(prepared), shape);
  }
}

// Its plan fails, and the others have none for this shape.
void Agent::PlanAloneForLess(const Batch& batch, PlannedShape* shape) {
  const PendingReplan pending = *shape->pending;
  shape->pending = PendingReplan{ReplanReason::kPlannedAlone, *room_};
  LimitHostMemory(pending, shape);
  InstallOrTell(PlanAlone(batch, pending.budget, shape), /*alone=*/true, shape);
}

void Agent::Replan(const Batch& batch, PlannedShape* shape) {
  const PendingReplan pending = *shape->pending;
  shape->pending.reset();
  LimitHostMemory(pending, shape);
  // With a profile of now, unless it is memory that is missing or there was none before.
  const bool refresh = !StopsSteps(pending.reason) && pending.reason != ReplanReason::kPlannedAlone;
  absl::StatusOr<std::optional<PreparedPlan>> prepared =
      MakePlan(batch, pending.budget, refresh, shape);
  if (!prepared.ok()) return InstallOrTell(prepared.status(), /*alone=*/false, shape);
  if (!prepared->has_value()) {
    shape->pending = pending;  // once they are on again
    return;
  }
  InstallOrTell(**std::move(prepared), /*alone=*/false, shape);
}

absl::StatusOr<Agent::StepStart> Agent::StartOf(const Batch& batch) const {
  const absl::StatusOr<MemoryMeter*> meter = MeterOrInstalled(MeterOf(options_));
  if (!meter.ok()) return meter.status();
  StepStart start;
  start.input = InputBytes(batch);
  start.meter = *meter;
  start.before = start.meter->current() - start.input;
  start.blocks = start.meter->block_bytes() - start.input;
  start.reserved = start.meter->reserved() - arenas_.reserved() - start.input;
  start.pool = options_.device != nullptr ? options_.device->host() : nullptr;
  if (start.pool != nullptr) start.host = start.pool->held();
  return start;
}

Agent::StepPeaks Agent::PeaksSince(const StepStart& start) {
  return {start.meter->peak(), start.pool != nullptr ? start.pool->peak() - start.host : Bytes(0)};
}

absl::StatusOr<StepReport> Agent::PlannedRun(Batch batch, bool retries, bool own,
                                             PlannedShape* by) {
  // What would outlive the recorded step, and then not come again.
  if (arenas_.used()) model_->tensors().EnsureGradients();
  const absl::StatusOr<StepStart> start = StartOf(batch);
  if (!start.ok()) return start.status();
  by->step->MeasureInto(options_.measure_steps ? &measured_ : nullptr);
  const Bytes beside = start->reserved + start->input;
  absl::StatusOr<StepReport> report = arenas_.Run(
      latest_->text(), by->adopted->digest,
      [&] { return RoomForRegion(beside, start->input, *by); },
      [&] { return by->step->Run(std::move(batch)); });
  NoteEnd(report, *start, PeaksSince(*start), retries, own, /*alone=*/begun_.empty(), by);
  if (report.ok()) arenas_.Describe(&memory_);
  return report;
}

void Agent::NoteEnd(const absl::StatusOr<StepReport>& report, const StepStart& start,
                    const StepPeaks& peaks, bool retries, bool own, bool alone, PlannedShape* by) {
  if (!report.ok()) {
    return NoteFailure(report.status(), start.before, peaks.device, peaks.host, retries, by);
  }
  NoteMemory(*report, start.blocks, *by);
  ++(own ? steps_.planned : steps_.by_larger);
  if (!own || !alone) return;
  NoteLater(*report, /*shadow=*/false, *by);
  OfferProfile(by);
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
}

void Agent::PlanForShadow(const Batch& batch, PlannedShape* shape) {
  if (shape->adopted || shape->shadowed) return;
  shape->shadowed = true;
  const absl::Status status = PlanUnasked(batch, shape).status();
  if (!status.ok()) events_->Emit(PlanFailedEvent{shape->signature.text(), status});
}

absl::StatusOr<StepReport> Agent::ShadowStep(Batch batch, PlannedShape* shape) {
  PlanForShadow(batch, shape);
  absl::StatusOr<StepReport> report =
      model_->PlainStep(std::move(batch), {MeterOf(options_), options_.device});
  if (report.ok()) NoteShadow(*report, /*alone=*/begun_.empty(), shape);
  return report;
}

void Agent::NoteShadow(const StepReport& report, bool alone, PlannedShape* shape) {
  ++steps_.shadow;
  if (shape != nullptr && alone) NoteLater(report, /*shadow=*/true, *shape);
}

void Agent::NoteShadowTime(const StepReport& report, PlannedShape* shape) {
  StepWatch& watch = shape->watch;
  watch.Add(report);
  if (shape->step == nullptr || watch.steps() % options_.shadow_every != 0) return;
  const stowage::Plan& plan = shape->adopted->plan;
  events_->Emit(
      ShadowEvent{shape->signature.text(), watch.steps(), watch.MedianTime(options_.shadow_every),
                  watch.MedianPeak(options_.shadow_every), plan.bounds.store_all_makespan,
                  plan.bounds.store_all_peak, plan.prediction.makespan, plan.prediction.peak});
}

}  // namespace stowage
