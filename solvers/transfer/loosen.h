// The copies of a chain schedule as round trips of tensors: what of their times the compute
// instructions settle, and what is free. Internal to loosen.h.
//
// Times are gaps: gap g is before compute instruction g, the last one after all of them. Compute
// instructions are all that are not transfers.
#ifndef STOWAGE_SOLVERS_TRANSFER_LOOSEN_H_
#define STOWAGE_SOLVERS_TRANSFER_LOOSEN_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/chain.h"
#include "solvers/model/transfer_model.h"
#include "solvers/model/units.h"
#include "solvers/schedule/schedule.h"
#include "solvers/solver.h"

namespace stowage {

// An offload, and the prefetch that brings the tensor back, if any does. In gaps:
//   made <= offload start;  free_from <= offload wait <= away_by
//   back_from <= prefetch wait <= back_by
struct CopyTrip {
  Instruction tensor;  // its kind, stage and part
  Bytes bytes;
  std::vector<size_t> copies;  // its instructions in the schedule, in order
  std::vector<int> after;      // the trips that have to be over before this one starts
  int made = 0;
  int free_from = 0;  // after the last that reads it before it has left
  int away_by;        // before the first that finds it away and would drop it otherwise
  int back_from = 0;  // after the last such
  int back_by;  // before the first that reads it; beyond the last gap if it does not come back
  int dropped;  // the instruction that drops it on the host; beyond all if none does
  bool returns = false;
};

struct CopyTrips {
  Schedule compute;
  std::vector<Nanos> time;      // of each compute instruction
  std::vector<Bytes> need;      // while it runs and after it, if all are away for as long as can be
  std::vector<CopyTrip> trips;  // in the order of their offload starts
};

// INVALID_ARGUMENT as Simulate, and if part of the schedule communicates beside compute. O(instructions + stages + parts).
absl::StatusOr<CopyTrips> FindCopyTrips(const Instance& instance, const Schedule& schedule);

// Places the copies of given round trips anew, in one run through the compute instructions.
// Internal to loosen.h.
//
// Tensors that left are dropped when their copies have ended, or when an instruction needs the room:
// then compute waits for them, first come first. A prefetch may start early where the memory
// suffices for it all the time until its tensor is read, whatever else has to be here.

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
// Nothing where the memories do not suffice this way. The evaluator has the last word on what comes
// out. O(instructions + trips), times what is on the host or on its way at a time.
std::optional<Schedule> ReplayTrips(const CopyTrips& trips, const std::vector<bool>& stays,
                                    const TransferModel& transfers, Bytes memory, TripRules rules);

// Makes a chain schedule with transfers faster within the same memory: its copies run beside more of
// the compute instructions, which keep their order.

// A schedule that is at least as fast by Simulate, with a peak of at most `memory`: `schedule` itself
// if nothing faster is found, or if it is not valid, does not fit or communicates beside compute. It
// has the forwards, backwards
// and reduces of `schedule` in their order, and its copies, of whole tensors and of parts, where they
// are of use:
// - offloads start when their tensor is made, or when it is read no more, and end when its room is
//   needed; prefetches start as early as their room allows or as late as does no harm, and end before
//   the first that reads the tensor. Of several ways to say this the fastest is taken;
// - a tensor that has room all the time stays;
// - a plain output is discarded, instead of offloaded, where saved tensors hold the same when it is
//   read; so is what never comes back.
//
// A stop by request ends it within some milliseconds, with what it has. A deadline that passes, or
// has passed, leaves it some 20 ms for a few more changes.
//
// Deterministic but for a stop, thread-safe. O(n log n) for n instructions and some 2^20
// instructions of changes looked at, times what is on the host at a time.
Schedule Loosen(const Instance& instance, const Schedule& schedule, Bytes memory,
                const StopToken* stop);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_TRANSFER_LOOSEN_H_
