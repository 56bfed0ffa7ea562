#include "client/agent/batch_planner.h"

#include <utility>

#include "client/rpc/call_stop.h"
#include "solvers/model/canonical.h"
#include "solvers/planner.h"

namespace stowage {
namespace {

Nanos Since(std::chrono::steady_clock::time_point start) {
  return Nanos(std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count());
}

}  // namespace

// One batch's profiles: bytes are measured in one pass, times only when they are asked for, and neither
// if shapes do.
class BatchPlanner::Source : public ProfileSource {
 public:
  Source(BatchPlanner* planner, const Batch& batch, PlannedShape* shape)
      : planner_(planner), batch_(batch), shape_(shape) {}

  const stowage::Profile* Shapes() override { return planner_->Shapes(batch_, shape_); }

  absl::StatusOr<const stowage::Profile*> Structure() override {
    return Measured(planner_->EnsureBytes(batch_, shape_));
  }

  absl::StatusOr<const stowage::Profile*> Full() override {
    return Measured(planner_->EnsureTimes(batch_, shape_));
  }

 private:
  absl::StatusOr<const stowage::Profile*> Measured(const absl::Status& status) const {
    if (!status.ok()) return status;
    return &*shape_->profile;
  }

  BatchPlanner* const planner_;
  const Batch& batch_;
  PlannedShape* const shape_;
};

BatchPlanner::BatchPlanner(const TrainedModel* model, PlanConnection* connection,
                           const AgentOptions* options, EventSink* events)
    : model_(model), options_(options), events_(events), client_(connection, {options->plan, {}}) {}

absl::Status BatchPlanner::Measure(const Batch& batch, ProfileOptions options,
                                   PlannedShape* shape) {
  // Whether there are whole steps beside the passes depends on what memory is free, which other ranks may have less of.
  if (options_->agreement != nullptr && may_communicate()) options.calibrate = false;
  const auto start = std::chrono::steady_clock::now();
  absl::StatusOr<stowage::Profile> profile = model_->Measure(batch, options);
  if (!profile.ok()) return profile.status();
  const Nanos time = Since(start);
  shape->profile = *std::move(profile);
  WriteLinkIn(&shape->profile);
  WriteLinkIn(&shape->shapes);
  CompareWithShapes(shape);
  events_->Emit(ProfileTakenEvent{shape->signature.text(), shape->profile->cost_source, time,
                                  /*from_shapes=*/false, not_shapes_});
  return absl::OkStatus();
}

// Of a profile that there is. Also of one that was taken before host memory ran short.
void BatchPlanner::WriteLinkIn(std::optional<stowage::Profile>* profile) const {
  if (*profile) WriteLink(options_->device, host_memory_, &(*profile)->device);
}

// Plans of a key that is not the model's would never be found again.
void BatchPlanner::CompareWithShapes(PlannedShape* shape) {
  if (shape->shapes && CanonicalBytes(*shape->shapes, {}) != CanonicalBytes(*shape->profile, {})) {
    not_shapes_ = "its shapes tell another structure";
  }
  shape->shapes.reset();
}

const stowage::Profile* BatchPlanner::Shapes(const Batch& batch, PlannedShape* shape) {
  const bool ran_out_of_memory = shape->smaller_plans > 0;
  if (!options_->plan_by_shapes || shape->profile || ran_out_of_memory) return nullptr;
  WriteLinkIn(&shape->shapes);
  if (shape->shapes) return &*shape->shapes;
  if (!not_shapes_.empty()) return nullptr;
  const auto start = std::chrono::steady_clock::now();
  absl::StatusOr<stowage::Profile> shapes =
      model_->FromShapes(batch, {MeterOf(*options_), options_->device});
  if (!shapes.ok()) {
    not_shapes_ = std::string(shapes.status().message());
    return nullptr;
  }
  shape->shapes = *std::move(shapes);
  // Nothing was run on it; the key is of the device all the same.
  shape->shapes->device = model_->DeviceOf(options_->device);
  WriteLinkIn(&shape->shapes);
  events_->Emit(ProfileTakenEvent{shape->signature.text(), shape->shapes->cost_source, Since(start),
                                  /*from_shapes=*/true, ""});
  return &*shape->shapes;
}

absl::Status BatchPlanner::EnsureBytes(const Batch& batch, PlannedShape* shape, bool anew) {
  WriteLinkIn(&shape->profile);
  if (shape->profile && !anew) return absl::OkStatus();
  ProfileOptions options = options_->profile;
  options.bytes_only = true;
  options.warmup = 0;
  return Measure(batch, options, shape);
}

absl::Status BatchPlanner::EnsureTimes(const Batch& batch, PlannedShape* shape, bool anew) {
  WriteLinkIn(&shape->profile);
  if (shape->has_times() && !anew) return absl::OkStatus();
  ProfileOptions options = options_->profile;
  options.repeats = options_->first_repeats;
  if (shape->profile && !anew) options.warmup = 0;  // the pass for the bytes has done it
  return Measure(batch, options, shape);
}

absl::Status BatchPlanner::Profile(const Batch& batch, PlannedShape* shape) {
  return Measure(batch, options_->profile, shape);
}

Span BatchPlanner::StartRequest(const char* name) const {
  if (options_->tracer == nullptr) return Span();
  const auto parent = options_->traceparent ? ParseTraceparent(options_->traceparent())
                                            : std::optional<TraceContext>();
  if (!parent) return Span::Root(options_->tracer, name, SpanKind::kClient);
  return Span(options_->tracer, *parent, name, SpanKind::kClient);
}

CallOptions BatchPlanner::CallWithin(std::chrono::milliseconds timeout, const Span& span) const {
  CallOptions call = CallOptions::Within(timeout);
  call.job = options_->job;
  if (span.recording()) {
    call.traceparent = FormatTraceparent(span.context());
  } else if (options_->traceparent) {
    call.traceparent = options_->traceparent();
  }
  return call;
}

absl::StatusOr<ClientPlan> BatchPlanner::Ask(ProfileSource* source, const Budget& budget,
                                             bool refresh) {
  Span asking = StartRequest("stowage.plan");
  const CallOptions call = CallWithin(options_->plan_timeout, asking);
  absl::StatusOr<ClientPlan> plan =
      refresh ? client_.Compute(source, budget, call) : client_.Plan(source, budget, call);
  if (plan.ok()) {
    asking.Add("stowage.source", ToString(plan->reply.source));
    asking.Add("stowage.profiled", plan->profiled ? "yes" : "no");
  } else {
    asking.Fail(std::string(plan.status().message()));
  }
  return plan;
}

absl::StatusOr<PreparedPlan> BatchPlanner::Plan(const Batch& batch, const Budget& budget,
                                                PlannedShape* shape) {
  Source source(this, batch, shape);
  return Prepare(Ask(&source, budget, /*refresh=*/false), batch, *shape);
}

absl::StatusOr<PreparedPlan> BatchPlanner::PlanHere(const Batch& batch, const Budget& budget,
                                                    PlannedShape* shape) {
  const absl::Status status = EnsureTimes(batch, shape);
  if (!status.ok()) return status;
  const auto start = std::chrono::steady_clock::now();
  const CallStop stop(CallOptions::Within(options_->plan_timeout));
  absl::StatusOr<stowage::Plan> plan =
      MakePlan(*shape->profile, budget, stop.OptionsFor(options_->plan));
  if (!plan.ok()) return plan.status();
  ClientPlan answer;
  answer.reply.plan = *std::move(plan);
  answer.reply.key = MakePlanKey(*shape->profile, options_->plan);
  answer.reply.source = PlanSource::kLocal;
  answer.profiled = true;
  answer.request_time = Since(start);
  return Prepare(std::move(answer), batch, *shape);
}

absl::StatusOr<PreparedPlan> BatchPlanner::Refresh(const Batch& batch, const Budget& budget,
                                                   PlannedShape* shape) {
  const absl::Status status = Profile(batch, shape);
  if (!status.ok()) return status;
  Source source(this, batch, shape);
  return Prepare(Ask(&source, budget, /*refresh=*/true), batch, *shape);
}

absl::StatusOr<PlanKey> BatchPlanner::KeyOf(const Batch& batch, PlannedShape* shape) {
  const stowage::Profile* known = Shapes(batch, shape);
  if (known == nullptr) {
    const absl::Status status = EnsureBytes(batch, shape);
    if (!status.ok()) return status;
    known = &*shape->profile;
  }
  return client_.KeyOf(*known, CallWithin(options_->plan_timeout));
}

void BatchPlanner::TellOf(const ClientPlan& answer, const PlannedShape& shape) {
  const PlanReply& reply = answer.reply;
  if (!answer.profiled) {
    events_->Emit(
        CacheHitEvent{shape.signature.text(), reply.key, answer.for_larger, answer.request_time});
    return;
  }
  events_->Emit(PlannedEvent{shape.signature.text(), reply.source, reply.plan.status,
                             reply.plan.budget, reply.plan.bounds.least_budget,
                             reply.plan.provenance.solver, answer.request_time});
}

absl::StatusOr<PreparedPlan> BatchPlanner::Prepare(absl::StatusOr<ClientPlan> answer,
                                                   const Batch& batch, const PlannedShape& shape) {
  if (!answer.ok()) return answer.status();
  TellOf(*answer, shape);
  PreparedPlan prepared;
  AdoptedPlan& adopted = prepared.adopted;
  adopted.plan = std::move(answer->reply.plan);
  adopted.key = answer->reply.key;
  adopted.source = answer->reply.source;
  adopted.profile_wanted = answer->reply.profile_wanted;
  adopted.profiled = answer->profiled;
  adopted.for_larger = answer->for_larger;
  adopted.request_time = answer->request_time;
  if (adopted.plan.status != PlanStatus::kFound) return prepared;
  adopted.digest = ScheduleDigest(adopted.plan.schedule);
  absl::StatusOr<std::unique_ptr<PlannedStep>> step =
      model_->Prepare(shape.known().problem, adopted.plan.schedule, batch, options_->device);
  if (!step.ok()) return step.status();
  prepared.step = *std::move(step);
  return prepared;
}

}  // namespace stowage
