#include "server/planning/plan_lookup.h"

#include <algorithm>
#include <utility>

#include "server/planning/plan_under.h"

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
             (budget <= plan.budget ||
              (plan.prediction.recomputed_forwards == 0 && plan.prediction.sent == Bytes(0)));
    case PlanStatus::kProvenInfeasible:
      return budget < plan.bounds.least_budget;
    case PlanStatus::kNotFound:
      return budget == plan.budget;
  }
  return false;
}

std::vector<std::shared_ptr<const Plan>> PlansServing(const PlanEntry& entry, Bytes budget) {
  std::vector<std::shared_ptr<const Plan>> serving;
  for (const StoredPlan& stored : entry.plans) {
    if (stored.state == RevisionState::kServing && Serves(*stored.plan, budget)) {
      serving.push_back(stored.plan);
    }
  }
  std::stable_sort(serving.begin(), serving.end(), Before);
  return serving;
}

Found BestAccepted(const PlanningProblem& problem, const PlanEntry& entry, Bytes budget) {
  Found found;
  found.outcome = PlanLookup::kCollision;
  if (entry.canonical != *problem.canonical) return found;
  found.outcome = PlanLookup::kNoBudget;
  int judged = 0;
  for (const auto& candidate : PlansServing(entry, budget)) {
    if (judged++ == kMaxJudged) break;
    std::optional<Plan> plan =
        PlanUnder(*problem.costs, problem.store_all, *entry.reference, *candidate, budget);
    if (!plan) {
      ++found.refused;
      continue;
    }
    const bool better =
        !found.plan || (plan->status == PlanStatus::kFound &&
                        plan->prediction.makespan < found.plan->prediction.makespan);
    if (better) found.plan = std::move(plan);
  }
  if (found.refused > 0) found.outcome = PlanLookup::kRefused;
  if (found.plan) found.outcome = PlanLookup::kHit;
  return found;
}

}  // namespace stowage
