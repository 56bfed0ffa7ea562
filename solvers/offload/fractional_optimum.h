// The optimum when copies can be interrupted and any part of an activation may leave (Beaumont et
// al. 2020, Problem 3): by their Theorem 2, the first bytes, as many as the peak is beyond the
// memory. A lower bound for schedules of whole activations, stronger than what the link takes.
#ifndef STOWAGE_SOLVERS_OFFLOAD_FRACTIONAL_OPTIMUM_H_
#define STOWAGE_SOLVERS_OFFLOAD_FRACTIONAL_OPTIMUM_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/offload/offload_problem.h"

namespace stowage {

// The makespan, rounded up; latencies are left out. On a half-duplex link no schedule is faster that
// recomputes nothing and moves all that a stage saves at once. (Single tensors may leave before the
// next stage has read its input.) Nothing where nothing fits, or where bandwidths and sizes are too
// odd and large for 127-bit integers. O(n).
std::optional<Nanos> FractionalOptimum(const OffloadProblem& problem);

// The problem in which `away[i]` bytes of activation i may leave, for i in 0..n-1, and the rest
// stays; and the set of all these parts. Internal to the optimum and its test.
struct PartialOffload {
  OffloadProblem problem;
  OffloadSet set;
};
absl::StatusOr<PartialOffload> OffloadParts(const OffloadProblem& problem,
                                            const std::vector<Bytes>& away);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_OFFLOAD_FRACTIONAL_OPTIMUM_H_
