// One half of a replay: ops 0..n-1 in order, each starting as soon as the one before it has ended
// and the offloads so far have left room for it. Internal to solvers/offload.
#ifndef STOWAGE_SOLVERS_OFFLOAD_HALF_REPLAY_H_
#define STOWAGE_SOLVERS_OFFLOAD_HALF_REPLAY_H_

#include <optional>
#include <vector>

#include "solvers/model/units.h"
#include "solvers/offload/offload_problem.h"

namespace stowage {

enum class Half {
  kForward,
  kBackward,  // in reversed time: prefetches are offloads then
};

struct HalfCopy {
  Nanos start;
  Nanos end;
  Nanos release;  // of its memory
};

struct HalfTimeline {
  std::vector<Nanos> start;      // by op
  std::vector<HalfCopy> copies;  // by place in the set
  Nanos end;                     // of the last op
};

// Nothing if some op never fits. The host's memory is not looked at. O(n).
std::optional<HalfTimeline> ReplayHalf(const OffloadProblem& problem, const OffloadSet& set,
                                       Half half);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_OFFLOAD_HALF_REPLAY_H_
