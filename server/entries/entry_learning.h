// How what callers measure moves the costs of reference of an entry (reference_costs.h).
#ifndef STOWAGE_SERVER_ENTRIES_ENTRY_LEARNING_H_
#define STOWAGE_SERVER_ENTRIES_ENTRY_LEARNING_H_

#include <cstdint>
#include <optional>

#include "server/entries/plan_entry.h"
#include "server/entries/planning_problem.h"

namespace stowage {

// The entry with the caller's costs among its samples; nothing when they tell nothing new
// (JudgeSample: ask that first, it is cheap). When the reference moves, every plan is judged anew
// under it: those that no longer hold are dropped, what was reported about the others is put in
// proportion, and the frontier goes. The first who has measured what was only modelled is the reference from
// then on: what was planned for the model serves on under these costs, as plans of a version before all others,
// so that each is solved anew once it is asked for. The canonical bytes of both are equal. O(samples x steps), and a
// replay of every plan when the reference moves.
std::optional<PlanEntry> Learn(const PlanEntry& entry, const PlanningProblem& problem,
                               uint64_t job);

}  // namespace stowage

#endif  // STOWAGE_SERVER_ENTRIES_ENTRY_LEARNING_H_
