#include "server/decisions/apply_decisions.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "server/entries/entry_codec.h"
#include "server/entries/plan_under.h"
#include "server/entries/revisions.h"

namespace stowage {
namespace {

bool IsHeld(const StoredPlan& stored) {
  return stored.pinned || stored.state != RevisionState::kServing;
}

// What an entry that is gone is made of; null: nothing.
const Decision* BaseOf(const KeyDecisions& decisions) {
  const Decision* base = nullptr;
  for (const auto& [id, decision] : decisions.all) {
    if (!decision.kept) continue;
    if (decision.kind == DecisionKind::kFreeze) return &decision;
    const auto& plans = decision.kept->plans;
    if (!std::any_of(plans.begin(), plans.end(), IsHeld)) continue;
    if (base == nullptr || decision.stamp > base->stamp) base = &decision;
  }
  return base;
}

// What may not change while an entry is frozen.
std::string FrozenPart(PlanEntry entry) {
  entry.reports.clear();
  entry.profile_wanted = false;
  entry.frozen = false;
  entry.generation = 0;
  for (StoredPlan& stored : entry.plans) {
    stored.state = RevisionState::kServing;
    stored.pinned = false;
  }
  return EncodeEntry(entry);
}

void ApplyFreeze(const Decision& decision, PlanEntry* entry) {
  if (decision.kept && FrozenPart(*entry) != FrozenPart(*decision.kept)) {
    const int64_t generation = entry->generation;
    const std::optional<int64_t> updated_s = entry->updated_s;
    *entry = *decision.kept;
    entry->generation = generation;
    entry->updated_s = updated_s;
  }
  entry->frozen = decision.kept != nullptr;
}

StoredPlan* TwinIn(PlanEntry* entry, const Plan& plan) {
  for (StoredPlan& stored : entry->plans) {
    const Plan& other = *stored.plan;
    if (other.budget == plan.budget && other.status == plan.status &&
        other.schedule == plan.schedule) {
      return &stored;
    }
  }
  return nullptr;
}

// The number is another plan's to have; so are the reports under it.
void DropRevision(Bytes budget, int64_t revision, PlanEntry* entry) {
  std::vector<StoredPlan>& plans = entry->plans;
  plans.erase(std::remove_if(plans.begin(), plans.end(),
                             [&](const StoredPlan& stored) {
                               return stored.plan->budget == budget &&
                                      stored.plan->revision == revision;
                             }),
              plans.end());
  std::vector<ReportSample>& reports = entry->reports;
  reports.erase(std::remove_if(reports.begin(), reports.end(),
                               [&](const ReportSample& report) {
                                 return report.budget == budget && report.revision == revision;
                               }),
                reports.end());
}

void PutBack(const PlanEntry& kept, const StoredPlan& stored, PlanEntry* entry) {
  std::optional<Plan> judged = PlanUnder(*entry->reference, entry->store_all, *kept.reference,
                                         *stored.plan, stored.plan->budget);
  if (!judged) return;
  DropRevision(judged->budget, judged->revision, entry);
  entry->plans.push_back(
      {std::make_shared<const Plan>(*std::move(judged)), stored.state, stored.pinned});
}

void ApplyTo(const StoredPlan& stored, StoredPlan* twin) {
  twin->pinned = stored.pinned;
  if (stored.pinned || twin->state != RevisionState::kRetired) twin->state = stored.state;
}

// In an entry that was made anew the schedule may have another number.
void Renumber(const Plan& plan, PlanEntry* entry) {
  if (TwinIn(entry, plan)->plan->revision == plan.revision) return;
  DropRevision(plan.budget, plan.revision, entry);
  StoredPlan* const twin = TwinIn(entry, plan);
  Plan numbered = *twin->plan;
  numbered.revision = plan.revision;
  twin->plan = std::make_shared<const Plan>(std::move(numbered));
}

void ApplyBudget(const Decision& decision, PlanEntry* entry) {
  if (!decision.kept || decision.kept->canonical != entry->canonical) return;
  const PlanEntry& kept = *decision.kept;
  for (StoredPlan& stored : entry->plans) {
    if (stored.plan->budget == decision.budget) stored.pinned = false;
  }
  for (const StoredPlan& stored : kept.plans) {
    if (StoredPlan* twin = TwinIn(entry, *stored.plan)) {
      ApplyTo(stored, twin);
      if (stored.pinned) Renumber(*stored.plan, entry);
    } else if (stored.pinned) {
      PutBack(kept, stored, entry);
    }
  }
  if (ServingRevision(*entry, decision.budget) != nullptr) return;
  for (const StoredPlan& stored : kept.plans) {
    const bool served = stored.state == RevisionState::kServing;
    if (served && TwinIn(entry, *stored.plan) == nullptr) PutBack(kept, stored, entry);
  }
}

// When the last decision that is in an entry was made, in seconds since 1970.
int64_t DecidedAt(const KeyDecisions& decisions) {
  int64_t latest = 0;
  for (const auto& [id, decision] : decisions.all) {
    if (decision.kind != DecisionKind::kDeletion) latest = std::max(latest, decision.stamp);
  }
  return latest / kStampsPerSecond;
}

bool IsAsBefore(const PlanEntry& applied, const PlanEntry& entry) {
  const auto same = [](const StoredPlan& a, const StoredPlan& b) {
    return a.plan == b.plan && a.state == b.state && a.pinned == b.pinned;
  };
  return applied.frozen == entry.frozen && applied.reference == entry.reference &&
         std::equal(applied.plans.begin(), applied.plans.end(), entry.plans.begin(),
                    entry.plans.end(), same);
}

}  // namespace

std::shared_ptr<const PlanEntry> HeldEntry(const KeyDecisions& decisions) {
  const Decision* const base = BaseOf(decisions);
  return base == nullptr ? nullptr : base->kept;
}

std::shared_ptr<const PlanEntry> ApplyDecisions(const KeyDecisions& decisions,
                                                const std::shared_ptr<const PlanEntry>& entry) {
  const bool there = entry && entry->generation > decisions.deleted_up_to();
  const Decision* const base = there ? nullptr : BaseOf(decisions);
  if (!there && base == nullptr) return nullptr;
  PlanEntry applied = there ? *entry : *base->kept;
  // The freeze first: it says which plans there are, the others how they stand.
  for (const auto& [id, decision] : decisions.all) {
    if (decision.kind == DecisionKind::kFreeze) ApplyFreeze(decision, &applied);
    if (decision.kind == DecisionKind::kBudget) ApplyBudget(decision, &applied);
  }
  const bool taken = there && IsAsBefore(applied, *entry);
  if (taken && entry->edition == decisions.edition) return entry;
  if (!taken) {
    // The decision is the last change: the tiers have not taken it, or have lost the entry. What came
    // after it in an entry without a time, nobody knows.
    const int64_t decided_s = DecidedAt(decisions);
    if (!there) applied.updated_s = decided_s;
    if (applied.updated_s) applied.updated_s = std::max(*applied.updated_s, decided_s);
  }
  applied.edition = decisions.edition;
  return std::make_shared<const PlanEntry>(std::move(applied));
}

}  // namespace stowage
