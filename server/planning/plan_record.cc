#include "server/planning/plan_record.h"

#include <algorithm>
#include <utility>

#include "server/planning/plan_under.h"

namespace stowage {
namespace {

PlanEntry NewEntry(const PlanningProblem& problem) {
  PlanEntry entry;
  entry.canonical = *problem.canonical;
  entry.reference = problem.costs;
  entry.store_all = problem.store_all;
  entry.tenant = problem.options.tenant;
  entry.name = problem.name;
  return entry;
}

// `old` with the costs of `problem` as reference, and the plans that hold under them.
PlanEntry Rebased(const PlanEntry& old, const PlanningProblem& problem) {
  PlanEntry entry = NewEntry(problem);
  entry.samples = old.samples;
  entry.reports = old.reports;
  for (StoredPlan stored : old.plans) {
    std::optional<Plan> judged = PlanUnder(*problem.costs, problem.store_all, *old.reference,
                                           *stored.plan, stored.plan->budget);
    if (!judged) continue;
    stored.plan = std::make_shared<const Plan>(*std::move(judged));
    entry.plans.push_back(std::move(stored));
  }
  if (SameMemory(*problem.costs, *old.reference)) entry.least_budget = old.least_budget;
  return entry;
}

// Whether the entry has a plan for the budget that is far better under its reference, and fits the
// caller, too: what times or a link of its own led to must not take its place.
bool HasFarBetter(const PlanEntry& entry, const PlanningProblem& problem, const Plan& stored) {
  constexpr double kFar = 1.05;
  if (!SameMemory(*problem.costs, *entry.reference)) return false;
  for (const auto& [plan, state, pinned] : entry.plans) {
    if (plan->budget != stored.budget || plan->status != PlanStatus::kFound) continue;
    if (stored.status != PlanStatus::kFound) return true;
    return static_cast<double>(stored.prediction.makespan.value()) >
           kFar * static_cast<double>(plan->prediction.makespan.value());
  }
  return false;
}

void RemovePlanFor(Bytes budget, PlanEntry* entry) {
  entry->plans.erase(
      std::remove_if(entry->plans.begin(), entry->plans.end(),
                     [budget](const StoredPlan& kept) { return kept.plan->budget == budget; }),
      entry->plans.end());
}

int64_t RevisionAt(const PlanEntry& entry, Bytes budget) {
  for (const StoredPlan& kept : entry.plans) {
    if (kept.plan->budget == budget) return kept.plan->revision;
  }
  return 0;
}

// The entry that `stored` goes to, with `stored` as judged under its reference; see Record.
std::optional<PlanEntry> EntryFor(const PlanEntry* old, const PlanningProblem& problem,
                                  Plan* stored) {
  if (IdealTime(problem.costs->problem) == Nanos(0)) return std::nullopt;
  if (!old) return NewEntry(problem);
  std::optional<Plan> judged =
      PlanUnder(*old->reference, old->store_all, *problem.costs, *stored, stored->budget);
  if (judged) {
    *stored = *std::move(judged);
    return *old;
  }
  const bool rebases =
      stored->status == PlanStatus::kFound && HoldsForMore(*problem.costs, *old->reference);
  return rebases ? std::make_optional(Rebased(*old, problem)) : std::nullopt;
}

}  // namespace

std::optional<PlanEntry> Record(const PlanEntry* old, SolvedPlan* solved) {
  const PlanningProblem& problem = *solved->problem;
  const Bytes budget = solved->plan.budget;
  solved->plan.revision = (old ? RevisionAt(*old, budget) : 0) + 1;

  Plan stored = solved->plan;
  stored.stage_vertices.clear();
  std::optional<PlanEntry> entry = EntryFor(old, problem, &stored);
  if (!entry || HasFarBetter(*entry, problem, stored)) return std::nullopt;
  RemovePlanFor(budget, &*entry);
  entry->plans.push_back({std::make_shared<const Plan>(std::move(stored))});
  if (entry->plans.size() > kMaxPlansPerEntry) entry->plans.erase(entry->plans.begin());
  if (solved->least && SameMemory(*entry->reference, *problem.costs)) {
    entry->least_budget = budget;
  }
  return entry;
}

}  // namespace stowage
