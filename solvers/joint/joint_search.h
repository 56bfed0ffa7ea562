// The joint solver's search for one budget. Internal to solvers/joint.
#ifndef STOWAGE_SOLVERS_JOINT_JOINT_SEARCH_H_
#define STOWAGE_SOLVERS_JOINT_JOINT_SEARCH_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "solvers/joint/incumbent.h"
#include "solvers/plan/frontier.h"
#include "solvers/solver.h"

namespace stowage {

// What one search may take. All counts are of work, none of time.
struct JointEffort {
  size_t first_states = 0;  // of the recurrence, the first time
  size_t states = 0;        // and the second
  int starts = 0;           // proposals that are changed locally
  int64_t schedules = 0;    // that these changes may look at
  bool thorough = false;    // DynProg's sets, too
};

JointEffort FullEffort();
// Of one budget among many.
JointEffort LightEffort();

// Schedules that cost next to nothing to find: everything away, store-all and a checkpoint of every
// stage. Something fits down to CheapLeastMemory.
absl::Status OfferCheapSchedules(Incumbent* best);

// The least memory that these fit. O(L log memory).
absl::StatusOr<Bytes> CheapLeastMemory(const Chain& chain, const TransferModel& transfers);

// The recurrence's proposals and changes to the best of them.
absl::Status OfferRecurrence(const JointEffort& effort, const SolveOptions& options,
                             Incumbent* best);

// Every point of a chain solver's frontier.
absl::Status OfferFrontier(const Frontier& frontier, const JointEffort& effort,
                           const SolveOptions& options, Incumbent* best);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_JOINT_JOINT_SEARCH_H_
