#include "server/service/plan_cache.h"

#include <utility>

#include "server/entries/frontier_under.h"
#include "server/entries/plan_lookup.h"
#include "server/entries/plan_under.h"
#include "server/entries/planning_error.h"
#include "server/entries/reports.h"
#include "server/service/entry_update.h"

namespace stowage {
namespace {

// A schedule of the entry for the budget, whose shares and "least" mean those under its reference.
std::optional<CachedPlan> ServingIn(const PlanEntry& entry, const PlanKey& key,
                                    const Budget& budget) {
  std::optional<Bytes> bytes = WithoutSolver(budget, entry.store_all.peak);
  if (!bytes) bytes = entry.least_budget;
  if (!bytes) return std::nullopt;
  std::shared_ptr<const Plan> plan = FirstPlanServing(entry, *bytes);
  // That there is no schedule holds under the reference costs; who asks has named none.
  if (!plan || plan->status != PlanStatus::kFound) return std::nullopt;
  return CachedPlan{std::move(plan), *bytes, key, ProfileWanted(entry)};
}

}  // namespace

std::optional<std::shared_ptr<const PlanEntry>> PlanCache::Get(const PlanKey& key, Access access,
                                                               MayWait wait) const {
  return wait == MayWait::kYes ? store_->Get(key, access) : store_->GetNow(key, access);
}

std::optional<absl::StatusOr<CachedPlan>> PlanCache::FirstServing(const std::vector<PlanKey>& keys,
                                                                  const Budget& budget,
                                                                  const TenantScope& scope,
                                                                  MayWait wait,
                                                                  size_t* next) const {
  if (absl::Status valid = ValidateBudget(budget); !valid.ok()) return valid;
  PlanLookup outcome = PlanLookup::kNoEntry;
  for (; *next < keys.size(); ++*next) {
    const auto entry = Get(keys[*next], Access::kLookup, wait);
    if (!entry) return std::nullopt;
    if (!*entry || !Sees(scope, **entry)) continue;
    outcome = PlanLookup::kNoBudget;
    std::optional<CachedPlan> serving = ServingIn(**entry, keys[*next], budget);
    if (!serving) continue;
    metrics_->PlanLookedUp(*next == 0 ? PlanLookup::kHit : PlanLookup::kDominance);
    metrics_->ProfilingSaved();
    key_listener_(serving->key, **entry, *serving->plan);
    return *std::move(serving);
  }
  metrics_->PlanLookedUp(outcome);
  return PlanNotCachedError();
}

std::optional<std::optional<Plan>> PlanCache::Find(const PlanningProblem& problem, Bytes budget,
                                                   Access access, MayWait wait) const {
  const auto entry = Get(problem.key, access, wait);
  if (!entry) return std::nullopt;
  Found found;
  if (*entry) found = BestAccepted(problem, **entry, budget);
  if (access == Access::kLookup) {
    metrics_->PlanLookedUp(found.outcome);
    for (int i = 0; i < found.refused; ++i) metrics_->PlanRefused();
  }
  if (found.plan) listener_(problem, **entry, budget, found);
  return std::move(found.plan);
}

std::optional<std::optional<Bytes>> PlanCache::FindLeast(const PlanningProblem& problem,
                                                         MayWait wait) const {
  const auto found = Get(problem.key, Access::kPeek, wait);
  if (!found) return std::nullopt;
  const PlanEntry* entry = found->get();
  const bool known = entry != nullptr && entry->canonical == *problem.canonical &&
                     SameMemory(*entry->reference, *problem.costs);
  return known ? entry->least_budget : std::nullopt;
}

std::optional<std::shared_ptr<const Frontier>> PlanCache::FindFrontier(
    const PlanningProblem& problem, Access access, MayWait wait) const {
  const auto found = Get(problem.key, access, wait);
  if (!found) return std::nullopt;
  const PlanEntry* entry = found->get();
  if (entry == nullptr || !entry->frontier || entry->canonical != *problem.canonical) {
    return nullptr;
  }
  return FrontierUnder(*problem.costs, *entry->reference, entry->frontier);
}

int64_t PlanCache::Begin(const PlanKey& key) const {
  return FirstGeneration(store_->DeletedUpTo(key));
}

bool PlanCache::DeletedSince(const PlanKey& key, int64_t begun) const {
  return begun <= store_->DeletedUpTo(key);
}

void PlanCache::KeepFrontier(const PlanningProblem& problem,
                             const std::shared_ptr<const Frontier>& frontier, int64_t begun) {
  if (IdealTime(problem.costs->problem()) == Nanos(0)) return;
  Change(problem, begun, [&](const PlanEntry* old) -> std::optional<PlanEntry> {
    PlanEntry entry = old != nullptr ? *old : NewEntry(problem, problem.job);
    if (entry.frozen) return std::nullopt;
    entry.frontier = FrontierUnder(*entry.reference, *problem.costs, frontier);
    if (!entry.frontier) return std::nullopt;
    return entry;
  });
}

void PlanCache::Keep(SolvedPlan* solved, int64_t begun) {
  Change(*solved->problem, begun, [solved](const PlanEntry* old) { return Record(old, solved); });
}

void PlanCache::Change(const PlanningProblem& problem, int64_t begun,
                       const std::function<std::optional<PlanEntry>(const PlanEntry*)>& change) {
  const size_t stripe = problem.key.digest.bytes()[0] % record_mutexes_.size();
  std::lock_guard<std::mutex> lock(record_mutexes_[stripe]);
  // An entry that the store cannot hold costs later hits, not this answer.
  UpdateOrBegin(
      problem.key, begun, Durability::kBestEffort,
      [&](const PlanAnswer& found) -> absl::StatusOr<std::optional<PlanEntry>> {
        // Who waits for the plan gets it; the deletion stands.
        if (DeletedSince(problem.key, begun)) return std::nullopt;
        const PlanEntry* const old = found.entry.get();
        const bool same = old != nullptr && old->canonical == *problem.canonical;
        return change(same ? old : nullptr);
      },
      store_)
      .IgnoreError();
}

}  // namespace stowage
