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
// takes the place of one of equal budget and gets the next revision, written to solved->plan. The
// costs of reference stay, unless the plan does not hold under them: then the new costs become the
// reference, and old plans stay as far as they hold under these.
PlanEntry Record(const PlanEntry* old, SolvedPlan* solved);

}  // namespace stowage

#endif  // STOWAGE_SERVER_PLANNING_PLAN_RECORD_H_
