// The fastest schedule of a set when copies can be interrupted, in steps of a nanosecond: written
// without a look at the recurrence. For small numbers, and links that need a whole number of
// nanoseconds for a byte.
#ifndef STOWAGE_TESTS_SOLVERS_TRANSFER_SPLIT_COPIES_SEARCH_H_
#define STOWAGE_TESTS_SOLVERS_TRANSFER_SPLIT_COPIES_SEARCH_H_

#include <optional>

#include "solvers/transfer/offload_problem.h"

namespace stowage::testing {

// What has been copied counts at once. Latencies are not looked at. Nothing if the set has no
// schedule.
std::optional<Nanos> SearchSplitCopies(const OffloadProblem& problem, const OffloadSet& set);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_TRANSFER_SPLIT_COPIES_SEARCH_H_
