// The recurrence of Beaumont et al. 2019, Theorem 1, in exact bytes: top down from the answer,
// visiting only the memories that are reached, and of those only the ones between the least memory
// of an interval and the memory at which all of it is kept. Internal to solvers/chain.
//
// Exact where it ends; the number of memories reached can grow exponentially, hence the limit on
// states. Chains whose stages repeat, short ones, and budgets near the least are where it ends
// soon.
#ifndef STOWAGE_SOLVERS_CHAIN_PERSISTENT_EXACT_H_
#define STOWAGE_SOLVERS_CHAIN_PERSISTENT_EXACT_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "solvers/chain/persistent_space.h"
#include "solvers/plan/schedule.h"
#include "solvers/solver.h"

namespace stowage {

// What the search may spend before it gives up.
struct ExactLimits {
  int64_t states;  // about 80 bytes each
  int64_t steps;   // splits looked at, each with a look-up
};

// A schedule of least time within `memory` (a^0 not included), which must be at least the least
// memory of (1, L+1). Nothing if that is beyond the limits. CANCELLED, DEADLINE_EXCEEDED. `space`
// must have unit 1.
absl::StatusOr<std::optional<Schedule>> SolvePersistentExactly(const PersistentSpace& space,
                                                               const LeastMemory& least,
                                                               int64_t memory,
                                                               const ExactLimits& limits,
                                                               const SolveOptions& options);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_PERSISTENT_EXACT_H_
