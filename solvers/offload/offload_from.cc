#include "solvers/offload/offload_from.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/offload/compute_trace.h"
#include "solvers/offload/trace_problem.h"
#include "solvers/plan/graph_simulate.h"

namespace stowage {

namespace {

// `simulate` is the referee, of schedules with transfers.
template <class Simulate>
absl::StatusOr<std::optional<TransferSchedule>> OffloadWith(
    const Simulate& simulate, const Schedule& compute, const ComputeTrace& trace,
    const TransferModel& transfers, Bytes memory, const OffloadStrategy& strategy,
    const SolveOptions& options) {
  const absl::StatusOr<TraceProblem> problem = MakeTraceProblem(trace, transfers, memory);
  if (!problem.ok()) return problem.status();
  const absl::StatusOr<OffloadPlan> plan = strategy.Solve(problem->problem, options);
  if (!plan.ok()) return plan.status();
  if (plan->status != PlanStatus::kFound) return std::nullopt;
  TransferSchedule found;
  found.schedule = WithTransfers(compute, trace, *problem, plan->timeline);
  absl::StatusOr<Simulation> simulation = simulate(found.schedule);
  if (!simulation.ok() || simulation->peak > memory) {
    return absl::InternalError(absl::StrCat(
        "the referee refused a schedule with transfers: ",
        simulation.ok() ? "its peak is beyond the memory" : simulation.status().message()));
  }
  found.prediction = *simulation;
  return std::optional<TransferSchedule>(std::move(found));
}

}  // namespace

absl::StatusOr<std::optional<TransferSchedule>> OffloadFrom(
    const Chain& chain, const Schedule& compute, const ComputeTrace& trace,
    const TransferModel& transfers, Bytes memory, const OffloadStrategy& strategy,
    const SolveOptions& options) {
  return OffloadWith([&](const Schedule& s) { return Simulate(chain, s, transfers); }, compute,
                     trace, transfers, memory, strategy, options);
}

absl::StatusOr<std::optional<TransferSchedule>> OffloadFrom(
    const Chain& chain, const Schedule& compute, const TransferModel& transfers, Bytes memory,
    const OffloadStrategy& strategy, const SolveOptions& options) {
  std::optional<TransferSchedule> best;
  for (const Granularity granularity : {Granularity::kWhole, Granularity::kParts}) {
    if (granularity == Granularity::kParts && !HasParts(chain)) break;
    const absl::StatusOr<ComputeTrace> trace = TraceOf(chain, compute, granularity);
    if (!trace.ok()) return trace.status();
    absl::StatusOr<std::optional<TransferSchedule>> found =
        OffloadFrom(chain, compute, *trace, transfers, memory, strategy, options);
    if (!found.ok()) return found.status();
    if (!found->has_value()) continue;
    if (!best || (*found)->prediction.makespan < best->prediction.makespan)
      best = *std::move(found);
  }
  return best;
}

absl::StatusOr<std::optional<TransferSchedule>> OffloadFrom(
    const Graph& graph, const Schedule& compute, const ComputeTrace& trace,
    const TransferModel& transfers, Bytes memory, const OffloadStrategy& strategy,
    const SolveOptions& options) {
  return OffloadWith([&](const Schedule& s) { return SimulateGraph(graph, s, transfers); }, compute,
                     trace, transfers, memory, strategy, options);
}

absl::StatusOr<std::optional<TransferSchedule>> OffloadFrom(
    const Graph& graph, const Schedule& compute, const TransferModel& transfers, Bytes memory,
    const OffloadStrategy& strategy, const SolveOptions& options) {
  const absl::StatusOr<ComputeTrace> trace = TraceOf(graph, compute);
  if (!trace.ok()) return trace.status();
  return OffloadFrom(graph, compute, *trace, transfers, memory, strategy, options);
}

}  // namespace stowage
