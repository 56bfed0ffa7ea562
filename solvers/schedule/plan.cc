#include "solvers/schedule/plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/lower_bound.h"

namespace stowage {

const char* ToString(PlanStatus status) {
  switch (status) {
    case PlanStatus::kFound:
      return "found";
    case PlanStatus::kProvenInfeasible:
      return "proven infeasible";
    case PlanStatus::kNotFound:
      return "not found";
  }
  return "unknown";
}

double Plan::gap() const {
  const int64_t bound = bounds.lower_bound.value();
  if (bound == 0) return 0.0;
  return static_cast<double>(prediction.makespan.value()) / static_cast<double>(bound) - 1.0;
}

namespace {

// The bounds are of schedules that run nothing on the communication stream; one that does is faster by no more than
// its time there.
void SetLowerBound(Nanos bound, Plan* plan) {
  if (plan->status == PlanStatus::kFound) {
    bound -= std::min(bound, plan->prediction.communication_time);
    if (plan->prediction.makespan <= bound) plan->bounds.proven_optimal = true;
  }
  plan->bounds.lower_bound = bound;
}

}  // namespace

absl::Status ValidatePlan(const Instance& instance, Plan* plan) {
  absl::Status status = instance.CheckLink();
  if (!status.ok()) return status;
  const absl::StatusOr<Simulation>& store_all = instance.store_all();
  if (!store_all.ok()) return store_all.status();
  plan->bounds.store_all_makespan = store_all->makespan;
  plan->bounds.store_all_peak = store_all->peak;
  if (plan->status == PlanStatus::kFound) {
    const absl::StatusOr<Simulation> simulation = Evaluator(instance).Run(plan->schedule);
    if (!simulation.ok()) return simulation.status();
    if (simulation->peak > plan->budget) {
      return absl::FailedPreconditionError(
          absl::StrCat("the plan's peak of ", simulation->peak.value(),
                       " bytes exceeds the budget of ", plan->budget.value(), " bytes"));
    }
    plan->prediction = *simulation;
  }
  SetLowerBound(MakespanLowerBound(instance, plan->budget), plan);
  return absl::OkStatus();
}

void StrengthenBound(const Instance& instance, Plan* plan) {
  SetLowerBound(StrongestMakespanLowerBound(instance, plan->budget), plan);
}

}  // namespace stowage
