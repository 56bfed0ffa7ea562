#include "solvers/plan/plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "solvers/plan/graph_simulate.h"
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

namespace {

// `simulate` is the referee of the plan's problem.
template <class Simulate>
absl::Status RefereeWith(const Simulate& simulate, const Schedule& store_all_schedule,
                         Nanos lower_bound, Plan* plan) {
  const absl::StatusOr<Simulation> store_all = simulate(store_all_schedule);
  if (!store_all.ok()) return store_all.status();
  plan->bounds.store_all_makespan = store_all->makespan;
  plan->bounds.store_all_peak = store_all->peak;
  plan->bounds.lower_bound = lower_bound;
  if (plan->status != PlanStatus::kFound) return absl::OkStatus();

  const absl::StatusOr<Simulation> simulation = simulate(plan->schedule);
  if (!simulation.ok()) return simulation.status();
  if (simulation->peak > plan->budget) {
    return absl::FailedPreconditionError(
        absl::StrCat("the plan's peak of ", simulation->peak.value(),
                     " bytes exceeds the budget of ", plan->budget.value(), " bytes"));
  }
  plan->prediction = *simulation;
  plan->bounds.lower_bound -= std::min(lower_bound, simulation->communication_time);
  return absl::OkStatus();
}

}  // namespace

absl::Status Referee(const Chain& chain, Plan* plan) {
  return RefereeWith([&chain](const Schedule& s) { return Simulate(chain, s); },
                     StoreAllSchedule(chain), MakespanLowerBound(chain, plan->budget), plan);
}

absl::Status Referee(const Chain& chain, const TransferModel& transfers, Plan* plan) {
  absl::Status status = ValidateTransferModel(transfers);
  if (!status.ok()) return status;
  return RefereeWith([&](const Schedule& s) { return Simulate(chain, s, transfers); },
                     StoreAllSchedule(chain), MakespanLowerBound(chain, transfers, plan->budget),
                     plan);
}

absl::Status Referee(const Graph& graph, Plan* plan) {
  return RefereeWith([&graph](const Schedule& s) { return SimulateGraph(graph, s); },
                     StoreAllSchedule(graph), MakespanLowerBound(graph, plan->budget), plan);
}

absl::Status Referee(const Graph& graph, const TransferModel& transfers, Plan* plan) {
  absl::Status status = ValidateTransferModel(transfers);
  if (!status.ok()) return status;
  return RefereeWith([&](const Schedule& s) { return SimulateGraph(graph, s, transfers); },
                     StoreAllSchedule(graph), MakespanLowerBound(graph, transfers, plan->budget),
                     plan);
}

}  // namespace stowage
