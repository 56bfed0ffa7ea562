// The revisions of the plans of an entry: which of several for one budget is handed out, and what
// an administrator may do about it.
//
// Serving is the pinned revision, else of those in state kServing the best one under the costs of
// reference, of equal ones the latest. So what is solved for callers of larger overheads may stand
// beside it, for such callers, and takes nothing from the others; and when the reference moves, what
// is best then serves. Revisions of other budgets do not matter. What changes an entry gives a changed copy; the caller raises the generation.
// Pure functions, hence thread-safe. O(plans).
#ifndef STOWAGE_SERVER_ENTRIES_REVISIONS_H_
#define STOWAGE_SERVER_ENTRIES_REVISIONS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "server/entries/plan_entry.h"

namespace stowage {

// Kept of one budget, and of one entry. What goes first is the oldest one that neither serves nor is
// pinned; of an entry, then the oldest one that is not pinned.
inline constexpr size_t kMostRevisions = 4;
inline constexpr size_t kMaxPlansPerEntry = 64;

// For one budget, under the costs of reference: a faster schedule, any before none, and that none
// exists before that none was found.
bool IsBetter(const Plan& next, const Plan& now);

// Null when there is none.
const StoredPlan* ServingRevision(const PlanEntry& entry, Bytes budget);
const StoredPlan* PinnedRevision(const PlanEntry& entry, Bytes budget);
// Greater than that of every revision kept for the budget.
int64_t NextRevision(const PlanEntry& entry, Bytes budget);
// Adds it as the latest and drops what is too many; false, and nothing changes, when all others
// are pinned.
bool AddRevision(StoredPlan stored, PlanEntry* entry);

// Of what an administrator sees and changes: which revisions there are, their states and pins, whether the entry is
// frozen, and which history it is. Reports and new costs change nothing of it. In the form of RFC 7232: quoted. O(plans).
std::string EtagOf(const PlanEntry& entry);

struct RevisionId {
  Bytes budget;
  int64_t revision = 0;
};

// NOT_FOUND (reason PLAN_NOT_CACHED) when there is no such revision; FAILED_PRECONDITION as below.

// It serves, whatever comes later, and leaves the shadow for that. Not one that was rolled back. A
// revision that was pinned before is no longer.
absl::StatusOr<PlanEntry> Pin(const PlanEntry& entry, const RevisionId& id);
// Only one that is pinned.
absl::StatusOr<PlanEntry> Unpin(const PlanEntry& entry, const RevisionId& id);
// It is never handed out again, nor is an equal schedule, as long as it is kept. Where no other one
// serves then, the latest before it does, out of the shadow if need be. Not where there is none: a
// key without a plan is solved anew, to the same plan.
absl::StatusOr<PlanEntry> RollBack(const PlanEntry& entry, const RevisionId& id);
// Only one in shadow, and only if none is pinned: it serves, and those that did wait in shadow.
absl::StatusOr<PlanEntry> Promote(const PlanEntry& entry, const RevisionId& id);
// Not what is so already.
absl::StatusOr<PlanEntry> Freeze(const PlanEntry& entry);
absl::StatusOr<PlanEntry> Unfreeze(const PlanEntry& entry);

}  // namespace stowage

#endif  // STOWAGE_SERVER_ENTRIES_REVISIONS_H_
