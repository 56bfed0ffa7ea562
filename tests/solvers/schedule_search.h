// Exhaustive search over all schedules of a small chain that the evaluator accepts: every order of
// forwards, backwards, discards and reduces, recomputing whatever and whenever. Knows the
// operations' accounting; knows nothing of persistence or of any recurrence.
//
// Dijkstra's algorithm over what is held and what is still to be done: exponential in the stages,
// for up to six or so.
#ifndef STOWAGE_TESTS_SOLVERS_SCHEDULE_SEARCH_H_
#define STOWAGE_TESTS_SOLVERS_SCHEDULE_SEARCH_H_

#include <cstdint>
#include <map>
#include <optional>

#include "solvers/model/chain.h"
#include "solvers/schedule/schedule.h"

namespace stowage::testing {

struct FoundSchedule {
  int64_t makespan;
  Schedule schedule;
};

// A fastest schedule whose peak is within the budget; nothing if none is.
std::optional<FoundSchedule> SearchSchedules(const Chain& chain, int64_t budget);

// Peak -> least makespan with that peak or less, for every peak at which the makespan changes.
std::map<int64_t, int64_t> ScheduleFrontier(const Chain& chain);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_SCHEDULE_SEARCH_H_
