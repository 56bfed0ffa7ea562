// A plan that was made under one caller's costs, judged under another's.
#ifndef STOWAGE_SERVER_ENTRIES_PLAN_UNDER_H_
#define STOWAGE_SERVER_ENTRIES_PLAN_UNDER_H_

#include <optional>

#include "server/entries/cost_compare.h"
#include "solvers/model/problem.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/plan.h"

namespace stowage {

// Both problems have the same structure (equal canonical bytes): only times, overheads and links may
// differ.

// `plan`, made under the costs of `reference`, as an answer for `budget` under the costs of
// `caller`: validated anew with the caller's link, and claiming no more than still holds: its bound is
// the better one of the caller's own and of what follows from the plan's (BoundUnder). `store_all`
// is what store-all takes under the caller's costs. Nothing when
// - the evaluator refuses it, say because it has transfers and the caller no link for them;
// - it recomputes or copies and store-all fits, because the caller's overheads are smaller: store-all
//   wins whenever it fits;
// - it recomputes or copies, and the caller has a link where the reference had none, or one on which
//   the copy of a mean tensor, latency included, takes over twice as long or less than half: what is
//   good with the one is not with the other;
// - it says that there is no schedule and the overheads differ, or the host memory, or that none was
//   found and any costs differ (a search may find one under other times): nothing is known for this
//   caller.
std::optional<Plan> PlanUnder(const Instance& caller, const Simulation& store_all,
                              const Instance& reference, const Plan& plan, Bytes budget);

}  // namespace stowage

#endif  // STOWAGE_SERVER_ENTRIES_PLAN_UNDER_H_
