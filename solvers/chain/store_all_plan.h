// Every solver's answer where nothing has to be recomputed. Internal to solvers/chain.
#ifndef STOWAGE_SOLVERS_CHAIN_STORE_ALL_PLAN_H_
#define STOWAGE_SOLVERS_CHAIN_STORE_ALL_PLAN_H_

#include "solvers/model/units.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/plan.h"

namespace stowage {

// Whether plain training fits the budget; if so, `plan` is FOUND with its schedule, which no other
// beats. O(instructions).
bool PlanStoreAll(const Instance& instance, Bytes budget, Plan* plan);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_STORE_ALL_PLAN_H_
