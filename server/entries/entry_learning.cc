#include "server/entries/entry_learning.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "server/entries/cost_compare.h"
#include "server/entries/frontier_plans.h"
#include "server/entries/plan_under.h"
#include "server/entries/reference_costs.h"
#include "solvers/schedule/simulation.h"

namespace stowage {
namespace {

double Ratio(int64_t before, int64_t after) {
  return after == 0 ? 1.0 : static_cast<double>(before) / static_cast<double>(after);
}

// Reports are ratios to a prediction, which has changed.
void Rescale(const Plan& before, const Plan& after, std::vector<ReportSample>* reports) {
  const Simulation &then = before.prediction, &now = after.prediction;
  for (ReportSample& report : *reports) {
    if (report.budget != before.budget || report.revision != before.revision) continue;
    report.time_ratio *= Ratio(then.makespan.value(), now.makespan.value());
    report.peak_ratio *= Ratio(then.peak.value(), now.peak.value());
  }
}

// What was measured under plans that are gone says nothing any more.
void DropReportsWithoutPlan(PlanEntry* entry) {
  const auto has_no_plan = [entry](const ReportSample& report) {
    return std::none_of(entry->plans.begin(), entry->plans.end(), [&](const StoredPlan& stored) {
      return stored.plan->budget == report.budget && stored.plan->revision == report.revision;
    });
  };
  entry->reports.erase(std::remove_if(entry->reports.begin(), entry->reports.end(), has_no_plan),
                       entry->reports.end());
}

void MoveReference(Instance next, const Simulation& store_all, PlanEntry* entry) {
  std::vector<StoredPlan> holding;
  for (StoredPlan stored : entry->plans) {
    std::optional<Plan> judged =
        PlanUnder(next, store_all, *entry->reference, *stored.plan, stored.plan->budget);
    if (!judged) continue;
    Rescale(*stored.plan, *judged, &entry->reports);
    stored.plan = std::make_shared<const Plan>(*std::move(judged));
    holding.push_back(std::move(stored));
  }
  entry->plans = std::move(holding);
  DropReportsWithoutPlan(entry);
  if (!SameMemory(next, *entry->reference)) entry->least_budget.reset();
  entry->frontier = nullptr;
  entry->store_all = store_all;
  entry->reference = std::make_shared<const Instance>(std::move(next));
}

// Begins with no number: older than all that do (solver_version.h).
constexpr char kModelledVersion[] = "modelled ";

bool IsTouched(const StoredPlan& stored) {
  return stored.pinned || stored.state != RevisionState::kServing;
}

// From modelled costs to the first that were measured. Workspaces, which no model knows, make every peak
// larger: the schedules get budgets anew, unless people have said what is to become of them.
void MoveFromModel(Instance next, const Simulation& store_all, PlanEntry* entry) {
  std::vector<StoredPlan>& plans = entry->plans;
  const bool touched = std::any_of(plans.begin(), plans.end(), IsTouched);
  const std::string version =
      plans.empty() ? "" : kModelledVersion + plans.back().plan->provenance.solver_version;
  absl::StatusOr<std::vector<StoredPlan>> anew =
      PlansOfFrontier(next, FrontierOfPlans(next, plans), version,
                      plans.empty() ? "" : plans.back().plan->explanation);
  MoveReference(std::move(next), store_all, entry);
  if (touched || !anew.ok()) return;
  entry->plans = *std::move(anew);
  DropReportsWithoutPlan(entry);
}

}  // namespace

std::optional<PlanEntry> Learn(const PlanEntry& entry, const PlanningProblem& problem,
                               uint64_t job) {
  const uint64_t identity = problem.identity;
  if (JudgeSample(entry, *problem.costs, job, identity) != SampleVerdict::kNew) {
    return std::nullopt;
  }
  const bool modelled = entry.samples.empty();
  PlanEntry learned = entry;
  std::vector<CostSample>& samples = learned.samples;
  samples.erase(std::remove_if(samples.begin(), samples.end(),
                               [job](const CostSample& sample) { return sample.job == job; }),
                samples.end());
  samples.push_back({job, problem.costs, identity});
  BoundVoices(
      VoicesOf(learned, identity), [](const CostSample& sample) { return sample.identity; },
      &samples);
  learned.profile_wanted = false;
  const size_t limit = SampleLimit(problem.costs->problem());
  while (samples.size() > limit) samples.erase(samples.begin());

  std::optional<Instance> next =
      modelled ? std::make_optional(*problem.costs) : ReferenceOf(samples);
  if (!next || !MovesFrom(*learned.reference, *next)) return learned;
  const absl::StatusOr<Simulation>& store_all = next->store_all();
  if (!store_all.ok()) return learned;
  (modelled ? MoveFromModel : MoveReference)(*std::move(next), *store_all, &learned);
  return learned;
}

}  // namespace stowage
