// How a solved plan changes the entry of its key.
#ifndef STOWAGE_SERVER_PLANNING_PLAN_RECORD_H_
#define STOWAGE_SERVER_PLANNING_PLAN_RECORD_H_

#include <memory>
#include <optional>

#include "server/cache/plan_entry.h"
#include "server/planning/planning_problem.h"

namespace stowage {

// Plans kept per entry; the one solved longest ago goes first.
inline constexpr size_t kMaxPlansPerEntry = 64;

struct SolvedPlan {
  std::shared_ptr<const PlanningProblem> problem;  // under whose costs it was solved
  Plan plan;
  bool least = false;  // plan.budget is what "least" resolved to
};

// The entry that replaces `old` (null: there was none, or one of other canonical bytes). The plan
// takes the place of one of equal budget; it gets the next revision, written to solved->plan.
//
// The costs of reference stay where the plan holds under them. Where a schedule does not, the
// caller's costs become the reference only if all their overheads are at least those of the old
// one, and its link is about the same or the first; old plans stay as far as they hold under these.
// So the reference moves towards larger overheads and a link alone: plans that hold under them hold
// for most callers, and one caller of small overheads or without a link cannot take the plans of all
// others away.
//
// Nothing, the plan answers its caller and is not kept, when
// - its schedule does not hold under the reference, and the caller's costs do not become it;
// - it has no schedule, and the caller's overheads differ, or the link: nothing follows for the
//   others;
// - the entry has a plan for the budget that fits the caller, too (SameMemory), and that is over 5%
//   faster under the reference: what the caller's times or link led to must not replace it;
// - the profile has no times: then every schedule is as good as any other, but not for the others.
std::optional<PlanEntry> Record(const PlanEntry* old, SolvedPlan* solved);

}  // namespace stowage

#endif  // STOWAGE_SERVER_PLANNING_PLAN_RECORD_H_
