#include "solvers/graph/easy_plan.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/graph/least_need.h"
#include "solvers/plan/graph_simulate.h"
#include "solvers/plan/graph_store_all.h"

namespace stowage {

absl::StatusOr<std::optional<Plan>> EasyPlan(const Graph& graph, Bytes budget,
                                             const SolverInfo& solver,
                                             const SolveOptions& options) {
  absl::Status status = ValidateSolveOptions(options);
  if (status.ok() && options.stop != nullptr) status = options.stop->Check();
  if (!status.ok()) return status;
  Plan plan;
  plan.bounds.schedule_class = solver.schedule_class;
  const Bytes least = LeastNeed(graph);
  if (budget < least) {
    plan.status = PlanStatus::kProvenInfeasible;
    plan.bounds.least_budget = least;
    plan.explanation = absl::StrCat("some op alone needs ", least.value(),
                                    " bytes at once; --budget=least takes the smallest budget "
                                    "that a schedule is found for");
    return plan;
  }
  Schedule store_all = StoreAllSchedule(graph);
  const absl::StatusOr<Simulation> simulation = SimulateGraph(graph, store_all);
  if (!simulation.ok()) return absl::InternalError(simulation.status().message());
  if (simulation->peak > budget) return std::nullopt;
  plan.status = PlanStatus::kFound;
  plan.schedule = std::move(store_all);
  plan.bounds.proven_optimal = true;
  plan.explanation = "everything fits: nothing is recomputed";
  return plan;
}

}  // namespace stowage
