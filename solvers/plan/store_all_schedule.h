// The schedule of plain training: every forward keeps all, then every backward. Here, beside the
// referee, because budgets and bounds are stated relative to it.
#ifndef STOWAGE_SOLVERS_PLAN_STORE_ALL_SCHEDULE_H_
#define STOWAGE_SOLVERS_PLAN_STORE_ALL_SCHEDULE_H_

#include "solvers/model/chain.h"
#include "solvers/plan/schedule.h"

namespace stowage {

Schedule StoreAllSchedule(const Chain& chain);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLAN_STORE_ALL_SCHEDULE_H_
