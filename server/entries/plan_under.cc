#include "server/entries/plan_under.h"

#include <algorithm>

#include "server/entries/cost_ratios.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/lower_bound.h"

namespace stowage {
namespace {

// Whether what is good with the reference's link, or without one, is so for the caller. Without a
// link of its own a caller may take what does not use the reference's.
bool LinkServes(const Instance& caller, const Instance& reference) {
  if (!caller.link()) return true;
  return reference.link() && AlikeLink(caller, reference);
}

bool IsPlain(const Simulation& simulation) {
  return simulation.recomputed_forwards == 0 && simulation.offloaded == Bytes(0);
}

}  // namespace

std::optional<Plan> PlanUnder(const Instance& caller, const Simulation& store_all,
                              const Instance& reference, const Plan& plan, Bytes budget) {
  const bool same_overheads = SameOverheads(caller.problem(), reference.problem());
  const bool same_memory = SameMemory(caller, reference);
  const bool same_costs = same_memory && SameTimes(caller.problem(), reference.problem()) &&
                          SameLink(caller, reference);
  if (plan.status == PlanStatus::kProvenInfeasible && !same_memory) return std::nullopt;
  if (plan.status == PlanStatus::kNotFound && !same_costs) return std::nullopt;
  Plan judged = plan;
  judged.budget = budget;
  judged.bounds.store_all_makespan = store_all.makespan;
  judged.bounds.store_all_peak = store_all.peak;
  if (!same_memory) judged.bounds.least_budget = Bytes(0);
  bool plain = true;
  if (plan.status == PlanStatus::kFound) {
    const absl::StatusOr<Simulation> simulation = Evaluator(caller).Run(plan.schedule);
    if (!simulation.ok() || simulation->peak > budget) return std::nullopt;
    judged.prediction = *simulation;
    plain = IsPlain(*simulation);
    if (!plain && !same_overheads && store_all.peak <= budget) return std::nullopt;
    if (!plain && !LinkServes(caller, reference)) return std::nullopt;
  }
  judged.bounds.lower_bound = MakespanLowerBound(caller, budget);
  if (budget <= plan.budget) {
    judged.bounds.lower_bound =
        std::max(judged.bounds.lower_bound, BoundUnder(caller, reference, plan.bounds.lower_bound));
  }
  // What was optimal under other costs need not be under these, unless it is plain training.
  if (!plain && !same_costs) judged.bounds.proven_optimal = false;
  return judged;
}

}  // namespace stowage
