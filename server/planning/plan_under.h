// A plan that was made under one caller's costs, judged under another's.
#ifndef STOWAGE_SERVER_PLANNING_PLAN_UNDER_H_
#define STOWAGE_SERVER_PLANNING_PLAN_UNDER_H_

#include <optional>

#include "solvers/model/chain.h"
#include "solvers/plan/plan.h"

namespace stowage {

// Both chains have the same structure (equal canonical bytes): only times and overheads may differ.
bool SameOverheads(const Chain& a, const Chain& b);
bool SameTimes(const Chain& a, const Chain& b);

// `plan`, made under the costs of `reference`, as an answer for `budget` under the costs of
// `caller`: refereed anew, and claiming no more than still holds. Nothing when the referee refuses
// it, or when it says that there is no schedule and the overheads differ: then nothing is known for
// this caller.
std::optional<Plan> PlanUnder(const Chain& caller, const Chain& reference, const Plan& plan,
                              Bytes budget);

}  // namespace stowage

#endif  // STOWAGE_SERVER_PLANNING_PLAN_UNDER_H_
