#include "solvers/offload/offload_from.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/offload/trace_problem.h"
#include "solvers/offload/with_transfers.h"

namespace stowage {

absl::StatusOr<std::optional<TransferSchedule>> OffloadFrom(
    const Chain& chain, const Schedule& compute, const ComputeTrace& trace,
    const TransferModel& transfers, Bytes memory, const OffloadStrategy& strategy,
    const SolveOptions& options) {
  const absl::StatusOr<TraceProblem> problem = MakeTraceProblem(trace, transfers, memory);
  if (!problem.ok()) return problem.status();
  const absl::StatusOr<OffloadPlan> plan = strategy.Solve(problem->problem, options);
  if (!plan.ok()) return plan.status();
  if (plan->status != PlanStatus::kFound) return std::nullopt;
  TransferSchedule found;
  found.schedule = WithTransfers(compute, trace, *problem, plan->timeline);
  absl::StatusOr<Simulation> simulation = Simulate(chain, found.schedule, transfers);
  if (!simulation.ok() || simulation->peak > memory) {
    return absl::InternalError(absl::StrCat(
        "the referee refused a schedule with transfers: ",
        simulation.ok() ? "its peak is beyond the memory" : simulation.status().message()));
  }
  found.prediction = *simulation;
  return std::optional<TransferSchedule>(std::move(found));
}

absl::StatusOr<std::optional<TransferSchedule>> OffloadFrom(
    const Chain& chain, const Schedule& compute, const TransferModel& transfers, Bytes memory,
    const OffloadStrategy& strategy, const SolveOptions& options) {
  const absl::StatusOr<ComputeTrace> trace = TraceOf(chain, compute);
  if (!trace.ok()) return trace.status();
  return OffloadFrom(chain, compute, *trace, transfers, memory, strategy, options);
}

}  // namespace stowage
