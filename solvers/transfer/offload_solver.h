// The fastest way found to run a compute schedule within a memory that it does not fit in, by
// keeping tensors on the host around the forward/backward boundary.
#ifndef STOWAGE_SOLVERS_TRANSFER_OFFLOAD_SOLVER_H_
#define STOWAGE_SOLVERS_TRANSFER_OFFLOAD_SOLVER_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/schedule.h"
#include "solvers/schedule/simulation.h"
#include "solvers/solver.h"
#include "solvers/transfer/compute_trace.h"
#include "solvers/transfer/strategies.h"

namespace stowage {

struct TransferSchedule {
  Schedule schedule;
  Simulation prediction;  // the evaluator's; peak within the memory
};

// The set that `strategy` chooses for the trace's problem, as a schedule of an instance with a link; without transfers
// if that fits. Nothing if the strategy finds no set. INVALID_ARGUMENT if the schedule is none, or has transfers, or as
// OffloadProblem::Create; CANCELLED, DEADLINE_EXCEEDED. Thread-safe. The first takes a trace of `compute`, to be made
// once for many memories; the second has, of a chain, the faster of both granularities (Granularity, in
// compute_trace.h), of whole tensors if they are alike.
absl::StatusOr<std::optional<TransferSchedule>> OffloadFrom(const Instance& instance,
                                                            const Schedule& compute,
                                                            const ComputeTrace& trace, Bytes memory,
                                                            const OffloadStrategy& strategy,
                                                            const SolveContext& context);
absl::StatusOr<std::optional<TransferSchedule>> OffloadFrom(const Instance& instance,
                                                            const Schedule& compute, Bytes memory,
                                                            const OffloadStrategy& strategy,
                                                            const SolveContext& context);

// The strategies of offloading as chain solvers: plain training within less memory, its activations
// moved to the host as the strategy says.
//
// The class recomputes nothing and copies all that a stage saves at once; without a link
// (Instance::link) only plain training is left of it. A schedule is PROVEN_INFEASIBLE
// where nothing of the class fits; with a link, and a host that has less memory than all that may
// leave, least_budget may then be less than what such a schedule fits in. Where the strategy finds
// nothing, or copies take longer than times can say, NOT_FOUND.
//
// Plans for one budget and frontiers are made of the strategy's schedules for 64 budgets, evenly spaced from the least
// budget on, so that more budget is never slower (algorithms.md).

// One for each of AllOffloadStrategies(), of the same name. Live as long as the process; stateless
// and thread-safe. LeastBudget takes one solve of the strategy where that finds something within what the
// class needs at least, else the logarithm of the range of budgets: some forty. Solve takes as many, and one for each
// of the 64 budgets that may be faster by their lower bounds; SolveFrontier as many and 64 more.
const std::vector<const Solver*>& OffloadSolvers();

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_TRANSFER_OFFLOAD_SOLVER_H_
