// Stored plans as fields of what is stored. Internal to server/entries.
//
// Kept is what cannot be computed: state, pin, status, budget, schedule (solvers/schedule/schedule.h),
// the proven bounds, provenance, revision and explanation. The prediction and what store-all takes
// come from the replay.
#ifndef STOWAGE_SERVER_ENTRIES_PLAN_CODE_H_
#define STOWAGE_SERVER_ENTRIES_PLAN_CODE_H_

#include "server/entries/field_code.h"
#include "server/entries/plan_entry.h"

namespace stowage {

void WritePlan(const StoredPlan& stored, FieldWriter* out);

// A plan of `reference`, whose store-all takes `store_all`. `in` has failed where there is none, or
// one that the evaluator refuses: its schedule is not valid, its peak is over its budget, or it is
// faster than its own lower bound; or one that says that nothing fits of a budget that is not below
// the least one it names, or below which plain training fits. O(bytes + instructions + stages).
void ReadPlan(const Instance& reference, const Simulation& store_all, FieldReader* in,
              StoredPlan* stored);

}  // namespace stowage

#endif  // STOWAGE_SERVER_ENTRIES_PLAN_CODE_H_
