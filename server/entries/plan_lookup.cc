#include "server/entries/plan_lookup.h"

#include <algorithm>
#include <utility>

#include "server/entries/plan_under.h"
#include "server/entries/revisions.h"

namespace stowage {
namespace {

using Plans = std::vector<std::shared_ptr<const Plan>>;

bool Before(const std::shared_ptr<const Plan>& a, const std::shared_ptr<const Plan>& b) {
  const bool a_found = a->status == PlanStatus::kFound;
  const bool b_found = b->status == PlanStatus::kFound;
  if (a_found != b_found) return a_found;
  return a_found && a->prediction.makespan < b->prediction.makespan;
}

// Whether a solve could put another plan in the place of those for the budget.
bool MayChange(const PlanEntry& entry, Bytes budget) {
  return !entry.frozen && PinnedRevision(entry, budget) == nullptr;
}

template <class Wanted>
Plans Sorted(const PlanEntry& entry, Bytes budget, const Wanted& wanted) {
  Plans plans;
  for (const StoredPlan& stored : entry.plans) {
    if (Serves(*stored.plan, budget) && wanted(stored)) plans.push_back(stored.plan);
  }
  std::stable_sort(plans.begin(), plans.end(), Before);
  return plans;
}

// That is pinned for exactly this budget, and the only one therefore; null: none.
const StoredPlan* OnlyOne(const PlanEntry& entry, Bytes budget) {
  const StoredPlan* const pinned = PinnedRevision(entry, budget);
  return pinned != nullptr && Serves(*pinned->plan, budget) ? pinned : nullptr;
}

bool IsServing(const PlanEntry& entry, const StoredPlan& stored) {
  return ServingRevision(entry, stored.plan->budget) == &stored;
}

// Those that may be handed out and are not the ones that serve.
Plans PlansBeside(const PlanEntry& entry, Bytes budget) {
  return Sorted(entry, budget, [&entry](const StoredPlan& stored) {
    return stored.state == RevisionState::kServing &&
           ServingRevision(entry, stored.plan->budget) != &stored;
  });
}

// A search among the plans of one entry.
struct Search {
  Found found;
  int judged = 0;
  // Least under the reference of those that hold for the caller.
  Nanos best{kMaxTotal};
};

void FindFastest(const PlanningProblem& problem, const PlanEntry& entry, Bytes budget,
                 const Plans& candidates, Search* search) {
  Found& found = search->found;
  for (const auto& candidate : candidates) {
    if (search->judged++ >= kMaxJudged) break;
    std::optional<Plan> plan =
        PlanUnder(*problem.costs, problem.store_all, *entry.reference, *candidate, budget);
    if (!plan) {
      ++found.refused;
      continue;
    }
    search->best = std::min(search->best, candidate->prediction.makespan);
    const bool better =
        !found.plan || (plan->status == PlanStatus::kFound &&
                        plan->prediction.makespan < found.plan->prediction.makespan);
    if (better) found.plan = std::move(plan);
  }
}

}  // namespace

bool Serves(const Plan& plan, Bytes budget) {
  switch (plan.status) {
    case PlanStatus::kFound:
      return plan.prediction.peak <= budget &&
             (budget <= plan.budget ||
              (plan.prediction.recomputed_forwards == 0 && plan.prediction.offloaded == Bytes(0)));
    case PlanStatus::kProvenInfeasible:
      return budget < plan.bounds.least_budget;
    case PlanStatus::kNotFound:
      return budget == plan.budget;
  }
  return false;
}

std::vector<std::shared_ptr<const Plan>> PlansServing(const PlanEntry& entry, Bytes budget) {
  if (const StoredPlan* const only = OnlyOne(entry, budget)) return {only->plan};
  return Sorted(entry, budget,
                [&entry](const StoredPlan& stored) { return IsServing(entry, stored); });
}

std::shared_ptr<const Plan> FirstPlanServing(const PlanEntry& entry, Bytes budget) {
  if (const StoredPlan* const only = OnlyOne(entry, budget)) return only->plan;
  const StoredPlan* first = nullptr;
  for (const StoredPlan& stored : entry.plans) {
    const bool is_before = first == nullptr || Before(stored.plan, first->plan);
    if (is_before && Serves(*stored.plan, budget) && IsServing(entry, stored)) first = &stored;
  }
  return first == nullptr ? nullptr : first->plan;
}

Found BestAccepted(const PlanningProblem& problem, const PlanEntry& entry, Bytes budget,
                   double tolerance) {
  Search search;
  Found& found = search.found;
  found.outcome = PlanLookup::kCollision;
  if (entry.canonical != *problem.canonical) return std::move(found);
  found.outcome = PlanLookup::kNoBudget;
  const bool may_change = MayChange(entry, budget);
  FindFastest(problem, entry, budget, PlansServing(entry, budget), &search);
  const auto judge = [&] {
    if (!found.plan || found.plan->status != PlanStatus::kFound || !may_change) return;
    found.freshness = FreshnessOf(
        StalenessOf(*problem.costs, *entry.reference, search.best, *found.plan), tolerance);
  };
  judge();
  if (may_change && (!found.plan || found.freshness != Freshness::kFresh)) {
    FindFastest(problem, entry, budget, PlansBeside(entry, budget), &search);
    judge();
  }
  if (found.freshness == Freshness::kStale) {
    found.plan.reset();
    ++found.refused;
  }
  if (found.refused > 0) found.outcome = PlanLookup::kRefused;
  if (found.plan) found.outcome = PlanLookup::kHit;
  return std::move(found);
}

}  // namespace stowage
