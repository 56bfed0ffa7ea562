// Makes a chain schedule with transfers faster within the same memory: its copies run beside more of
// the compute instructions, which keep their order.
#ifndef STOWAGE_SOLVERS_TRANSFER_INTERNAL_TRANSFER_OVERLAP_H_
#define STOWAGE_SOLVERS_TRANSFER_INTERNAL_TRANSFER_OVERLAP_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/transfer_model.h"
#include "solvers/model/units.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/schedule.h"
#include "solvers/solver.h"

namespace stowage {

// A schedule that is at least as fast by the evaluator, with a peak of at most `memory`: `schedule` itself if nothing
// faster is found, or if it is not valid, does not fit or communicates beside compute. It has the forwards, backwards
// and drops of saved tensors of `schedule` in their order, and its copies, of whole tensors and of parts, where they are of use:
// - offloads start when their tensor is made, or is read no more, and end when their memory is needed; prefetches start
//   as early as memory allows or as late as does no harm, and end before the first that reads the tensor;
// - a tensor stays that has memory all the time;
// - a plain output is discarded, not offloaded, where saved tensors hold the same when it is read; so is what never
//   comes back.
// A stop by request ends it within some milliseconds, with what it has. A deadline that passes, or has passed, leaves
// it some 20 ms for a few more changes. Deterministic but for a stop, thread-safe. O(n log n) for n instructions and
// some 2^20 instructions of changes looked at, times what is on the host at a time.
Schedule OverlapTransfers(const Instance& instance, const Schedule& schedule, Bytes memory,
                          const StopToken* stop);

// The copies of a chain schedule as transfers of tensors: what of their times the compute
// instructions settle, and what is free. Times are gaps: gap g is before compute instruction g, the
// last one after all of them. Compute instructions are all that are not transfers.
// An offload, and the prefetch that brings the tensor back, if any does. In gaps:
//   made <= offload start;  free_from <= offload wait <= on_host_by
//   back_from <= prefetch wait <= back_by
struct TensorTransfer {
  Instruction tensor;  // its kind, stage and part
  Bytes bytes;
  std::vector<size_t> copies;  // its instructions in the schedule, in order
  std::vector<int> after;      // the transfers that have to be over before this one starts
  int made = 0;
  int free_from = 0;  // after the last that reads it before it has left
  int on_host_by;     // before the first that finds it on the host and would drop it otherwise
  int back_from = 0;  // after the last such
  int back_by;  // before the first that reads it; beyond the last gap if it does not come back
  int dropped;  // the instruction that drops it on the host; beyond all if none does
  bool returns = false;
};

struct TransferSet {
  Schedule compute;
  std::vector<Nanos> time;  // of each compute instruction
  std::vector<Bytes>
      need;  // while it runs and after it, if all are on the host for as long as can be
  std::vector<TensorTransfer> transfers;  // in the order of their offload starts
};

// INVALID_ARGUMENT as Simulate, and if part of the schedule communicates beside compute. O(instructions + stages + parts).
absl::StatusOr<TransferSet> FindTransfers(const Instance& instance, const Schedule& schedule);

enum class OffloadRule {
  kSoon,  // as soon as the tensor is made
  kLate,  // when nothing reads it any more
};

enum class PrefetchRule {
  kInOrder,         // as early as there is memory, but none before one that is needed sooner
  kAsMemoryAllows,  // as early as there is memory
  kJustInTime,  // as late as the link allows, where there is memory then; else as soon as there is
};

struct OverlapRules {
  OffloadRule offload;
  PrefetchRule prefetch;
};

// Places the copies of given transfers anew, in one run through the compute instructions.
//
// Tensors that left are dropped when their copies have ended, or when an instruction needs the memory:
// then compute waits for them, first come first. A prefetch may start early where the memory
// suffices for it all the time until its tensor is read, whatever else has to be here.
//
// `stays[t]`: transfer t is not made, its tensor stays on the device; `transfers.need` includes it then.
// Nothing where the memories do not suffice this way. The evaluator has the last word on what comes
// out. O(instructions + transfers), times what is on the host or on its way at a time.
std::optional<Schedule> ReplayTransfers(const TransferSet& transfers,
                                        const std::vector<bool>& stays, const TransferModel& link,
                                        Bytes memory, OverlapRules rules);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_TRANSFER_INTERNAL_TRANSFER_OVERLAP_H_
