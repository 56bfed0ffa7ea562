// The referee: replays a schedule on a chain and says whether it is valid, how long it takes and
// how much memory it needs. Independent of all solvers; nothing leaves the library that it has not
// accepted.
//
// Accounting (Beaumont et al. 2019, Table 1, with the overheads of a forward that saves and one
// that does not kept apart). Held is what is stored: a^0 and the seed gradient delta^{L+1} from the
// start, and below.
//
//   op                     needs                      while it runs        afterwards
//   forward-keep-all l     a^{l-1} or saved l-1       held + saved + o_f+  + saved l
//   forward-keep-input l   a^{l-1} or saved l-1       held + a + o_f0      + a^l
//   forward-keep-nothing l plain a^{l-1}              held + a + o_f0      + a^l, - a^{l-1}
//   backward l             delta^l, saved l, and      held + o_b           + delta^{l-1}, - delta^l,
//                          a^{l-1} or saved l-1                            - saved l, - plain a^{l-1}
//   discard                the tensor                 held                 - the tensor
//   reduce l               saved l                    held                 saved l becomes a^l
//
// The peak is the maximum over ops and over the states between them. A tensor that is held may not
// be computed again, a stage that must be kept may not run forward twice, backwards run once each
// from L+1 down to 1.
#ifndef STOWAGE_SOLVERS_PLAN_SIMULATE_H_
#define STOWAGE_SOLVERS_PLAN_SIMULATE_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/chain.h"
#include "solvers/plan/schedule.h"

namespace stowage {

struct Simulation {
  Nanos makespan;
  Bytes peak;
  Nanos recompute_time;  // part of the makespan that repeats a forward
  Nanos idle_time;       // part in which the compute stream waits
  int recomputed_forwards = 0;
  size_t peak_instruction = 0;  // the first at which the peak is reached
};

// What one instruction did, in order.
struct TimelinePoint {
  Nanos start;
  Nanos end;
  Bytes running;  // memory while it runs
  Bytes held;     // memory after it
};

// OK, or INVALID_ARGUMENT that names the first instruction that is not valid and why. `timeline`,
// if given, is filled with one point per instruction. O(instructions + L).
absl::StatusOr<Simulation> Simulate(const Chain& chain, const Schedule& schedule,
                                    std::vector<TimelinePoint>* timeline = nullptr);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLAN_SIMULATE_H_
