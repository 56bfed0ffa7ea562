// Where the stages of a chain repeat: the recurrence gives equal intervals equal values. Internal
// to solvers/chain.
#ifndef STOWAGE_SOLVERS_CHAIN_STAGE_REPEATS_H_
#define STOWAGE_SOLVERS_CHAIN_STAGE_REPEATS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "solvers/chain/persistent_space.h"

namespace stowage {

// The `length` stages from `stage` on are the same, one by one, as those from here on. Length 0:
// none.
struct StageRepeat {
  int stage = 0;
  int length = 0;
};

// For every stage s in 1..L+1 the longest repeat at a later stage, at index s. O(L^2) time, O(L)
// memory.
std::vector<StageRepeat> FindStageRepeats(const PersistentSpace& space);

// Moves (s, t) to the equal interval that is no repeat of a later one.
inline void MoveToDistinct(const std::vector<StageRepeat>& repeats, int* s, int* t) {
  for (;;) {
    const StageRepeat& repeat = repeats[static_cast<size_t>(*s)];
    if (*t - *s >= repeat.length) return;
    *t += repeat.stage - *s;
    *s = repeat.stage;
  }
}

// Intervals (s, t) that are no repeat of a later one: the ones that have to be computed.
int64_t DistinctIntervals(const std::vector<StageRepeat>& repeats);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_STAGE_REPEATS_H_
