#include "solvers/chain/segmented_solver.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

// Faster; else less recomputed, where that takes no time; else of a lower peak.
bool Better(const SegmentedCost& a, const SegmentedCost& b) {
  return std::tie(a.makespan, a.recomputed_forwards, a.peak) <
         std::tie(b.makespan, b.recomputed_forwards, b.peak);
}

template <class Candidates>
Bytes LeastPeak(const Candidates& candidates) {
  Bytes least = candidates.front().cost.peak;
  for (const auto& c : candidates) least = std::min(least, c.cost.peak);
  return least;
}

}  // namespace

absl::StatusOr<Plan> SegmentedSolver::Solve(const Chain& chain, Bytes budget,
                                            const SolveOptions& options) const {
  const absl::StatusOr<std::vector<Candidate>> all = Candidates(chain, options);
  if (!all.ok()) return all.status();
  const Candidate* best = nullptr;
  for (const Candidate& c : *all) {
    if (c.cost.peak > budget) continue;
    if (best == nullptr || Better(c.cost, best->cost)) best = &c;
  }
  Plan plan;
  plan.bounds.schedule_class = info().schedule_class;
  plan.bounds.least_budget = LeastPeak(*all);
  if (best == nullptr) {
    plan.status = PlanStatus::kProvenInfeasible;
    plan.explanation = absl::StrCat("the least peak of ", info().schedule_class, " is ",
                                    plan.bounds.least_budget.value(), " bytes");
    return plan;
  }
  plan.status = PlanStatus::kFound;
  plan.schedule = SegmentedSchedule(chain, Segments(chain, best->parameter));
  plan.bounds.proven_optimal = true;
  plan.explanation = best->cost.recomputed_forwards == 0 ? "everything fits: nothing is recomputed"
                                                         : Describe(best->parameter);
  return plan;
}

absl::StatusOr<Frontier> SegmentedSolver::SolveFrontier(const Chain& chain,
                                                        const SolveOptions& options) const {
  absl::StatusOr<std::vector<Candidate>> all = Candidates(chain, options);
  if (!all.ok()) return all.status();
  const Bytes least = LeastPeak(*all);
  // In the order of peaks, only what is better than all before is worth replaying.
  std::sort(all->begin(), all->end(), [](const Candidate& a, const Candidate& b) {
    return a.cost.peak != b.cost.peak ? a.cost.peak < b.cost.peak : Better(a.cost, b.cost);
  });
  FrontierBuilder builder(chain);
  const Candidate* fastest = nullptr;
  for (const Candidate& c : *all) {
    if (fastest != nullptr && c.cost.makespan >= fastest->cost.makespan) continue;
    fastest = &c;
    absl::Status status = builder.Add(SegmentedSchedule(chain, Segments(chain, c.parameter)));
    if (!status.ok()) return status;
    if (options.stop != nullptr) status = options.stop->Check();
    if (!status.ok()) return status;
  }
  return builder.Build({info().name, info().schedule_class, least, /*exact=*/true, /*slots=*/0});
}

absl::StatusOr<Bytes> SegmentedSolver::LeastBudget(const Chain& chain,
                                                   const SolveOptions& options) const {
  const absl::StatusOr<std::vector<Candidate>> all = Candidates(chain, options);
  if (!all.ok()) return all.status();
  return LeastPeak(*all);
}

}  // namespace stowage
