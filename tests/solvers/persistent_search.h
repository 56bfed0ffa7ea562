// Exhaustive search over all memory-persistent schedules of a small chain, for every budget at
// once. Knows the operations and what persistence means; knows nothing of the recurrence.
//
// A tensor is transient while it is the result of the operation just run; from the next operation
// on, if still there, it is kept, and what is kept stays until its backward. A forward that drops
// its input may therefore only drop a transient one.
#ifndef STOWAGE_TESTS_SOLVERS_PERSISTENT_SEARCH_H_
#define STOWAGE_TESTS_SOLVERS_PERSISTENT_SEARCH_H_

#include <cstdint>
#include <map>

#include "solvers/model/chain.h"

namespace stowage::testing {

enum class Recompute { kOnDemand, kAnyTime };
// When the forward that saves a stage may run: always, or only when its backward is the next.
enum class Saving { kAhead, kJustInTime };

// Peak -> least makespan with that peak or less, for every peak at which the makespan changes.
std::map<int64_t, int64_t> PersistentFrontier(const Chain& chain,
                                              Recompute recompute = Recompute::kOnDemand,
                                              Saving saving = Saving::kAhead);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_PERSISTENT_SEARCH_H_
