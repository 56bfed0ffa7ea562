// How a solved plan changes the entry of its key.
#ifndef STOWAGE_SERVER_ENTRIES_PLAN_RECORD_H_
#define STOWAGE_SERVER_ENTRIES_PLAN_RECORD_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "server/entries/plan_entry.h"
#include "server/entries/planning_problem.h"

namespace stowage {

// An entry for the problem, of whom `job` is the first to ask, without plans.
PlanEntry NewEntry(const PlanningProblem& problem, uint64_t job);

struct SolvedPlan {
  std::shared_ptr<const PlanningProblem> problem;  // under whose costs it was solved
  Plan plan;
  bool least = false;  // plan.budget is what "least" resolved to
  uint64_t job = 0;    // JobHash of who asked
};

// The entry that replaces `old` (null: there was none, or one of other canonical bytes), or nothing:
// the plan answers its caller and the entry stays. solved->plan gets its revision.
//
// The first caller's costs are the reference. Later ones are samples of it, one per job (Learn): the
// reference moves when several jobs agree, never for one job alone.
//
// The plan is judged under the reference. It is kept beside the former revisions for its budget, and
// - serves if none does, or if it is faster under the reference than the one that does: so what one
//   caller's times, overheads or link led to takes nothing from the others;
// - stands beside the serving one, for callers like its own, if that one does not hold under the
//   caller's costs, or under them takes over 2% longer than this one, as do all that stand there;
// - waits in shadow if the serving one is pinned, or is no slower and of an older solver version;
// - brings what it proves to the revision of equal schedule, if there is one. To one that was rolled
//   back it brings nothing.
// It is not kept when
// - the entry is frozen: then nothing of it changes;
// - its schedule does not hold under the reference, or it is neither faster nor of a newer version;
// - it has no schedule, and the caller's overheads differ, or the link: nothing follows for others;
// - the profile has no times: then every schedule is as good as any other, but not for the others.
std::optional<PlanEntry> Record(const PlanEntry* old, SolvedPlan* solved);

}  // namespace stowage

#endif  // STOWAGE_SERVER_ENTRIES_PLAN_RECORD_H_
