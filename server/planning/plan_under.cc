#include "server/planning/plan_under.h"

#include <algorithm>

#include "solvers/plan/problem_referee.h"

namespace stowage {
namespace {

// Both problems are of the same kind and size.
template <class Same>
bool AllSteps(const Problem& a, const Problem& b, Same same) {
  if (const Graph* x = std::get_if<Graph>(&a)) {
    const Graph* y = std::get_if<Graph>(&b);
    if (y == nullptr || x->size() != y->size()) return false;
    for (int p = 0; p < x->size(); ++p) {
      if (!same(x->vertex(p), y->vertex(p))) return false;
    }
    return true;
  }
  const Chain& x = std::get<Chain>(a);
  const Chain* y = std::get_if<Chain>(&b);
  if (y == nullptr || x.length() != y->length()) return false;
  for (int l = 1; l <= x.length() + 1; ++l) {
    if (!same(x.stage(l), y->stage(l))) return false;
  }
  return true;
}

}  // namespace

bool SameOverheads(const Problem& a, const Problem& b) {
  return AllSteps(a, b, [](const auto& x, const auto& y) {
    return x.forward_saving_overhead == y.forward_saving_overhead &&
           x.forward_overhead == y.forward_overhead && x.backward_overhead == y.backward_overhead;
  });
}

bool SameTimes(const Problem& a, const Problem& b) {
  return AllSteps(a, b, [](const auto& x, const auto& y) {
    return x.forward_time == y.forward_time && x.backward_time == y.backward_time;
  });
}

bool OverheadsAtLeast(const Problem& a, const Problem& b) {
  return AllSteps(a, b, [](const auto& x, const auto& y) {
    return x.forward_saving_overhead >= y.forward_saving_overhead &&
           x.forward_overhead >= y.forward_overhead && x.backward_overhead >= y.backward_overhead;
  });
}

std::optional<Plan> PlanUnder(const Problem& caller, const Simulation& store_all,
                              const Problem& reference, const Plan& plan, Bytes budget) {
  const bool same_overheads = SameOverheads(caller, reference);
  const bool same_costs = same_overheads && SameTimes(caller, reference);
  if (plan.status == PlanStatus::kProvenInfeasible && !same_overheads) return std::nullopt;
  if (plan.status == PlanStatus::kNotFound && !same_costs) return std::nullopt;
  Plan judged = plan;
  judged.budget = budget;
  judged.bounds.store_all_makespan = store_all.makespan;
  judged.bounds.store_all_peak = store_all.peak;
  if (!same_overheads) judged.bounds.least_budget = Bytes(0);
  bool recomputes = false;
  if (plan.status == PlanStatus::kFound) {
    const absl::StatusOr<Simulation> simulation = Simulate(caller, plan.schedule);
    if (!simulation.ok() || simulation->peak > budget) return std::nullopt;
    judged.prediction = *simulation;
    recomputes = simulation->recomputed_forwards > 0;
    if (recomputes && !same_overheads && store_all.peak <= budget) return std::nullopt;
  }
  judged.bounds.lower_bound = MakespanLowerBound(caller, budget);
  if (same_costs && budget <= plan.budget) {
    judged.bounds.lower_bound = std::max(judged.bounds.lower_bound, plan.bounds.lower_bound);
  }
  // What was optimal under other costs need not be under these, unless nothing is recomputed.
  if (recomputes && !same_costs) judged.bounds.proven_optimal = false;
  return judged;
}

}  // namespace stowage
