// The optimum when copies can be interrupted but activations move as a whole (Problem 2 of Beaumont
// et al. 2020), and the sets that have it: exactly, or in slots of memory. Latencies are left to
// the replay.
#ifndef STOWAGE_SOLVERS_TRANSFER_INTERNAL_RELAXED_OPTIMUM_H_
#define STOWAGE_SOLVERS_TRANSFER_INTERNAL_RELAXED_OPTIMUM_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/solver.h"
#include "solvers/transfer/offload_problem.h"

namespace stowage {

struct RelaxedOptimum {
  std::vector<OffloadSet>
      sets;                 // of the least idle time, at most kMaxRelaxedSets; none: nothing fits
  Nanos makespan;           // rounded up
  int64_t slots = 0;        // 0: exact
  int passes = 0;           // of slots: solutions of the recurrence
  int64_t comparisons = 0;  // of states, in all passes
};

inline constexpr size_t kMaxRelaxedSets = 64;

// In bytes and fractions of nanoseconds. Nothing where an op needs more than some thousand states,
// or all ops more than 2^30 comparisons of states, or where bandwidths and sizes are too odd and
// large for 127-bit integers; otherwise complete: no sets means that none exists. On a half-duplex
// link the makespan is a lower bound of all schedules that recompute nothing and copy these tensors
// whole. CANCELLED, DEADLINE_EXCEEDED.
absl::StatusOr<std::optional<RelaxedOptimum>> ExactRelaxedOptimum(const OffloadProblem& problem,
                                                                  const SolveContext& context);

// The makespan of one set, rounded up, when copies can be interrupted. Nothing if it does not fit,
// or where bandwidths and sizes are too odd. O(n).
std::optional<Nanos> ExactRelaxedMakespan(const OffloadProblem& problem, const OffloadSet& set);

// With memory in `slots` slots: needs rounded up; what the link moves during ops, and activations,
// rounded as partial sums, down and up. Where no set found fits in bytes, the activation that is
// rounded down most is rounded up instead, and all is solved again (section 5.3.2 there); after
// MostSingleRaises(n) passes twice as many activations each time, which leaves O(log n) passes. Of
// an op the sqrt(2^27 / n) most promising states are kept, in all passes but the first a quarter of
// them: at most some 2^28 comparisons of states, and a sixteenth of that for each further pass. No
// sets: rounding leaves none. The makespan is that of the slots. Errors as above.
absl::StatusOr<RelaxedOptimum> SlottedRelaxedOptimum(const OffloadProblem& problem, int64_t slots,
                                                     const SolveContext& context);

// Passes of SlottedRelaxedOptimum that raise one activation, of n ops: all where n < 64.
constexpr int MostSingleRaises(int n) { return 4096 / std::max(n, 1); }

// The optimum when copies can be interrupted and any part of an activation may leave (Beaumont et
// al. 2020, Problem 3): by their Theorem 2, the first bytes, as many as the peak is beyond the
// memory. A lower bound for schedules of whole activations, stronger than what the link takes.
// The makespan, rounded up; latencies are left out. On a half-duplex link no schedule is faster that
// recomputes nothing and moves all that a stage saves at once. (Single tensors may leave before the
// next stage has read its input.) Nothing where nothing fits, or where bandwidths and sizes are too
// odd and large for 127-bit integers. O(n).
std::optional<Nanos> FractionalOptimum(const OffloadProblem& problem);

// The problem in which `on_host[i]` bytes of activation i may leave, for i in 0..n-1, and the rest
// stays; and the set of all these parts. Internal to the optimum and its test.
struct PartialOffload {
  OffloadProblem problem;
  OffloadSet set;
};
absl::StatusOr<PartialOffload> OffloadParts(const OffloadProblem& problem,
                                            const std::vector<Bytes>& on_host);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_TRANSFER_INTERNAL_RELAXED_OPTIMUM_H_
