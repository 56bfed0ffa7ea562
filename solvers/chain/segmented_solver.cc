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

// About what an encoded schedule of so many segments takes: each is a few runs of a few bytes.
int64_t EncodedBytes(size_t segments) { return 16 * (static_cast<int64_t>(segments) + 2); }

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
  std::vector<Candidate> best;
  std::vector<PointCost> costs;
  StopPoll poll(options.stop);
  for (const Candidate& c : *all) {
    if (!best.empty() && c.cost.makespan >= best.back().cost.makespan) continue;
    const SegmentEnds ends = Segments(chain, c.parameter);
    best.push_back(c);
    costs.push_back({c.cost.makespan, EncodedBytes(ends.size())});
    absl::Status status = poll.Spend(16 * static_cast<int64_t>(chain.length()));
    if (!status.ok()) return status;
  }
  // Schedules of long chains are large: only those are made that are kept.
  const std::vector<size_t> chosen = ChooseCompact(costs);
  FrontierBuilder builder(chain);
  for (const size_t i : chosen) {
    absl::Status status = builder.Add(SegmentedSchedule(chain, Segments(chain, best[i].parameter)));
    if (status.ok() && options.stop != nullptr) status = options.stop->Check();
    if (!status.ok()) return status;
  }
  return builder.BuildCompact({info().name, info().schedule_class, least,
                               /*exact=*/chosen.size() == best.size(), /*slots=*/0});
}

absl::StatusOr<Bytes> SegmentedSolver::LeastBudget(const Chain& chain,
                                                   const SolveOptions& options) const {
  const absl::StatusOr<std::vector<Candidate>> all = Candidates(chain, options);
  if (!all.ok()) return all.status();
  return LeastPeak(*all);
}

}  // namespace stowage
