// From the timeline of an offloaded set back to a schedule: a compute schedule with its copies.
#ifndef STOWAGE_SOLVERS_OFFLOAD_WITH_TRANSFERS_H_
#define STOWAGE_SOLVERS_OFFLOAD_WITH_TRANSFERS_H_

#include "solvers/offload/compute_trace.h"
#include "solvers/offload/timeline.h"
#include "solvers/offload/trace_problem.h"
#include "solvers/plan/schedule.h"

namespace stowage {

// `compute`, of which `trace` is, with the copies of `timeline`, a replay of a set of `problem`.
// Offloads start as soon as their tensor is made; the wait, which frees it, comes before the first
// step that the timeline starts at the copy's end or later. Prefetches start before the step during
// which the timeline starts them: a step takes the same memory from its start to its end. The
// referee accepts the result; its peak is within the problem's memory, and it takes no longer than
// the timeline, except where the last offload ends, and a prefetch starts, within one and the same
// step: the prefetch then waits for the end of that step. A tensor of several parts goes in as many
// copies, each with a latency of its own, which the timeline does not know. O(steps + copies log
// copies).
Schedule WithTransfers(const Schedule& compute, const ComputeTrace& trace,
                       const TraceProblem& problem, const OffloadTimeline& timeline);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_OFFLOAD_WITH_TRANSFERS_H_
