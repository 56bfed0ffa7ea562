#include <cstdint>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "proto/codec/codec.h"
#include "proto/codec/codec_schedule.h"
#include "proto/codec/enum_map.h"
#include "proto/codec/field_path.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

constexpr EnumMap<v1::PlanStatus, PlanStatus, 3> kStatuses{{
    {v1::PLAN_STATUS_FOUND, PlanStatus::kFound},
    {v1::PLAN_STATUS_PROVEN_INFEASIBLE, PlanStatus::kProvenInfeasible},
    {v1::PLAN_STATUS_NOT_FOUND, PlanStatus::kNotFound},
}};

void WritePrediction(const Simulation& prediction, v1::Prediction* out) {
  out->set_makespan_ns(prediction.makespan.value());
  out->set_peak_bytes(prediction.peak.value());
  out->set_recompute_time_ns(prediction.recompute_time.value());
  out->set_idle_time_ns(prediction.idle_time.value());
  out->set_recomputed_forwards(prediction.recomputed_forwards);
  out->set_host_peak_bytes(prediction.host_peak.value());
  out->set_offloaded_bytes(prediction.offloaded.value());
  out->set_prefetched_bytes(prediction.prefetched.value());
  out->set_communication_time_ns(prediction.communication_time.value());
}

void WriteBounds(const Bounds& bounds, double gap, v1::Bounds* out) {
  out->set_store_all_makespan_ns(bounds.store_all_makespan.value());
  out->set_store_all_peak_bytes(bounds.store_all_peak.value());
  out->set_lower_bound_ns(bounds.lower_bound.value());
  out->set_gap(gap);
  out->set_proven_optimal(bounds.proven_optimal);
  out->set_schedule_class(bounds.schedule_class);
  out->set_least_budget_bytes(bounds.least_budget.value());
}

void WriteProvenance(const Provenance& provenance, v1::Provenance* out) {
  out->set_solver(provenance.solver);
  out->set_solver_version(provenance.solver_version);
  out->set_solve_time_ns(provenance.solve_time.value());
  out->set_slots(provenance.slots);
}

