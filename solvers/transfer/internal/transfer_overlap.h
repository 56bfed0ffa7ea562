// Makes a chain schedule with transfers faster within the same memory: its copies run beside more of
// the compute instructions, which keep their order.
#ifndef STOWAGE_SOLVERS_TRANSFER_INTERNAL_TRANSFER_OVERLAP_H_
#define STOWAGE_SOLVERS_TRANSFER_INTERNAL_TRANSFER_OVERLAP_H_

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

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_TRANSFER_INTERNAL_TRANSFER_OVERLAP_H_
