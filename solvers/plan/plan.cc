#include "solvers/plan/plan.h"

#include "absl/strings/str_cat.h"
#include "solvers/plan/lower_bound.h"
#include "solvers/plan/store_all_schedule.h"

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

absl::Status Referee(const Chain& chain, Plan* plan) {
  absl::StatusOr<Simulation> store_all = Simulate(chain, StoreAllSchedule(chain));
  if (!store_all.ok()) return store_all.status();
  plan->bounds.store_all_makespan = store_all->makespan;
  plan->bounds.store_all_peak = store_all->peak;
  plan->bounds.lower_bound = MakespanLowerBound(chain, plan->budget);
  if (plan->status != PlanStatus::kFound) return absl::OkStatus();

  absl::StatusOr<Simulation> simulation = Simulate(chain, plan->schedule);
  if (!simulation.ok()) return simulation.status();
  if (simulation->peak > plan->budget) {
    return absl::FailedPreconditionError(
        absl::StrCat("the plan's peak of ", simulation->peak.value(),
                     " bytes exceeds the budget of ", plan->budget.value(), " bytes"));
  }
  plan->prediction = *simulation;
  return absl::OkStatus();
}

}  // namespace stowage