// Reads numbers that must not be negative and keeps the first that is.
class Counts {
 public:
  int64_t Read(const char* field, int64_t value) {
    if (status_.ok() && value < 0) status_ = FieldError(field, value, "must be >= 0");
    return value;
  }
  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

void ReadPrediction(const v1::Prediction& message, Counts* counts, Simulation* out) {
  out->makespan = Nanos(counts->Read("prediction.makespan_ns", message.makespan_ns()));
  out->peak = Bytes(counts->Read("prediction.peak_bytes", message.peak_bytes()));
  out->recompute_time =
      Nanos(counts->Read("prediction.recompute_time_ns", message.recompute_time_ns()));
  out->idle_time = Nanos(counts->Read("prediction.idle_time_ns", message.idle_time_ns()));
  out->recomputed_forwards = static_cast<int>(
      counts->Read("prediction.recomputed_forwards", message.recomputed_forwards()));
  out->host_peak = Bytes(counts->Read("prediction.host_peak_bytes", message.host_peak_bytes()));
  out->offloaded = Bytes(counts->Read("prediction.offloaded_bytes", message.offloaded_bytes()));
  out->prefetched = Bytes(counts->Read("prediction.prefetched_bytes", message.prefetched_bytes()));
  out->communication_time =
      Nanos(counts->Read("prediction.communication_time_ns", message.communication_time_ns()));
}

void ReadBounds(const v1::Bounds& message, Counts* counts, Bounds* out) {
  out->store_all_makespan =
      Nanos(counts->Read("bounds.store_all_makespan_ns", message.store_all_makespan_ns()));
  out->store_all_peak =
      Bytes(counts->Read("bounds.store_all_peak_bytes", message.store_all_peak_bytes()));
  out->lower_bound = Nanos(counts->Read("bounds.lower_bound_ns", message.lower_bound_ns()));
  out->proven_optimal = message.proven_optimal();
  out->schedule_class = message.schedule_class();
  out->least_budget =
      Bytes(counts->Read("bounds.least_budget_bytes", message.least_budget_bytes()));
}

void ReadProvenance(const v1::Provenance& message, Counts* counts, Provenance* out) {
  out->solver = message.solver();
  out->solver_version = message.solver_version();
  out->solve_time = Nanos(counts->Read("provenance.solve_time_ns", message.solve_time_ns()));
  out->slots = counts->Read("provenance.slots", message.slots());
}

absl::Status CheckSchedule(const Plan& plan, const v1::Plan& message) {
  const auto instructions = static_cast<int64_t>(plan.schedule.size());
  if (plan.status == PlanStatus::kFound && instructions == 0) {
    return FieldError("schedule.instructions", "[]", "must not be empty in a plan that was found");
  }
  if (plan.status != PlanStatus::kFound && instructions > 0) {
    return FieldError("schedule.instructions", absl::StrCat(instructions, " instructions"),
                      "must be empty unless the plan was found");
  }
  if (message.digest().size() != Digest::kSize) {
    return FieldError("digest", absl::StrCat(message.digest().size(), " bytes"),
                      absl::StrCat("must have ", Digest::kSize, " bytes"));
  }
  if (message.digest() != ScheduleDigest(plan.schedule).ToBinary()) {
    return FieldError("digest", absl::BytesToHexString(message.digest()),
                      "must be the SHA-256 of the schedule");
  }
  return absl::OkStatus();
}

// Names of fields are relative to the plan.
absl::StatusOr<Plan> ReadPlan(const v1::Plan& message) {
  Plan plan;
  Counts counts;
  absl::Status status = FromWire(kStatuses, "status", message.status(), &plan.status);
  if (!status.ok()) return status;
  absl::StatusOr<Schedule> schedule = ReadSchedule(message.schedule());
  if (!schedule.ok()) return schedule.status();
  plan.schedule = *std::move(schedule);
  status = CheckSchedule(plan, message);
  if (!status.ok()) return status;

  plan.budget = Bytes(counts.Read("budget_bytes", message.budget_bytes()));
  ReadPrediction(message.prediction(), &counts, &plan.prediction);
  ReadBounds(message.bounds(), &counts, &plan.bounds);
  ReadProvenance(message.provenance(), &counts, &plan.provenance);
  plan.revision = counts.Read("revision", message.revision());
  if (!counts.status().ok()) return counts.status();
  for (const v1::StageVertices& stage : message.stage_vertices()) {
    plan.stage_vertices.emplace_back(stage.vertex_ids().begin(), stage.vertex_ids().end());
  }
  plan.explanation = message.explanation();
  plan.search_complete = message.search_complete();
  return plan;
}

}  // namespace

v1::Plan ToProto(const Plan& plan) {
  v1::Plan message;
  message.set_status(ToWire(kStatuses, plan.status));
  message.set_budget_bytes(plan.budget.value());
  WriteSchedule(plan.schedule, message.mutable_schedule());
  WritePrediction(plan.prediction, message.mutable_prediction());
  const double gap = plan.status == PlanStatus::kFound ? plan.gap() : 0.0;
  WriteBounds(plan.bounds, gap, message.mutable_bounds());
  WriteProvenance(plan.provenance, message.mutable_provenance());
  for (const std::vector<int64_t>& stage : plan.stage_vertices) {
    message.add_stage_vertices()->mutable_vertex_ids()->Add(stage.begin(), stage.end());
  }
  message.set_digest(ScheduleDigest(plan.schedule).ToBinary());
  message.set_revision(plan.revision);
  message.set_explanation(plan.explanation);
  message.set_search_complete(plan.search_complete);
  return message;
}

v1::PlanStatus ToProto(PlanStatus status) { return ToWire(kStatuses, status); }

absl::StatusOr<PlanStatus> FromProto(v1::PlanStatus status) {
  PlanStatus native = PlanStatus::kNotFound;
  absl::Status read = FromWire(kStatuses, "status", status, &native);
  if (!read.ok()) return read;
  return native;
}

Digest DigestOf(const v1::Plan& plan) { return *DigestFromProto("digest", plan.digest()); }

absl::StatusOr<Plan> FromProto(const v1::Plan& message) {
  absl::StatusOr<Plan> plan = ReadPlan(message);
  if (!plan.ok()) return UnderField("plan.", plan.status());
  return plan;
}

}  // namespace stowage
