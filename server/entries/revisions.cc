#include "server/entries/revisions.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/entries/planning_error.h"
#include "solvers/model/digest.h"

namespace stowage {
namespace {

bool IsOf(const StoredPlan& stored, const RevisionId& id) {
  return stored.plan->budget == id.budget && stored.plan->revision == id.revision;
}

StoredPlan* Find(const RevisionId& id, PlanEntry* entry) {
  for (StoredPlan& stored : entry->plans) {
    if (IsOf(stored, id)) return &stored;
  }
  return nullptr;
}

absl::Status Refused(const RevisionId& id, const char* why) {
  return absl::FailedPreconditionError(
      absl::StrCat("revision ", id.revision, " for ", id.budget.value(), " bytes ", why));
}

bool GoesBefore(const Plan& a, const Plan& b) {
  if (IsBetter(a, b)) return true;
  return !IsBetter(b, a) && a.revision >= b.revision;
}

// The latest before the revision that was not rolled back; null when there is none.
StoredPlan* LatestBefore(const RevisionId& id, PlanEntry* entry) {
  StoredPlan* latest = nullptr;
  for (StoredPlan& stored : entry->plans) {
    const Plan& plan = *stored.plan;
    if (plan.budget != id.budget || plan.revision >= id.revision) continue;
    if (stored.state == RevisionState::kRetired) continue;
    if (latest == nullptr || plan.revision > latest->plan->revision) latest = &stored;
  }
  return latest;
}

size_t CountOf(const PlanEntry& entry, Bytes budget) {
  return static_cast<size_t>(
      std::count_if(entry.plans.begin(), entry.plans.end(),
                    [budget](const StoredPlan& stored) { return stored.plan->budget == budget; }));
}

// Drops the oldest for which `may_go` says so; false when there is none.
template <class MayGo>
bool DropOldest(PlanEntry* entry, const MayGo& may_go) {
  const auto oldest = std::find_if(entry->plans.begin(), entry->plans.end(), may_go);
  if (oldest == entry->plans.end()) return false;
  entry->plans.erase(oldest);
  return true;
}

// A revision that neither serves nor is pinned.
bool IsSpare(const PlanEntry& entry, const StoredPlan& stored) {
  return !stored.pinned && ServingRevision(entry, stored.plan->budget) != &stored;
}

bool HasRoom(const PlanEntry& entry) {
  return entry.plans.size() < kMaxPlansPerEntry ||
         std::any_of(entry.plans.begin(), entry.plans.end(),
                     [](const StoredPlan& stored) { return !stored.pinned; });
}

// Drops what is too many now that the last one is there; never that one.
void Trim(PlanEntry* entry) {
  const Bytes budget = entry->plans.back().plan->budget;
  const auto is_last = [entry](const StoredPlan& stored) {
    return &stored == &entry->plans.back();
  };
  if (CountOf(*entry, budget) > kMostRevisions) {
    DropOldest(entry, [&](const StoredPlan& stored) {
      return stored.plan->budget == budget && !is_last(stored) && IsSpare(*entry, stored);
    });
  }
  if (entry->plans.size() <= kMaxPlansPerEntry) return;
  const auto is_spare = [&](const StoredPlan& stored) {
    return !is_last(stored) && IsSpare(*entry, stored);
  };
  const auto is_not_pinned = [&](const StoredPlan& stored) {
    return !is_last(stored) && !stored.pinned;
  };
  if (!DropOldest(entry, is_spare)) DropOldest(entry, is_not_pinned);
}

}  // namespace

bool IsBetter(const Plan& next, const Plan& now) {
  const bool found = next.status == PlanStatus::kFound;
  if (found != (now.status == PlanStatus::kFound)) return found;
  if (found) return next.prediction.makespan < now.prediction.makespan;
  return next.status == PlanStatus::kProvenInfeasible && now.status == PlanStatus::kNotFound;
}

const StoredPlan* PinnedRevision(const PlanEntry& entry, Bytes budget) {
  for (const StoredPlan& stored : entry.plans) {
    if (stored.pinned && stored.plan->budget == budget) return &stored;
  }
  return nullptr;
}

const StoredPlan* ServingRevision(const PlanEntry& entry, Bytes budget) {
  const StoredPlan* serving = nullptr;
  for (const StoredPlan& stored : entry.plans) {
    if (stored.plan->budget != budget || stored.state != RevisionState::kServing) continue;
    if (stored.pinned) return &stored;
    if (serving == nullptr || GoesBefore(*stored.plan, *serving->plan)) serving = &stored;
  }
  return serving;
}

int64_t NextRevision(const PlanEntry& entry, Bytes budget) {
  int64_t latest = 0;
  for (const StoredPlan& stored : entry.plans) {
    if (stored.plan->budget == budget) latest = std::max(latest, stored.plan->revision);
  }
  return latest + 1;
}

bool AddRevision(StoredPlan stored, PlanEntry* entry) {
  if (!HasRoom(*entry)) return false;
  entry->plans.push_back(std::move(stored));
  Trim(entry);
  return true;
}

std::string EtagOf(const PlanEntry& entry) {
  std::vector<std::string> standing;
  for (const StoredPlan& stored : entry.plans) {
    const Plan& plan = *stored.plan;
    standing.push_back(
        absl::StrCat(plan.budget.value(), " ", plan.revision, " ", static_cast<int>(stored.state),
                     stored.pinned ? " pinned " : " ", plan.prediction.makespan.value(), " ",
                     plan.prediction.peak.value()));
  }
  // Servers may have got them in different orders.
  std::sort(standing.begin(), standing.end());
  const std::string all =
      absl::StrCat("etag ", entry.generation / kChangesPerHistory, entry.frozen ? " frozen " : " ",
                   absl::StrJoin(standing, ","));
  constexpr size_t kDigits = 16;
  return absl::StrCat("\"", Sha256(all).ToHex().substr(0, kDigits), "\"");
}

absl::StatusOr<PlanEntry> Pin(const PlanEntry& entry, const RevisionId& id) {
  PlanEntry changed = entry;
  StoredPlan* target = Find(id, &changed);
  if (target == nullptr) return PlanNotCachedError();
  if (target->state == RevisionState::kRetired) return Refused(id, "was rolled back");
  for (StoredPlan& stored : changed.plans) {
    if (stored.plan->budget == id.budget) stored.pinned = false;
  }
  target->pinned = true;
  target->state = RevisionState::kServing;
  return changed;
}

absl::StatusOr<PlanEntry> Unpin(const PlanEntry& entry, const RevisionId& id) {
  PlanEntry changed = entry;
  StoredPlan* target = Find(id, &changed);
  if (target == nullptr) return PlanNotCachedError();
  if (!target->pinned) return Refused(id, "is not pinned");
  target->pinned = false;
  return changed;
}

absl::StatusOr<PlanEntry> RollBack(const PlanEntry& entry, const RevisionId& id) {
  PlanEntry changed = entry;
  StoredPlan* target = Find(id, &changed);
  if (target == nullptr) return PlanNotCachedError();
  if (target->state == RevisionState::kRetired) return Refused(id, "was rolled back before");
  target->state = RevisionState::kRetired;
  target->pinned = false;
  if (ServingRevision(changed, id.budget) != nullptr) return changed;
  StoredPlan* former = LatestBefore(id, &changed);
  if (former == nullptr) return Refused(id, "is the first: delete the key's plans instead");
  former->state = RevisionState::kServing;
  return changed;
}

absl::StatusOr<PlanEntry> Promote(const PlanEntry& entry, const RevisionId& id) {
  PlanEntry changed = entry;
  StoredPlan* target = Find(id, &changed);
  if (target == nullptr) return PlanNotCachedError();
  if (target->state != RevisionState::kShadow) return Refused(id, "is not in shadow");
  if (PinnedRevision(changed, id.budget) != nullptr) return Refused(id, "waits for one pinned");
  for (StoredPlan& stored : changed.plans) {
    const bool serves = stored.state == RevisionState::kServing;
    if (serves && stored.plan->budget == id.budget) stored.state = RevisionState::kShadow;
  }
  target->state = RevisionState::kServing;
  return changed;
}

absl::StatusOr<PlanEntry> Freeze(const PlanEntry& entry) {
  if (entry.frozen) return absl::FailedPreconditionError("the entry is frozen already");
  PlanEntry changed = entry;
  changed.frozen = true;
  return changed;
}

absl::StatusOr<PlanEntry> Unfreeze(const PlanEntry& entry) {
  if (!entry.frozen) return absl::FailedPreconditionError("the entry is not frozen");
  PlanEntry changed = entry;
  changed.frozen = false;
  return changed;
}

}  // namespace stowage
