// The points of a frontier as plans of an entry: together they serve every budget that one of them fits.
#ifndef STOWAGE_SERVER_ENTRIES_FRONTIER_PLANS_H_
#define STOWAGE_SERVER_ENTRIES_FRONTIER_PLANS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/entries/plan_entry.h"
#include "solvers/schedule/frontier.h"
#include "solvers/schedule/instance.h"

namespace stowage {

// A plan per point, each accepted by the evaluator on `instance`. The budget of each ends below the next one's
// peak: from there that is faster (plan_lookup.h). Errors: those of Frontier::PlanAt and of Evaluator.
// O(points x instructions).
absl::StatusOr<std::vector<StoredPlan>> PlansOfFrontier(const Instance& instance,
                                                        const Frontier& frontier,
                                                        const std::string& solver_version,
                                                        const std::string& explanation);

// The schedules of plans that were found, as a frontier under the costs of `instance`: what the evaluator accepts
// on it, and is faster than what takes less memory. O(plans x instructions).
Frontier FrontierOfPlans(const Instance& instance, const std::vector<StoredPlan>& plans);

}  // namespace stowage

#endif  // STOWAGE_SERVER_ENTRIES_FRONTIER_PLANS_H_
