// The recurrence of offloading and recomputing together (after Beaumont et al. 2021), as a beam
// search over states that none other dominates. Internal to solvers/transfer.
//
// Stages are decided in order, working inwards from both ends of the schedule: how stage i runs says
// what its forward and its backward take. Before stage i there is a state (JointState). Then
// either i is saved, or a segment i..j runs and only its input is kept; its backward is an interval
// of Beaumont et al. 2019, Theorem 1, in the room that is left, or in more, if it waits. The input
// stays or leaves.
//
// Bytes and times are exact but for the costs of segments' backwards, and for copies that might
// reach from one half of the schedule into the other. What comes out are proposals: the replay says
// what they are worth.
#ifndef STOWAGE_SOLVERS_TRANSFER_JOINT_RECURRENCE_H_
#define STOWAGE_SOLVERS_TRANSFER_JOINT_RECURRENCE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/chain.h"
#include "solvers/model/transfer_model.h"
#include "solvers/solver.h"
#include "solvers/transfer/outline.h"
#include "solvers/transfer/segment_costs.h"

namespace stowage {

struct JointLimits {
  size_t states = 0;      // at one stage, of each kind of input; fewer where the bytes are few
  size_t outlines = 0;    // that come out
  double cells = 0;       // sizes are told apart by such a share of the memory
  double most_extra = 0;  // ns beyond the ideal time: states that cannot end within it are left out
  int64_t bytes = 0;      // of all that is held at once, but for O(L)
};

// Best first; none if nothing was found to fit, or if the bytes are too few for a search.
// O(states L^2) time. CANCELLED, DEADLINE_EXCEEDED.
absl::StatusOr<std::vector<Outline>> ProposeOutlines(const Chain& chain,
                                                     const TransferModel& transfers,
                                                     const SegmentCosts& costs, Bytes memory,
                                                     const JointLimits& limits,
                                                     const SolveOptions& options);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_TRANSFER_JOINT_RECURRENCE_H_
