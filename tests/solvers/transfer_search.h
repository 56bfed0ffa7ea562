// Exhaustive search over all schedules of a tiny chain, recomputation and transfers to host memory
// included, that the evaluator accepts: every order of forwards, backwards, discards, reduces, and of
// the starts and waits of copies. Knows the rules of solvers/schedule/evaluator.h; knows nothing of
// strategies, of turning points or of any recurrence.
//
// A* over where each tensor is and which backward is next. A state has several labels: when compute
// is done, and when each copy under way ends. Everything that can follow is a maximum or a sum of
// these, so a label that is nowhere later makes others superfluous. Exponential in the stages: for
// three or four of them.
#ifndef STOWAGE_TESTS_SOLVERS_TRANSFER_SEARCH_H_
#define STOWAGE_TESTS_SOLVERS_TRANSFER_SEARCH_H_

#include <cstdint>
#include <optional>

#include "solvers/model/chain.h"
#include "solvers/model/transfer_model.h"
#include "tests/solvers/schedule_search.h"

namespace stowage::testing {

// A fastest schedule whose peak is within the budget; nothing if none is. Up to five stages and the
// loss.
std::optional<FoundSchedule> SearchTransfers(const Chain& chain, const TransferModel& transfers,
                                             int64_t budget);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_TRANSFER_SEARCH_H_
