#include "solvers/transfer/internal/incumbent.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "solvers/transfer/internal/trace_problem.h"
#include "solvers/transfer/internal/transfer_overlap.h"
#include "solvers/transfer/offload_problem.h"
#include "solvers/transfer/strategies.h"

namespace stowage {
namespace {

// The activations of the tensors named; more of the first ones until every op fits.
OffloadSet SetOf(const ComputeTrace& trace, const TraceProblem& problem,
                 const std::vector<TensorName>& on_host) {
  const OffloadProblem& offload = problem.problem;
  OffloadSet set;
  for (int i = 0; i < offload.size(); ++i) {
    const int t = problem.tensor[static_cast<size_t>(i)];
    if (t < 0) continue;
    const ComputeTrace::Tensor& tensor = trace.tensors[static_cast<size_t>(t)];
    const bool named =
        std::any_of(on_host.begin(), on_host.end(), [&tensor](const TensorName& name) {
          return name.kind == tensor.kind && name.stage == tensor.stage;
        });
    if (named) set.push_back(i);
  }
  for (int i = 0; i < offload.size() && !offload.Admits(set); ++i) {
    if (offload.activation(i) == Bytes(0)) continue;
    const auto at = std::lower_bound(set.begin(), set.end(), i);
    if (at == set.end() || *at != i) set.insert(at, i);
  }
  return set;
}

}  // namespace

absl::Status Incumbent::Offer(const Schedule& schedule, const std::string& explanation) {
  const absl::StatusOr<Simulation> simulation = evaluator_.Run(schedule);
  if (!simulation.ok()) {
    return absl::InternalError(
        absl::StrCat("the evaluator refused a schedule: ", simulation.status().message()));
  }
  best_.Offer(schedule, simulation->peak, simulation->makespan, explanation);
  if (all_ != nullptr) all_->Offer(schedule, simulation->peak, simulation->makespan, explanation);
  return absl::OkStatus();
}

absl::Status Incumbent::OverlapBest(const StopToken* stop) {
  if (!found()) return absl::OkStatus();
  return Offer(OverlapTransfers(instance(), schedule(), memory(), stop), explanation());
}

bool Incumbent::MayBeFaster(Nanos time, Bytes peak) const {
  if (time >= makespan()) return false;
  const Bytes overflow = std::max(peak - memory(), Bytes(0));
  if (overflow == Bytes(0)) return true;
  // Each copy may take all that times can say: their sum is not made.
  const Nanos there = CopyTime(link().to_host, overflow);
  return there < makespan() && CopyTime(link().to_device, overflow) < makespan() - there;
}

absl::StatusOr<std::optional<Incumbent::Problem>> Incumbent::ProblemOf(
    const Schedule& compute, Granularity granularity) const {
  absl::StatusOr<ComputeTrace> trace = TraceOf(instance(), compute, granularity);
  if (!trace.ok()) return absl::InternalError(trace.status().message());
  Nanos time;
  Bytes peak;
  for (const ComputeTrace::Step& step : trace->steps) {
    time += step.time;
    peak = std::max(peak, step.need);
  }
  if (!MayBeFaster(time, peak)) return std::nullopt;
  absl::StatusOr<TraceProblem> offload = MakeTraceProblem(*trace, link(), memory());
  if (!offload.ok()) return std::nullopt;  // copies take longer than times can say
  return Problem{*std::move(trace), *std::move(offload)};
}

absl::Status Incumbent::OfferTimeline(const Schedule& compute, const Problem& problem,
                                      const OffloadTimeline& timeline,
                                      const std::string& explanation) {
  if (timeline.makespan >= makespan()) return absl::OkStatus();
  return Offer(WithTransfers(compute, problem.trace, problem.offload, timeline), explanation);
}

absl::StatusOr<std::optional<Nanos>> Incumbent::OfferQuickly(const Schedule& compute,
                                                             const std::vector<TensorName>& on_host,
                                                             const std::string& explanation) {
  const absl::StatusOr<std::optional<Problem>> problem = ProblemOf(compute, Granularity::kWhole);
  if (!problem.ok()) return problem.status();
  if (!problem->has_value()) return std::nullopt;
  const OffloadProblem& offload = (*problem)->offload.problem;
  std::optional<OffloadTimeline> best;
  const auto consider = [&](const OffloadSet& set) {
    std::optional<OffloadTimeline> timeline = ReplaySet(offload, set);
    if (timeline && (!best || timeline->makespan < best->makespan)) best = std::move(timeline);
  };
  if (offload.overflow_bytes() == Bytes(0)) {
    consider({});
  } else if (offload.memory() >= offload.least_memory()) {
    consider(EagerSet(offload));
    if (!on_host.empty()) consider(SetOf((*problem)->trace, (*problem)->offload, on_host));
  }
  if (!best) return std::nullopt;
  absl::Status status = OfferTimeline(compute, **problem, *best, explanation);
  if (!status.ok()) return status;
  return best->makespan;
}

absl::Status Incumbent::OfferThoroughly(const Schedule& compute, const SolveContext& context,
                                        const std::string& explanation) {
  for (const Granularity granularity : {Granularity::kWhole, Granularity::kParts}) {
    if (granularity == Granularity::kParts && !has_parts_) break;
    absl::Status status = OfferDynProg(compute, granularity, context, explanation);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Incumbent::OfferDynProg(const Schedule& compute, Granularity granularity,
                                     const SolveContext& context, const std::string& explanation) {
  const absl::StatusOr<std::optional<Problem>> problem = ProblemOf(compute, granularity);
  if (!problem.ok() || !problem->has_value()) return problem.status();
  const SolveContext quiet = context.Quiet();
  const absl::StatusOr<OffloadPlan> plan =
      DynProgOffload().Solve((*problem)->offload.problem, quiet);
  if (!plan.ok()) return plan.status();
  if (plan->status != PlanStatus::kFound) return absl::OkStatus();
  return OfferTimeline(compute, **problem, plan->timeline, explanation);
}

}  // namespace stowage
