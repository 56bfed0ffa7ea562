#include "server/service/refresher.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "server/entries/entry_learning.h"
#include "server/entries/reference_costs.h"
#include "server/entries/revisions.h"
#include "server/service/entry_update.h"
#include "server/service/solve_outcome.h"

namespace stowage {
namespace {

// What has become of the plan in the changed entry; null where it has brought nothing.
const char* StandingOf(const Plan& plan, const PlanEntry& before, const PlanEntry& entry) {
  for (const StoredPlan& stored : entry.plans) {
    if (stored.plan->budget != plan.budget || stored.plan->revision != plan.revision) continue;
    const auto same = [&stored](const StoredPlan& old) { return old.plan == stored.plan; };
    if (std::any_of(before.plans.begin(), before.plans.end(), same)) return nullptr;
    if (ServingRevision(entry, plan.budget) == &stored) return "serving";
    return stored.state == RevisionState::kServing ? "beside" : "shadow";
  }
  return nullptr;
}

}  // namespace

Refresher::Refresher(const RefresherOptions& options, PlanStore* store, const PlanSolver* solver,
                     ServerMetrics* metrics, Submit submit)
    : options_(options),
      store_(store),
      solver_(solver),
      metrics_(metrics),
      submit_(std::move(submit)),
      leased_({}, options.lease != nullptr ? options.lease : &alone_, metrics),
      resolver_(options.resolver, [this](const ResolveWish& wish) {
        const auto solve = [this, wish](const StopToken& stop) { SolveAnew(wish, stop); };
        return StillWanted(wish) != nullptr && submit_(next_id_++, solve);
      }) {}

void Refresher::NoteAnswer(const PlanningProblem& problem, uint64_t job, const PlanEntry& entry,
                           Bytes budget, const Found& found) {
  if (JudgeSample(entry, *problem.costs, job, problem.identity) == SampleVerdict::kNew) {
    submit_(next_id_++, [this, problem, job](const StopToken&) { LearnFrom(problem, job); });
  }
  if (found.freshness == Freshness::kAging) {
    resolver_.Want({problem.key, budget, ResolveReason::kStale,
                    std::make_shared<const PlanningProblem>(problem)});
  }
  if (found.plan) NotePlan(problem.key, entry, *found.plan);
}

void Refresher::NotePlan(const PlanKey& key, const PlanEntry& entry, const Plan& plan) {
  if (plan.provenance.solver_version == options_.solver_version || ToldLately(key, entry)) return;
  for (const ResolveWish& wish : UpgradesOf(key, entry, options_.solver_version))
    resolver_.Want(wish);
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
    resolver_.Want({problem.key, budget, ResolveReason::kDrift, nullptr});
  }
}

absl::StatusOr<Plan> Refresher::Solve(const PlanningProblem& problem, Bytes budget,
                                      const StopToken& stop) const {
  PlanOptions options;
  options.solver = problem.options.solver;
  options.solve.slots = problem.options.slots;
  options.solve.table_limit = options_.table_limit;
  options.solve.stop = &stop;
  return CatchingBadAlloc([&] { return solver_->Solve(*problem.costs, budget, options); });
}

std::shared_ptr<const PlanEntry> Refresher::StillWanted(const ResolveWish& wish) const {
  std::shared_ptr<const PlanEntry> entry = store_->Get(wish.key, Access::kUpdate);
  if (!entry || entry->frozen) return nullptr;
  const bool upgrade = wish.reason == ResolveReason::kUpgrade;
  if (upgrade && !NeedsUpgrade(*entry, wish.budget, options_.solver_version)) return nullptr;
  // The entry may have learned costs like these meanwhile, or somebody a plan for them.
  if (wish.asked && BestAccepted(*wish.asked, *entry, wish.budget).freshness == Freshness::kFresh) {
    return nullptr;
  }
  return entry;
}

Span Refresher::SpanOf(const ResolveWish& wish) const {
  if (options_.tracer == nullptr) return Span();
  const TraceId id = NewTraceId();
  const TraceContext begins{id, SpanId{}, IsSampled(id, options_.trace_share)};
  Span span(options_.tracer, begins, "background.solve", SpanKind::kInternal);
  if (!span.recording()) return span;
  span.Add("stowage.key", wish.key.digest.ToHex());
  span.Add("stowage.budget_bytes", wish.budget.value());
  span.Add("stowage.reason", ToString(wish.reason));
  return span;
}

void Refresher::SolveAnew(const ResolveWish& wish, const StopToken& stop) {
  std::shared_ptr<const PlanEntry> entry = StillWanted(wish);
  if (!entry) return;
  const auto look = [&] {
    entry = StillWanted(wish);
    return !entry;
  };
  const Turn turn = leased_.TryNow({wish.key, wish.budget}, look);
  if (turn.turn != SolveTurn::kSolve) return;
  const std::shared_ptr<const PlanningProblem> problem =
      wish.asked ? wish.asked : ProblemOfEntry(wish.key, *entry);
  if (!problem) return;
  const int64_t begun = FirstGeneration(store_->DeletedUpTo(wish.key));
  Span span = SpanOf(wish);
  absl::StatusOr<Plan> plan = Solve(*problem, wish.budget, stop);
  span.Add("stowage.outcome", ToString(OutcomeOf(plan)));
  span.End();
  metrics_->Resolved(wish.reason, OutcomeOf(plan));
  if (!plan.ok() || !plan->search_complete) return;
  SolvedPlan solved{problem, *std::move(plan), false, problem->job};
  Keep(wish, begun, &solved);
}

void Refresher::Keep(const ResolveWish& wish, int64_t begun, SolvedPlan* solved) {
  const char* standing = nullptr;
  // Another server's change of the entry meanwhile goes before; an entry that has gone stays away.
  const absl::Status updated = UpdateEntry(
      wish.key, Durability::kBestEffort,
      [&](const PlanEntry& now) -> absl::StatusOr<std::optional<PlanEntry>> {
        standing = nullptr;
        if (now.canonical != *solved->problem->canonical) return std::nullopt;
        if (begun <= store_->DeletedUpTo(wish.key)) return std::nullopt;
        std::optional<PlanEntry> changed = Record(&now, solved);
        if (changed) standing = StandingOf(solved->plan, now, *changed);
        return changed;
      },
      store_);
  if (updated.ok() && standing != nullptr) Audit(wish, *solved, standing);
}

void Refresher::Audit(const ResolveWish& wish, const SolvedPlan& solved,
                      const char* standing) const {
  if (options_.audit == nullptr) return;
  const Plan& plan = solved.plan;
  AuditEvent event;
  event.action = "resolve";
  event.change = true;
  event.tenant = solved.problem->options.tenant;
  event.key = wish.key;
  event.budget = wish.budget;
  event.revision = plan.revision;
  if (plan.status == PlanStatus::kFound) event.plan_digest = ScheduleDigest(plan.schedule);
  event.source = ToString(wish.reason);
  event.outcome = standing;
  options_.audit->Add(event);
}

}  // namespace stowage
