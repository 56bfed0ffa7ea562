// Offloading for any compute schedule: a trace as an OffloadProblem, so that every
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

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/chain.h"
#include "solvers/model/transfer_model.h"
#include "solvers/model/units.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/schedule.h"
#include "solvers/transfer/offload_problem.h"

namespace stowage {

// The fastest schedule of an ordered set of activations to offload (Beaumont et al. 2020, Proposition 1), with whole
// copies (algorithms.md).
//
// Nothing if problem.Admits(set) does not hold. `set` is ascending, in 0..n-1. O(n log n).
std::optional<OffloadTimeline> ReplaySet(const OffloadProblem& problem, const OffloadSet& set);

// Which of a stage's saved tensors go to the host together, where they need not all go at once.
struct PartGroup {
  std::vector<int> parts;  // of the stage, ascending
  Bytes bytes;
};

// Neighbours in the order of saving, until a group has an eighth of what the stage saves, so that
// there are at most eight. What is less than a hundredth of an eighth is in none: it would cost a
// copy and stays on the device. The last part, which has the output, is a group of its own, the last
// one, and always there. Empty where the stage does not list its saved tensors. O(parts).
std::vector<PartGroup> PartGroupsOf(const Stage& stage);

// Whether any stage lists its saved tensors.
bool HasParts(const Chain& chain);

// A schedule without transfers, with whatever it recomputes, as transfers see it: what each
// instruction takes, and which tensors lie idle around the forward/backward boundary.
//
// Bytes, nanoseconds. Immutable by convention, hence safe to share between threads.
struct ComputeTrace {
  struct Step {
    Nanos time;
    Bytes need;  // device memory while it runs and after it, with nothing on the host
  };

  // Held from before the boundary to after it, and not read in between: it may be on the host.
  struct Tensor {
    TensorKind kind = TensorKind::kActivation;
    int stage = 0;
    Bytes bytes;
    int made = -1;      // the step that makes it, or writes it last; -1: held from the start
    int last_read = 0;  // the last step before the boundary that reads it; `made` if none does
    int next_read = 0;  // the first step from the boundary on that reads or drops it
    int dropped = 0;    // the step that drops it; the number of steps if none does
    std::vector<int> parts = {};  // of the stage (Stage::parts) that it is made of; empty: all
  };

  std::vector<Step> steps;      // one per instruction
  int first_backward = 0;       // a step: the boundary
  std::vector<Tensor> tensors;  // in the order in which they may leave: by last_read, then those
                                // that come back later first; only such as have bytes, and a step
                                // between the two reads
};

// What goes to the host at once.
enum class Granularity {
  kWhole,  // a plain activation, or all that a stage saves
  kParts,  // a plain activation, or a few of a stage's saved tensors (PartGroups)
};

// Of a schedule without copies; the link does not matter, nor, of a graph, the granularity. INVALID_ARGUMENT if the
// evaluator refuses the schedule, or part of it communicates beside compute. O(instructions + L log L + parts); of a
// graph, O(V log V + E + the inputs of all instructions).
absl::StatusOr<ComputeTrace> TraceOf(const Instance& instance, const Schedule& compute,
                                     Granularity granularity = Granularity::kWhole);

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
