// The least device memory of any schedule, whatever it recomputes and moves to the host, and a
// schedule that needs no more. Internal to solvers/transfer.
//
// Whatever is on the host, every stage has three time steps. Its input is held in each: the plain activation,
// or, where the stage before must not run again, what it saved: the part with the output, if the
// saved tensors are known one by one.
//   - its first forward, of either kind, beside the seed gradient;
//   - the forward that saves what its backward reads, beside some gradient of a later stage or its
//     own; of a stage that must not run again, the seed gradient;
//   - its backward, beside its own gradient.
// The schedule has nothing else on the device at these steps: it moves every tensor as soon as it
// is not needed, and waits for it. It is the slowest there is.
#ifndef STOWAGE_SOLVERS_TRANSFER_INTERNAL_PEAK_LOWER_BOUND_H_
#define STOWAGE_SOLVERS_TRANSFER_INTERNAL_PEAK_LOWER_BOUND_H_

#include "solvers/model/chain.h"
#include "solvers/schedule/schedule.h"

namespace stowage {

// No schedule that the evaluator accepts, with any link, has a smaller peak. O(L + parts).
Bytes PeakLowerBound(const Chain& chain);

// With that peak, where the host's memory is large enough for it. O(L + parts).
Schedule LeastScheduleOnHost(const Chain& chain);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_TRANSFER_INTERNAL_PEAK_LOWER_BOUND_H_
