#include "tests/solvers/transfer/offload_from.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/transfer/internal/trace_problem.h"

namespace stowage::testing {

absl::StatusOr<OffloadProblem> MakeOffloadProblem(const Chain& chain, const TransferModel& link,
                                                  Bytes memory) {
  OffloadSpec spec;
  spec.link = link;
  spec.memory = memory;
  const int last = chain.length() + 1;
  spec.activations.push_back(chain.activation(0));
  for (int l = 1; l <= last; ++l) spec.activations.push_back(chain.stage(l).saved);
  for (int l = 1; l <= last; ++l) {
    const Stage& stage = chain.stage(l);
    OffloadOp op;
    op.forward_time = stage.forward_time;
    op.backward_time = stage.backward_time;
    op.forward_need = stage.forward_saving_overhead + chain.gradient(last);
    const Bytes dropped = stage.saved + (l == 1 ? chain.activation(0) : Bytes(0));
    op.backward_need =
        std::max(stage.backward_overhead + chain.gradient(l), chain.gradient(l - 1) - dropped);
    spec.ops.push_back(op);
  }
  return OffloadProblem::Create(std::move(spec));
}

absl::StatusOr<std::optional<TransferSchedule>> OffloadFrom(const Instance& instance,
                                                            const Schedule& compute,
                                                            const ComputeTrace& trace, Bytes memory,
                                                            const OffloadStrategy& strategy,
                                                            const SolveContext& context) {
  const absl::StatusOr<TraceProblem> problem = MakeTraceProblem(trace, *instance.link(), memory);
  if (!problem.ok()) return problem.status();
  const absl::StatusOr<OffloadPlan> plan = strategy.Solve(problem->problem, context);
  if (!plan.ok()) return plan.status();
  if (plan->status != PlanStatus::kFound) return std::nullopt;
  TransferSchedule found;
  found.schedule = WithTransfers(compute, trace, *problem, plan->timeline);
  absl::StatusOr<Simulation> simulation = Evaluator(instance).Run(found.schedule);
  if (!simulation.ok() || simulation->peak > memory) {
    return absl::InternalError(absl::StrCat(
        "the evaluator refused a schedule with transfers: ",
        simulation.ok() ? "its peak is beyond the memory" : simulation.status().message()));
  }
  found.prediction = *simulation;
  return std::optional<TransferSchedule>(std::move(found));
}

absl::StatusOr<std::optional<TransferSchedule>> OffloadFrom(const Instance& instance,
                                                            const Schedule& compute, Bytes memory,
                                                            const OffloadStrategy& strategy,
                                                            const SolveContext& context) {
  if (instance.is_graph()) {
    const absl::StatusOr<ComputeTrace> trace = TraceOf(instance, compute);
    if (!trace.ok()) return trace.status();
    return OffloadFrom(instance, compute, *trace, memory, strategy, context);
  }
  const Chain& chain = instance.chain();
  std::optional<TransferSchedule> best;
  for (const Granularity granularity : {Granularity::kWhole, Granularity::kParts}) {
    if (granularity == Granularity::kParts && !HasParts(chain)) break;
    const absl::StatusOr<ComputeTrace> trace = TraceOf(instance, compute, granularity);
    if (!trace.ok()) return trace.status();
    absl::StatusOr<std::optional<TransferSchedule>> found =
        OffloadFrom(instance, compute, *trace, memory, strategy, context);
    if (!found.ok()) return found.status();
    if (!found->has_value()) continue;
    if (!best || (*found)->prediction.makespan < best->prediction.makespan)
      best = *std::move(found);
  }
  return best;
}

}  // namespace stowage::testing
