// Between which memories a subchain of solvers/chain/beyond_recurrence.h is worth a row of a table:
// from the least that runs it to the one at which nothing of it runs again. Internal to
// solvers/chain.
#ifndef STOWAGE_SOLVERS_CHAIN_BEYOND_EXTENTS_H_
#define STOWAGE_SOLVERS_CHAIN_BEYOND_EXTENTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/chain/beyond_recurrence.h"
#include "solvers/chain/persistent_space.h"
#include "solvers/plan/schedule.h"
#include "solvers/solver.h"

namespace stowage {

struct BeyondExtents {
  struct Extent {
    int64_t least = 0;
    int64_t all_kept = 0;
    int32_t choice = 0;  // the alternative that needs least
  };

  bool moving;
  SubchainIndex index;
  std::vector<Extent> extents;  // by index

  const Extent& operator[](const Subchain& x) const {
    return extents[static_cast<size_t>(index(x))];
  }
};

// O(L^3), with moving checkpoints O(L^4). CANCELLED, DEADLINE_EXCEEDED; RESOURCE_EXHAUSTED beyond
// options.table_limit and for chains that it would take minutes for.
absl::StatusOr<BeyondExtents> ComputeExtents(const PersistentSpace& space, bool moving,
                                             const SolveOptions& options);

// The smallest budget of the whole chain, in the space's units, and the schedule that needs no more.
int64_t LeastBudgetOf(const PersistentSpace& space, const BeyondExtents& extents);
Schedule LeastSchedule(const PersistentSpace& space, const BeyondExtents& extents);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_BEYOND_EXTENTS_H_
