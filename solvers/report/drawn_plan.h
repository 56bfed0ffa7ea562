// A plan with all that its pictures are drawn from.
#ifndef STOWAGE_SOLVERS_REPORT_DRAWN_PLAN_H_
#define STOWAGE_SOLVERS_REPORT_DRAWN_PLAN_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/plan/linked_problem.h"
#include "solvers/plan/measured_step.h"
#include "solvers/plan/plan.h"
#include "solvers/report/stage_roles.h"
#include "solvers/report/step_timeline.h"

namespace stowage {

// Immutable by convention, hence safe to share between threads.
struct DrawnPlan {
  std::string label;  // tells it from another one: "60%", "revolve"; any characters
  Plan plan;
  StepTimeline step;
  std::vector<StageUse> stages;  // by number
  std::optional<MeasuredStep> measured;
};

// Of a plan that was found for the problem. INVALID_ARGUMENT: it was not, the referee refuses its
// schedule, or the measured step is of another one. Cost of TimelineOf.
absl::StatusOr<DrawnPlan> DrawPlan(const LinkedProblem& linked, std::string label, Plan plan,
                                   std::optional<MeasuredStep> measured = std::nullopt);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_REPORT_DRAWN_PLAN_H_
