#include "server/entries/explain.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/entries/plan_lookup.h"
#include "server/entries/planning_error.h"
#include "server/entries/planning_problem.h"
#include "server/entries/reports.h"
#include "server/entries/revisions.h"

namespace stowage {
namespace {

std::string Percent(double ratio) { return absl::StrFormat("%.1f%%", 100 * ratio); }

double Over(int64_t a, int64_t b) {
  return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b) - 1;
}

std::string Cost(const Plan& plan) {
  if (plan.status != PlanStatus::kFound) return ToString(plan.status);
  return absl::StrCat(ToString(plan.prediction.makespan), " per step, peak ",
                      ToString(plan.prediction.peak));
}

void AppendPlan(const PlanEntry& entry, const Plan& plan, std::string* text) {
  const Simulation& predicted = plan.prediction;
  absl::StrAppend(text, "Plan: ", Cost(plan), ", solved for ", ToString(plan.budget), " by ",
                  plan.provenance.solver, " ", plan.provenance.solver_version, ", revision ",
                  plan.revision, ".\n");
  if (plan.status == PlanStatus::kFound) {
    absl::StrAppend(
        text, "Plain training, which stores every activation: ", ToString(entry.store_all.makespan),
        " per step, peak ", ToString(entry.store_all.peak), "; by the plan it takes ",
        Percent(Over(predicted.makespan.value(), entry.store_all.makespan.value())),
        " longer: ", predicted.recomputed_forwards, " forwards run again (",
        ToString(predicted.recompute_time), "), ", ToString(predicted.offloaded),
        " go to the host and ", ToString(predicted.idle_time), " are spent waiting.\n");
    absl::StrAppend(text, "Bound: no schedule within ", ToString(plan.budget), " is faster than ",
                    ToString(plan.bounds.lower_bound), "; gap ", Percent(plan.gap()));
    if (plan.bounds.proven_optimal) {
      absl::StrAppend(text, "; proven the fastest of ", plan.bounds.schedule_class);
    }
    absl::StrAppend(text, ".\n");
  }
  if (!plan.explanation.empty()) absl::StrAppend(text, "Solver: ", plan.explanation, "\n");
}

// The plans that serve the next budgets below and above.
void AppendNeighbours(const PlanEntry& entry, const Plan& plan, std::string* text) {
  const Plan *below = nullptr, *above = nullptr;
  for (const StoredPlan& stored : entry.plans) {
    const Plan& other = *stored.plan;
    if (ServingRevision(entry, other.budget) != &stored) continue;
    const bool lower = other.budget<plan.budget, higher = other.budget> plan.budget;
    if (lower && (below == nullptr || other.budget > below->budget)) below = &other;
    if (higher && (above == nullptr || other.budget < above->budget)) above = &other;
  }
  for (const Plan* other : {below, above}) {
    if (other == nullptr) continue;
    absl::StrAppend(text, "For ", ToString(other->budget), ": ", Cost(*other), ".\n");
  }
}

std::string StandingOf(const PlanEntry& entry, const StoredPlan& stored) {
  if (stored.pinned) return "pinned";
  if (stored.state == RevisionState::kShadow) return "in shadow";
  if (stored.state == RevisionState::kRetired) return "rolled back";
  return ServingRevision(entry, stored.plan->budget) == &stored ? "serves" : "former";
}

void AppendRevisions(const PlanEntry& entry, const Plan& plan, std::string* text) {
  for (const StoredPlan& stored : entry.plans) {
    if (stored.plan->budget != plan.budget) continue;
    absl::StrAppend(text, "Revision ", stored.plan->revision, " (", StandingOf(entry, stored),
                    "): ", Cost(*stored.plan));
    const Measurements measured = MeasurementsOf(entry, *stored.plan);
    if (measured.jobs > 0) {
      absl::StrAppend(text, "; ", measured.jobs, " jobs measured ", Percent(measured.time_ratio),
                      " of that time and ", Percent(measured.peak_ratio), " of that peak, ",
                      measured.over_budget, " were over the budget",
                      measured.drifted ? ": drifted" : "");
    }
    absl::StrAppend(text, ".\n");
  }
}

}  // namespace

absl::StatusOr<std::string> ExplainEntry(const PlanEntry& entry, const Budget& budget) {
  std::optional<Bytes> bytes = WithoutSolver(budget, entry.store_all.peak);
  if (!bytes) bytes = entry.least_budget;
  if (!bytes) return PlanNotCachedError();
  const auto plans = PlansServing(entry, *bytes);
  if (plans.empty()) return PlanNotCachedError();
  const Plan& plan = *plans.front();
  std::string text = absl::StrCat(entry.name.empty() ? "Unnamed network" : entry.name, ", budget ",
                                  ToString(*bytes), entry.frozen ? ", frozen" : "", ".\n");
  AppendPlan(entry, plan, &text);
  AppendNeighbours(entry, plan, &text);
  AppendRevisions(entry, plan, &text);
  absl::StrAppend(&text, entry.samples.empty()
                             ? std::string("Costs: modelled, measured by no job yet.\n")
                             : absl::StrCat("Costs: of ", entry.samples.size(), " jobs.\n"));
  return text;
}

}  // namespace stowage
