// The fastest of all schedules of a short chain with copies to host memory: every order of forwards, backwards, discards and of the
// starts and waits of copies of whole tensors. Internal to solvers/transfer.
//
// A* over where each tensor is and which backward is next. A state has several labels: when compute is done, and when each copy under
// way ends; what can follow is a maximum or a sum of these, so that a label which is nowhere later makes others superfluous. Of
// schedules that differ in the order of instructions alone, and are no faster, one is looked at: a copy begins as early as it can, a
// start, a wait, a discard are as late as they can be then. Exponential in the stages.
#ifndef STOWAGE_SOLVERS_TRANSFER_INTERNAL_SHORT_CHAIN_SEARCH_H_
#define STOWAGE_SOLVERS_TRANSFER_INTERNAL_SHORT_CHAIN_SEARCH_H_

#include <optional>

#include "absl/status/statusor.h"
#include "solvers/model/units.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/schedule.h"
#include "solvers/solver.h"

namespace stowage {

// Stages, the loss not counted. Up to here most searches take milliseconds, a few of a thousand a second or more; at five some take twenty.
inline constexpr int kShortChain = 4;

struct ShortChainAnswer {
  // Whether all was looked at: else the search took more memory than it may, or times are of years, whose sums could not be said.
  bool complete = false;
  // Faster than what was known; nothing if there is none.
  std::optional<Schedule> schedule;
};

// Of an instance of a chain of at most kShortChain stages with a link. Within `memory` of the device, and faster than `known`.
// CANCELLED, DEADLINE_EXCEEDED.
absl::StatusOr<ShortChainAnswer> SearchShortChain(const Instance& instance, Bytes memory,
                                                  Nanos known, const SolveContext& context);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_TRANSFER_INTERNAL_SHORT_CHAIN_SEARCH_H_
