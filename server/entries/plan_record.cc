#include "server/entries/plan_record.h"

#include <algorithm>
#include <utility>

#include "server/entries/cost_compare.h"
#include "server/entries/entry_learning.h"
#include "server/entries/plan_under.h"
#include "server/entries/revisions.h"
#include "server/entries/solver_version.h"

namespace stowage {

PlanEntry NewEntry(const PlanningProblem& problem, uint64_t job) {
  PlanEntry entry;
  entry.canonical = *problem.canonical;
  entry.reference = problem.costs;
  entry.store_all = problem.store_all;
  entry.samples = {{job, problem.costs, problem.identity}};
  entry.tenant = problem.options.tenant;
  entry.name = problem.name;
  return entry;
}

namespace {

bool IsOfNewerVersion(const Plan& a, const Plan& b) {
  return IsNewerVersion(a.provenance.solver_version, b.provenance.solver_version);
}

// What is new about a plan of equal schedule. An older version's claims change no newer one's: while
// servers of both are there, each would take the other's back.
bool ClaimsOther(const Plan& next, const Plan& now) {
  if (IsOfNewerVersion(now, next)) return false;
  return IsOfNewerVersion(next, now) || next.bounds.lower_bound > now.bounds.lower_bound ||
         (next.bounds.proven_optimal && !now.bounds.proven_optimal) ||
         next.bounds.least_budget != now.bounds.least_budget;
}

// The revision for the budget that says the same; null when there is none.
StoredPlan* TwinOf(const Plan& plan, PlanEntry* entry) {
  for (StoredPlan& stored : entry->plans) {
    const Plan& kept = *stored.plan;
    if (kept.budget == plan.budget && kept.status == plan.status &&
        kept.schedule == plan.schedule) {
      return &stored;
    }
  }
  return nullptr;
}

std::optional<Plan> UnderAsked(const PlanningProblem& asked, const PlanEntry& entry,
                               const Plan& plan) {
  return PlanUnder(*asked.costs, asked.store_all, *entry.reference, plan, plan.budget);
}

// Whether under the asker's costs the plan is well ahead of all that the entry hands out for its budget.
bool LeadsForAsker(const SolvedPlan& solved, const PlanEntry& entry) {
  constexpr double kAhead = 1.02;
  if (solved.plan.status != PlanStatus::kFound) return false;
  const double ours = static_cast<double>(solved.plan.prediction.makespan.value());
  return std::none_of(entry.plans.begin(), entry.plans.end(), [&](const StoredPlan& stored) {
    if (stored.plan->budget != solved.plan.budget) return false;
    if (stored.state != RevisionState::kServing) return false;
    const std::optional<Plan> theirs = UnderAsked(*solved.problem, entry, *stored.plan);
    return theirs && theirs->status == PlanStatus::kFound &&
           static_cast<double>(theirs->prediction.makespan.value()) <= kAhead * ours;
  });
}

// Where a revision that the entry does not have goes; nothing: nowhere.
std::optional<RevisionState> PlaceOf(const Plan& plan, const SolvedPlan& solved,
                                     const PlanEntry& entry) {
  const StoredPlan* serving = ServingRevision(entry, plan.budget);
  if (serving == nullptr) return RevisionState::kServing;
  if (serving->pinned) return RevisionState::kShadow;
  if (IsBetter(plan, *serving->plan)) return RevisionState::kServing;
  const bool serves_asker = UnderAsked(*solved.problem, entry, *serving->plan).has_value();
  if (!serves_asker || LeadsForAsker(solved, entry)) return RevisionState::kServing;
  if (!IsOfNewerVersion(plan, *serving->plan)) return std::nullopt;
  return RevisionState::kShadow;
}

// Gives the entry the plan, as judged under its reference; false when it stays as it is.
bool Keep(Plan plan, const SolvedPlan& solved, PlanEntry* entry) {
  if (StoredPlan* twin = TwinOf(plan, entry)) {
    if (twin->state == RevisionState::kRetired || !ClaimsOther(plan, *twin->plan)) return false;
    twin->plan = std::make_shared<const Plan>(std::move(plan));
    return true;
  }
  const std::optional<RevisionState> place = PlaceOf(plan, solved, *entry);
  if (!place) return false;
  return AddRevision({std::make_shared<const Plan>(std::move(plan)), *place}, entry);
}

// As the entry's plans are: under the reference, without the caller's numbering.
std::optional<Plan> AsStored(const PlanEntry& entry, const SolvedPlan& solved) {
  const PlanningProblem& problem = *solved.problem;
  std::optional<Plan> plan =
      PlanUnder(*entry.reference, entry.store_all, *problem.costs, solved.plan, solved.plan.budget);
  if (plan) plan->stage_vertices.clear();
  return plan;
}

bool LearnLeast(const SolvedPlan& solved, PlanEntry* entry) {
  const bool news = solved.least && entry->least_budget != solved.plan.budget &&
                    SameMemory(*entry->reference, *solved.problem->costs);
  if (news) entry->least_budget = solved.plan.budget;
  return news;
}

// The revision that the plan has in the entry, or would have.
int64_t RevisionOf(const Plan& plan, PlanEntry* entry) {
  const StoredPlan* twin = TwinOf(plan, entry);
  return twin != nullptr ? twin->plan->revision : NextRevision(*entry, plan.budget);
}

}  // namespace

std::optional<PlanEntry> Record(const PlanEntry* old, SolvedPlan* solved) {
  const PlanningProblem& problem = *solved->problem;
  PlanEntry entry = old ? *old : NewEntry(problem, solved->job);
  solved->plan.revision = RevisionOf(solved->plan, &entry);
  if (IdealTime(problem.costs->problem()) == Nanos(0) || entry.frozen) return std::nullopt;

  bool changed = old == nullptr;
  if (std::optional<PlanEntry> learned = Learn(entry, problem, solved->job)) {
    entry = *std::move(learned);
    changed = true;
  }
  if (std::optional<Plan> plan = AsStored(entry, *solved)) {
    changed |= Keep(*std::move(plan), *solved, &entry);
  }
  changed |= LearnLeast(*solved, &entry);
  return changed ? std::make_optional(std::move(entry)) : std::nullopt;
}

}  // namespace stowage
