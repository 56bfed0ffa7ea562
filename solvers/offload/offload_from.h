// The fastest way found to run a compute schedule within a memory that it does not fit in, by
// keeping tensors on the host around the turn from forwards to backwards.
#ifndef STOWAGE_SOLVERS_OFFLOAD_OFFLOAD_FROM_H_
#define STOWAGE_SOLVERS_OFFLOAD_OFFLOAD_FROM_H_

#include <optional>

#include "absl/status/statusor.h"
#include "solvers/model/chain.h"
#include "solvers/model/graph.h"
#include "solvers/model/transfer_model.h"
#include "solvers/offload/compute_trace.h"
#include "solvers/offload/strategies.h"
#include "solvers/plan/schedule.h"
#include "solvers/plan/simulate.h"
#include "solvers/solver.h"

namespace stowage {

struct TransferSchedule {
  Schedule schedule;
  Simulation prediction;  // the referee's; peak within the memory
};

// The set that `strategy` chooses for the trace's problem, as a schedule; without transfers if that
// fits. Nothing if the strategy finds no set. INVALID_ARGUMENT if the schedule is none, or has
// transfers, or as OffloadProblem::Create; CANCELLED, DEADLINE_EXCEEDED. Thread-safe. The first also
// takes a trace of `compute`, to be made once for many memories; the second has the faster of both
// granularities (Granularity, in compute_trace.h), of whole tensors if they are alike.
absl::StatusOr<std::optional<TransferSchedule>> OffloadFrom(
    const Chain& chain, const Schedule& compute, const ComputeTrace& trace,
    const TransferModel& transfers, Bytes memory, const OffloadStrategy& strategy,
    const SolveOptions& options);
absl::StatusOr<std::optional<TransferSchedule>> OffloadFrom(
    const Chain& chain, const Schedule& compute, const TransferModel& transfers, Bytes memory,
    const OffloadStrategy& strategy, const SolveOptions& options);
absl::StatusOr<std::optional<TransferSchedule>> OffloadFrom(
    const Graph& graph, const Schedule& compute, const ComputeTrace& trace,
    const TransferModel& transfers, Bytes memory, const OffloadStrategy& strategy,
    const SolveOptions& options);
absl::StatusOr<std::optional<TransferSchedule>> OffloadFrom(
    const Graph& graph, const Schedule& compute, const TransferModel& transfers, Bytes memory,
    const OffloadStrategy& strategy, const SolveOptions& options);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_OFFLOAD_OFFLOAD_FROM_H_
