// A plan that was made under one caller's costs, judged under another's.
#ifndef STOWAGE_SERVER_PLANNING_PLAN_UNDER_H_
#define STOWAGE_SERVER_PLANNING_PLAN_UNDER_H_

#include <optional>

#include "solvers/model/problem.h"
#include "solvers/plan/plan.h"

namespace stowage {

// Both problems have the same structure (equal canonical bytes): only times and overheads may differ.
bool SameOverheads(const Problem& a, const Problem& b);
bool SameTimes(const Problem& a, const Problem& b);
// Every overhead of `a` is at least that of `b`.
bool OverheadsAtLeast(const Problem& a, const Problem& b);

// `plan`, made under the costs of `reference`, as an answer for `budget` under the costs of
// `caller`: refereed anew, and claiming no more than still holds. `store_all` is what store-all
// takes under the caller's costs. Nothing when
// - the referee refuses it;
// - it recomputes and store-all fits, because the caller's overheads are smaller: store-all wins
//   whenever it fits;
// - it says that there is no schedule and the overheads differ, or that none was found and any costs
//   differ (a search may find one under other times): nothing is known for this caller.
std::optional<Plan> PlanUnder(const Problem& caller, const Simulation& store_all,
                              const Problem& reference, const Plan& plan, Bytes budget);

}  // namespace stowage

#endif  // STOWAGE_SERVER_PLANNING_PLAN_UNDER_H_
