// Makes a chain schedule with transfers faster within the same memory: its copies run beside more of
// the compute instructions, which keep their order.
#ifndef STOWAGE_SOLVERS_OFFLOAD_LOOSEN_H_
#define STOWAGE_SOLVERS_OFFLOAD_LOOSEN_H_

#include "solvers/model/chain.h"
#include "solvers/model/transfer_model.h"
#include "solvers/plan/schedule.h"

namespace stowage {

// A schedule with the same compute instructions that is at least as fast by Simulate, with a peak of
// at most `memory`: `schedule` itself if nothing faster is found, or if it is not valid or does not
// fit. The copies are those of `schedule`, of whole tensors and of parts, but for round trips that
// need not be: where the memory holds the tensor all the time, it stays if that is faster. Offloads
// start when their tensor is made and end when its room is needed; prefetches start as early as
// their room allows or as late as does no harm, and end before the first that reads the tensor.
//
// Deterministic, thread-safe. O(n^2) for n instructions.
Schedule Loosen(const Chain& chain, const Schedule& schedule, const TransferModel& transfers,
                Bytes memory);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_OFFLOAD_LOOSEN_H_
