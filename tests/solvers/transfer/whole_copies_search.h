// The fastest of all schedules with whole copies, by breadth-first search over moments: written
// without a look at the replay. For a handful of ops and small numbers.
#ifndef STOWAGE_TESTS_SOLVERS_TRANSFER_WHOLE_COPIES_SEARCH_H_
#define STOWAGE_TESTS_SOLVERS_TRANSFER_WHOLE_COPIES_SEARCH_H_

#include <optional>

#include "solvers/transfer/offload_problem.h"

namespace stowage::testing {

enum class CopyOrder {
  kOrdered,  // offloads ascending, prefetches descending
  kAny,
};

// Every activation of the set leaves and comes back, no other one does. Nothing if the set has no
// schedule.
std::optional<Nanos> SearchWholeCopies(const OffloadProblem& problem, const OffloadSet& set,
                                       CopyOrder order);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_TRANSFER_WHOLE_COPIES_SEARCH_H_
