// Offloading for any compute schedule: a trace (compute_trace.h) as an OffloadProblem, so that every
// strategy and the replay of sets serve schedules that recompute, of chains and of graphs.
//
// Op i of the problem stands for one step before the boundary and one from the boundary on, or for none in
// either half: steps are paired around the tensors that may leave, and filled up with ops that take
// nothing. Activation i is the tensor that forward op i is the last to read and backward op i the
// first to read again. Two things are more careful than need be:
//   - a copy to the host starts no sooner than the last step before the boundary that reads the tensor;
//   - tensors come back in the opposite order, so that one which is read again early brings back
//     those that leave after it.
// The first is no loss on a chain, where the step after the one that makes a tensor reads it; and
// the second none for schedules whose checkpoints are a stack.
#ifndef STOWAGE_SOLVERS_TRANSFER_INTERNAL_TRACE_PROBLEM_H_
#define STOWAGE_SOLVERS_TRANSFER_INTERNAL_TRACE_PROBLEM_H_

#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/transfer_model.h"
#include "solvers/schedule/schedule.h"
#include "solvers/transfer/internal/compute_trace.h"
#include "solvers/transfer/offload_problem.h"

namespace stowage {

struct TraceProblem {
  OffloadProblem problem;
  std::vector<int> tensor;         // by activation: index in the trace's tensors, or -1
  std::vector<int> forward_step;   // by op: step before the boundary, or -1
  std::vector<int> backward_step;  // by op: step from the boundary on, or -1
};

// The peak of the problem is the schedule's. Steps without time that take no more than the one
// before (in the second half: after) them are left out. INVALID_ARGUMENT as OffloadProblem::Create.
// O(steps).
absl::StatusOr<TraceProblem> MakeTraceProblem(const ComputeTrace& trace, const TransferModel& link,
                                              Bytes memory);

// From the timeline of an offloaded set back to a schedule: a compute schedule with its copies.

// `compute`, of which `trace` is, with the copies of `timeline`, a replay of a set of `problem`.
// Offloads start as soon as their tensor is made; the wait, which frees it, comes before the first
// step that the timeline starts at the copy's end or later. Prefetches start before the step during
// which the timeline starts them: a step takes the same memory from its start to its end. The
// evaluator accepts the result; its peak is within the problem's memory, and it takes no longer than
// the timeline, except where the last offload ends, and a prefetch starts, within one and the same
// step: the prefetch then waits for the end of that step. A tensor of several parts goes in as many
// copies, each with a latency of its own, which the timeline does not know. O(steps + copies log
// copies).
Schedule WithTransfers(const Schedule& compute, const ComputeTrace& trace,
                       const TraceProblem& problem, const OffloadTimeline& timeline);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_TRANSFER_INTERNAL_TRACE_PROBLEM_H_
