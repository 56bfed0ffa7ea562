// Places the copies of given round trips anew, in one run through the compute instructions.
// Internal to loosen.h.
//
// Tensors that left are dropped when their copies have ended, or when an instruction needs the room:
// then compute waits for them, first come first. A prefetch may start early where the memory
// suffices for it all the time until its tensor is read, whatever else has to be here.
#ifndef STOWAGE_SOLVERS_OFFLOAD_TRIP_REPLAY_H_
#define STOWAGE_SOLVERS_OFFLOAD_TRIP_REPLAY_H_

#include <optional>
#include <vector>

#include "solvers/model/transfer_model.h"
#include "solvers/model/units.h"
#include "solvers/offload/copy_trips.h"
#include "solvers/plan/schedule.h"

namespace stowage {

enum class OffloadRule {
  kSoon,  // as soon as the tensor is made
  kLate,  // when nothing reads it any more
};

enum class PrefetchRule {
  kInOrder,       // as early as there is room, but none before one that is needed sooner
  kAsRoomAllows,  // as early as there is room
  kJustInTime,    // as late as the link allows, where there is room then; else as soon as there is
};

struct TripRules {
  OffloadRule offload;
  PrefetchRule prefetch;
};

// `stays[t]`: trip t is not made, its tensor stays on the device; `trips.need` includes it then.
// Nothing where the memories do not suffice this way. The referee has the last word on what comes
// out. O(instructions + trips), times what is on the host or on its way at a time.
std::optional<Schedule> ReplayTrips(const CopyTrips& trips, const std::vector<bool>& stays,
                                    const TransferModel& transfers, Bytes memory, TripRules rules);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_OFFLOAD_TRIP_REPLAY_H_
