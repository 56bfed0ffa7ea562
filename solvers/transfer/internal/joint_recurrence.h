// The recurrence of offloading and recomputing together (after Beaumont et al. 2021), as a beam
// search over states that none other dominates. Internal to solvers/transfer.
//
// Stages are decided in order, working inwards from both ends of the schedule: how stage i runs says
// what its forward and its backward take. Before stage i there is a state (JointState). Then
// either i is saved, or a segment i..j runs and only its input is kept; its backward is an interval
// of Beaumont et al. 2019, Theorem 1, in the memory that is left, or in more, if it waits. The input
// stays or leaves.
//
// Bytes and times are exact but for the costs of segments' backwards, and for copies that might
// reach from one half of the schedule into the other. What comes out are proposals: the replay says
// what they are worth.
#ifndef STOWAGE_SOLVERS_TRANSFER_INTERNAL_JOINT_RECURRENCE_H_
#define STOWAGE_SOLVERS_TRANSFER_INTERNAL_JOINT_RECURRENCE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/chain.h"
#include "solvers/model/transfer_model.h"
#include "solvers/model/units.h"
#include "solvers/schedule/schedule.h"
#include "solvers/solver.h"
#include "solvers/transfer/internal/segment_costs.h"

namespace stowage {

// Stages that run, save nothing and run again before their backwards: only the input of the first
// is kept. The last one may be saved instead; if it is the only one, that is all.
struct OutlinePart {
  int first = 0;
  int last = 0;
  bool saved = false;  // the last stage is
  // For the second run of the others and their backwards (SegmentCosts).
  Bytes memory;
  // The part's input, what the part before it saved or else a^{first-1}, goes to the host.
  bool input_on_host = false;

  friend bool operator==(const OutlinePart& a, const OutlinePart& b) {
    return a.first == b.first && a.last == b.last && a.saved == b.saved && a.memory == b.memory &&
           a.input_on_host == b.input_on_host;
  }
};

// The parts' stages follow one another, 1..L+1. The last part is the loss, saved.
using Outline = std::vector<OutlinePart>;

// Segments run in their memory, which are at least their least ones. O(L^2).
Schedule ComputeScheduleOf(const Outline& outline, const SegmentCosts& costs);

// What the schedule recomputes, ns. O(parts), of a few steps each.
double RecomputeTimeOf(const Outline& outline, const SegmentCosts& costs);

// An outline that begins as the schedule does up to its first backward, each part with all the memory
// that is of use to it; nothing if there is none. O(L).
std::optional<Outline> OutlineOf(const Schedule& schedule, const SegmentCosts& costs);

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
                                                     const SolveContext& context);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_TRANSFER_INTERNAL_JOINT_RECURRENCE_H_
