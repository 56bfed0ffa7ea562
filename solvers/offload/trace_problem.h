// Offloading for any compute schedule: a trace (compute_trace.h) as an OffloadProblem, so that every
// strategy and the replay of sets serve schedules that recompute, of chains and of graphs.
//
// Op i of the problem stands for one step before the turn and one from the turn on, or for none in
// either half: steps are paired around the tensors that may leave, and filled up with ops that take
// nothing. Activation i is the tensor that forward op i is the last to read and backward op i the
// first to read again. Two things are more careful than need be:
//   - a copy to the host starts no sooner than the last step before the turn that reads the tensor;
//   - tensors come back in the opposite order, so that one which is read again early brings back
//     those that leave after it.
// The first is no loss on a chain, where the step after the one that makes a tensor reads it; and
// the second none for schedules whose checkpoints are a stack.
#ifndef STOWAGE_SOLVERS_OFFLOAD_TRACE_PROBLEM_H_
#define STOWAGE_SOLVERS_OFFLOAD_TRACE_PROBLEM_H_

#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/transfer_model.h"
#include "solvers/offload/compute_trace.h"
#include "solvers/offload/offload_problem.h"

namespace stowage {

struct TraceProblem {
  OffloadProblem problem;
  std::vector<int> tensor;         // by activation: index in the trace's tensors, or -1
  std::vector<int> forward_step;   // by op: step before the turn, or -1
  std::vector<int> backward_step;  // by op: step from the turn on, or -1
};

// The peak of the problem is the schedule's. Steps without time that take no more than the one
// before (in the second half: after) them are left out. INVALID_ARGUMENT as OffloadProblem::Create.
// O(steps).
absl::StatusOr<TraceProblem> MakeTraceProblem(const ComputeTrace& trace, const TransferModel& link,
                                              Bytes memory);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_OFFLOAD_TRACE_PROBLEM_H_
