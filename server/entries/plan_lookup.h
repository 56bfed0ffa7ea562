// Which plans of an entry answer a budget.
//
//   a plan solved for budget b with peak p   every B with p <= B <= b: the best at b is as good
//                                            at B if it fits; every B >= p if it recomputes and
//                                            copies nothing: no schedule is faster. (Equal makespans
//                                            do not say so: times may be 0.)
//   proven infeasible with least budget m    every B < m
//   not found                                its own budget: nothing was proven about any other
#ifndef STOWAGE_SERVER_ENTRIES_PLAN_LOOKUP_H_
#define STOWAGE_SERVER_ENTRIES_PLAN_LOOKUP_H_

#include <memory>
#include <optional>
#include <vector>

#include "server/entries/plan_entry.h"
#include "server/entries/planning_problem.h"
#include "server/entries/staleness.h"
#include "server/observe/server_metrics.h"

namespace stowage {

bool Serves(const Plan& plan, Bytes budget);

// All that serve, the fastest first, then those without a schedule. Of several revisions for one
// budget, only the one that serves (revisions.h); a revision that is pinned for exactly this budget
// is the only one.
std::vector<std::shared_ptr<const Plan>> PlansServing(const PlanEntry& entry, Bytes budget);

// The first of them; null where there is none. Allocates nothing.
std::shared_ptr<const Plan> FirstPlanServing(const PlanEntry& entry, Bytes budget);

// What a search of one entry found.
struct Found {
  std::optional<Plan> plan;
  PlanLookup outcome = PlanLookup::kNoEntry;
  int refused = 0;  // plans that serve the budget, but not under the caller's costs
  // Of the plan, or of the one that was refused for being kStale. Always kFresh where nothing may
  // change: the entry is frozen, or the plan pinned.
  Freshness freshness = Freshness::kFresh;
};

// Plans that a search judges at most: each one is a replay.
inline constexpr int kMaxJudged = 4;

// Of the first plans that serve the budget, the fastest under the caller's own costs, unless it is
// stale under them (staleness.h). Where none of these holds under them, or it is no longer fresh, a
// revision that stands beside one may be better.
Found BestAccepted(const PlanningProblem& problem, const PlanEntry& entry, Bytes budget,
                   double tolerance = kStaleTolerance);

}  // namespace stowage

#endif  // STOWAGE_SERVER_ENTRIES_PLAN_LOOKUP_H_
