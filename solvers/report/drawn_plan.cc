#include "solvers/report/drawn_plan.h"

#include <utility>

#include "absl/status/status.h"
#include "solvers/model/field_error.h"

namespace stowage {

absl::StatusOr<DrawnPlan> DrawPlan(const LinkedProblem& linked, std::string label, Plan plan,
                                   std::optional<MeasuredStep> measured) {
  if (plan.status != PlanStatus::kFound) {
    return FieldError("plan.status", ToString(plan.status), "must be found: there is no step");
  }
  if (measured) {
    const absl::Status status = CheckMeasuredStep(*measured, plan.schedule);
    if (!status.ok()) return status;
  }
  absl::StatusOr<StepTimeline> step = TimelineOf(linked, plan.schedule);
  if (!step.ok()) return step.status();
  std::vector<StageUse> stages = StageUses(linked.problem, *step);
  return DrawnPlan{std::move(label), std::move(plan), *std::move(step), std::move(stages),
                   std::move(measured)};
}

}  // namespace stowage
