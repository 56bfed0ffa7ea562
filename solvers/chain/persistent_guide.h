// Schedules for a budget in exact bytes, guided by a table in slots. Internal to solvers/chain.
//
// A table's own schedule adds up the rounding of everything it keeps. Here memory is tracked in
// bytes and feasibility is that of the exact least memory; the table only says which of the
// feasible choices looks fastest. So every budget from the least on gets a schedule within it.
#ifndef STOWAGE_SOLVERS_CHAIN_PERSISTENT_GUIDE_H_
#define STOWAGE_SOLVERS_CHAIN_PERSISTENT_GUIDE_H_

#include <cstdint>

#include "solvers/chain/persistent_space.h"
#include "solvers/chain/persistent_table.h"
#include "solvers/plan/schedule.h"

namespace stowage {

// A schedule within `memory` bytes (a^0 not included), at least the least memory of (1, L+1).
// `exact` must have unit 1, `table` have slots of `unit` bytes. O(L^2) time.
Schedule GuidedSchedule(const PersistentSpace& exact, const LeastMemory& least,
                        const PersistentTable& table, int64_t unit, int64_t memory);
// The same of the interval (s, t), a^{s-1} not included.
Schedule GuidedSchedule(const PersistentSpace& exact, const LeastMemory& least,
                        const PersistentTable& table, int64_t unit, int s, int t, int64_t memory);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_PERSISTENT_GUIDE_H_
