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
// Every overhead of `a` is at least that of `b`.
bool OverheadsAtLeast(const Chain& a, const Chain& b);

// `plan`, made under the costs of `reference`, as an answer for `budget` under the costs of
// `caller`: refereed anew, and claiming no more than still holds. `store_all` is what store-all
// takes under the caller's costs. Nothing when
// - the referee refuses it;
// - it recomputes and store-all fits, because the caller's overheads are smaller: store-all wins
//   whenever it fits;
// - it says that there is no schedule and the overheads differ: nothing is known for this caller.
std::optional<Plan> PlanUnder(const Chain& caller, const Simulation& store_all,
                              const Chain& reference, const Plan& plan, Bytes budget);

}  // namespace stowage

#endif  // STOWAGE_SERVER_PLANNING_PLAN_UNDER_H_
