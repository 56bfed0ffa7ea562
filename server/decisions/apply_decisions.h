// An entry as a store has it, and what was decided about its key: the entry as it is given.
#ifndef STOWAGE_SERVER_DECISIONS_APPLY_DECISIONS_H_
#define STOWAGE_SERVER_DECISIONS_APPLY_DECISIONS_H_

#include <memory>

#include "server/decisions/decision.h"

namespace stowage {

// `entry` itself where it is as was decided, and of the same edition. Null: there is none (`entry` is null, or is over because
// of a deletion) and nothing that was decided says what it would have to be.
// - Frozen: the plans and the reference of when it was frozen, with the reports that came since.
// - Pinned: that schedule, as that revision, serves its budget; it is put back where a copy lacks it,
//   unless the evaluator refuses it under the entry's reference (PlanUnder).
// - Rolled back: an equal schedule is retired, whatever its revision. Where none is left to serve then,
//   those that served when it was decided are put back.
// - In shadow, or promoted: as it was decided, unless reports have retired it since.
// What is not there and is frozen, or has a revision that is pinned, rolled back or in shadow, is made
// of what was kept. The generation is that of `entry`, if it is of use. O(plans), and the bytes of the
// entry where it is frozen. Thread-safe.
std::shared_ptr<const PlanEntry> ApplyDecisions(const KeyDecisions& decisions,
                                                const std::shared_ptr<const PlanEntry>& entry);

// What ApplyDecisions makes an entry of where there is none; null where it makes none.
std::shared_ptr<const PlanEntry> HeldEntry(const KeyDecisions& decisions);

}  // namespace stowage

#endif  // STOWAGE_SERVER_DECISIONS_APPLY_DECISIONS_H_
