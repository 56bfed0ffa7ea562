// Which plans of an entry answer a budget.
//
//   a plan solved for budget b with peak p   every B with p <= B <= b: the best at b is as good
//                                            at B if it fits; every B >= p if it recomputes
//                                            nothing: no schedule is faster
//   proven infeasible with least budget m    every B < m
//   not found                                its own budget: nothing was proven about any other
#ifndef STOWAGE_SERVER_PLANNING_PLAN_LOOKUP_H_
#define STOWAGE_SERVER_PLANNING_PLAN_LOOKUP_H_

#include <memory>
#include <vector>

#include "server/cache/plan_entry.h"

namespace stowage {

bool Serves(const Plan& plan, Bytes budget);

// All that serve, the fastest first, then those without a schedule.
std::vector<std::shared_ptr<const Plan>> PlansServing(const PlanEntry& entry, Bytes budget);

}  // namespace stowage

#endif  // STOWAGE_SERVER_PLANNING_PLAN_LOOKUP_H_
