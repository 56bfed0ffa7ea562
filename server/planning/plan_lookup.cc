#include "server/planning/plan_lookup.h"

#include <algorithm>

namespace stowage {
namespace {

bool Before(const std::shared_ptr<const Plan>& a, const std::shared_ptr<const Plan>& b) {
  const bool a_found = a->status == PlanStatus::kFound;
  const bool b_found = b->status == PlanStatus::kFound;
  if (a_found != b_found) return a_found;
  return a_found && a->prediction.makespan < b->prediction.makespan;
}

}  // namespace

bool Serves(const Plan& plan, Bytes budget) {
  switch (plan.status) {
    case PlanStatus::kFound:
      return plan.prediction.peak <= budget &&
             (budget <= plan.budget || plan.prediction.makespan == plan.bounds.store_all_makespan);
    case PlanStatus::kProvenInfeasible:
      return budget < plan.bounds.least_budget;
    case PlanStatus::kNotFound:
      return budget == plan.budget;
  }
  return false;
}

std::vector<std::shared_ptr<const Plan>> PlansServing(const PlanEntry& entry, Bytes budget) {
  std::vector<std::shared_ptr<const Plan>> serving;
  std::copy_if(entry.plans.begin(), entry.plans.end(), std::back_inserter(serving),
               [budget](const std::shared_ptr<const Plan>& plan) { return Serves(*plan, budget); });
  std::stable_sort(serving.begin(), serving.end(), Before);
  return serving;
}

}  // namespace stowage
