#include "solvers/offload/offload_strategy.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/offload/fractional_optimum.h"
#include "solvers/offload/set_replay.h"

namespace stowage {

absl::StatusOr<OffloadPlan> OffloadStrategy::Solve(const OffloadProblem& problem,
                                                   const SolveOptions& options) const {
  absl::Status status = ValidateSolveOptions(options);
  if (status.ok() && options.stop != nullptr) status = options.stop->Check();
  if (!status.ok()) return status;
  OffloadPlan plan;
  plan.lower_bound = problem.LowerBound();
  if (problem.memory() >= problem.peak()) {
    Offer(problem, {}, &plan);
    plan.explanation = "everything fits: nothing is offloaded";
    return plan;
  }
  if (problem.memory() < problem.least_memory()) {
    plan.status = PlanStatus::kProvenInfeasible;
    plan.explanation = absl::StrCat("with all activations offloaded an op needs ",
                                    problem.least_memory().value(), " bytes");
    return plan;
  }
  if (problem.excess() > problem.link().host_memory) {
    plan.status = PlanStatus::kProvenInfeasible;
    plan.explanation = absl::StrCat("at least ", problem.excess().value(),
                                    " bytes must be offloaded, the host takes ",
                                    problem.link().host_memory.value());
    return plan;
  }
  if (!problem.link().full_duplex) {
    const std::optional<Nanos> fractional = FractionalOptimum(problem);
    if (fractional) plan.lower_bound = std::max(plan.lower_bound, *fractional);
  }
  status = SolveHard(problem, options, &plan);
  if (!status.ok()) return status;
  if (options.progress) options.progress(1.0);
  return plan;
}

void OffloadStrategy::Offer(const OffloadProblem& problem, const OffloadSet& set,
                            OffloadPlan* plan) {
  std::optional<OffloadTimeline> timeline = ReplaySet(problem, set);
  if (!timeline) return;
  if (plan->status == PlanStatus::kFound) {
    const OffloadTimeline& best = plan->timeline;
    if (std::tie(timeline->makespan, timeline->host_peak) >=
        std::tie(best.makespan, best.host_peak)) {
      return;
    }
  }
  plan->status = PlanStatus::kFound;
  plan->set = set;
  plan->timeline = *std::move(timeline);
}

}  // namespace stowage
