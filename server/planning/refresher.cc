#include "server/planning/refresher.h"

#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "server/planning/entry_learning.h"
#include "server/planning/entry_update.h"
#include "server/planning/plan_record.h"
#include "server/planning/reference_costs.h"
#include "server/planning/revisions.h"
#include "server/planning/solve_outcome.h"

namespace stowage {

Refresher::Refresher(const ResolverOptions& options, Bytes table_limit, PlanStore* store,
                     const PlanSolver* solver, ServerMetrics* metrics, Submit submit)
    : table_limit_(table_limit),
      store_(store),
      solver_(solver),
      metrics_(metrics),
      submit_(std::move(submit)),
      resolver_(options, [this](const ResolveWish& wish) {
        submit_(next_id_++, [this, wish](const StopToken& stop) { SolveAnew(wish, stop); });
      }) {}

void Refresher::Answered(const PlanningProblem& problem, uint64_t job, const PlanEntry& entry,
                         Bytes budget, const Found& found) {
  if (JudgeSample(entry, *problem.costs, job, problem.identity) == SampleVerdict::kNew) {
    submit_(next_id_++, [this, problem, job](const StopToken&) { LearnFrom(problem, job); });
  }
  if (found.freshness == Freshness::kAging) {
    resolver_.Want({problem.key, budget, ResolveReason::kStale});
  }
  if (found.plan) Served(problem.key, entry, *found.plan);
}

void Refresher::Served(const PlanKey& key, const PlanEntry& entry, const Plan& plan) {
  if (plan.provenance.solver_version == kSolverVersion || ToldLately(key, entry)) return;
  for (const ResolveWish& wish : UpgradesOf(key, entry)) resolver_.Want(wish);
}

bool Refresher::ToldLately(const PlanKey& key, const PlanEntry& entry) {
  using Period = std::chrono::duration<int64_t, std::ratio<10>>;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const int64_t period = std::chrono::duration_cast<Period>(now).count();
  const uint64_t mark = absl::HashOf(key, entry.generation, period) | 1;
  return told_[absl::HashOf(key) % told_.size()].exchange(mark) == mark;
}

void Refresher::LearnFrom(const PlanningProblem& problem, uint64_t job) {
  std::vector<Bytes> moved;  // budgets whose plans were judged anew
  const auto learn = [&](const PlanEntry& entry) -> absl::StatusOr<std::optional<PlanEntry>> {
    if (entry.canonical != *problem.canonical) return std::nullopt;
    std::optional<PlanEntry> learned = Learn(entry, problem, job);
    moved.clear();
    if (!learned || learned->reference == entry.reference) return learned;
    for (const StoredPlan& stored : entry.plans) moved.push_back(stored.plan->budget);
    return learned;
  };
  // What is not learned now is learned from the next caller.
  if (!UpdateEntry(problem.key, Durability::kBestEffort, learn, store_).ok()) return;
  for (const Bytes budget : moved) {
    resolver_.Want({problem.key, budget, ResolveReason::kDrift});
  }
}

absl::StatusOr<Plan> Refresher::Solve(const PlanningProblem& problem, Bytes budget,
                                      const StopToken& stop) const {
  PlanOptions options;
  options.solver = problem.options.solver;
  options.solve.slots = problem.options.slots;
  options.solve.table_limit = table_limit_;
  options.solve.stop = &stop;
  options.solve.transfers = problem.costs->transfers;
  return CatchingBadAlloc([&] { return solver_->Solve(problem.costs->problem, budget, options); });
}

void Refresher::SolveAnew(const ResolveWish& wish, const StopToken& stop) {
  const std::shared_ptr<const PlanEntry> entry = store_->Get(wish.key, Access::kPeek);
  if (!entry || entry->frozen) return;
  const std::shared_ptr<PlanningProblem> problem = ProblemOfEntry(wish.key, *entry);
  if (!problem) return;
  absl::StatusOr<Plan> plan = Solve(*problem, wish.budget, stop);
  metrics_->Resolved(wish.reason, OutcomeOf(plan));
  if (!plan.ok() || !plan->search_complete) return;
  SolvedPlan solved{problem, *std::move(plan), false};
  // Another server's change of the entry meanwhile goes before; an entry that has gone stays away.
  UpdateEntry(
      wish.key, Durability::kBestEffort,
      [&](const PlanEntry& now) -> absl::StatusOr<std::optional<PlanEntry>> {
        if (now.canonical != entry->canonical) return std::nullopt;
        return Record(&now, &solved);
      },
      store_)
      .IgnoreError();
}

}  // namespace stowage
