#include "server/planning/plan_record.h"

#include <algorithm>
#include <utility>

#include "server/planning/plan_under.h"

namespace stowage {
namespace {

PlanEntry NewEntry(const PlanningProblem& problem) {
  PlanEntry entry;
  entry.canonical = problem.canonical;
  entry.options = problem.options;
  entry.reference = problem.chain;
  return entry;
}

// `old` with the costs of `problem` as reference, and the plans that hold under them.
PlanEntry Rebased(const PlanEntry& old, const PlanningProblem& problem) {
  PlanEntry entry = NewEntry(problem);
  for (const auto& plan : old.plans) {
    std::optional<Plan> judged = PlanUnder(*problem.chain, *old.reference, *plan, plan->budget);
    if (judged) entry.plans.push_back(std::make_shared<const Plan>(*std::move(judged)));
  }
  if (SameOverheads(*problem.chain, *old.reference)) entry.least_budget = old.least_budget;
  return entry;
}

void RemovePlanFor(Bytes budget, PlanEntry* entry) {
  entry->plans.erase(std::remove_if(entry->plans.begin(), entry->plans.end(),
                                    [budget](const std::shared_ptr<const Plan>& plan) {
                                      return plan->budget == budget;
                                    }),
                     entry->plans.end());
}

int64_t RevisionAt(const PlanEntry& entry, Bytes budget) {
  for (const auto& plan : entry.plans) {
    if (plan->budget == budget) return plan->revision;
  }
  return 0;
}

}  // namespace

PlanEntry Record(const PlanEntry* old, SolvedPlan* solved) {
  const PlanningProblem& problem = *solved->problem;
  const Bytes budget = solved->plan.budget;
  solved->plan.revision = (old ? RevisionAt(*old, budget) : 0) + 1;

  Plan stored = solved->plan;
  stored.stage_vertices.clear();
  PlanEntry entry;
  if (!old) {
    entry = NewEntry(problem);
  } else if (std::optional<Plan> judged =
                 PlanUnder(*old->reference, *problem.chain, stored, budget)) {
    entry = *old;
    stored = *std::move(judged);
  } else {
    entry = Rebased(*old, problem);
  }
  RemovePlanFor(budget, &entry);
  entry.plans.push_back(std::make_shared<const Plan>(std::move(stored)));
  if (entry.plans.size() > kMaxPlansPerEntry) entry.plans.erase(entry.plans.begin());
  if (solved->least && SameOverheads(*entry.reference, *problem.chain)) {
    entry.least_budget = budget;
  }
  return entry;
}

}  // namespace stowage
