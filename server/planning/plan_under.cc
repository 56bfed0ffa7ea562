#include "server/planning/plan_under.h"

namespace stowage {
namespace {

template <class Same>
bool AllStages(const Chain& a, const Chain& b, Same same) {
  if (a.length() != b.length()) return false;
  for (int l = 1; l <= a.length() + 1; ++l) {
    if (!same(a.stage(l), b.stage(l))) return false;
  }
  return true;
}

}  // namespace

bool SameOverheads(const Chain& a, const Chain& b) {
  return AllStages(a, b, [](const Stage& x, const Stage& y) {
    return x.forward_saving_overhead == y.forward_saving_overhead &&
           x.forward_overhead == y.forward_overhead && x.backward_overhead == y.backward_overhead;
  });
}

bool SameTimes(const Chain& a, const Chain& b) {
  return AllStages(a, b, [](const Stage& x, const Stage& y) {
    return x.forward_time == y.forward_time && x.backward_time == y.backward_time;
  });
}

std::optional<Plan> PlanUnder(const Chain& caller, const Chain& reference, const Plan& plan,
                              Bytes budget) {
  const bool same_overheads = SameOverheads(caller, reference);
  if (plan.status != PlanStatus::kFound && !same_overheads) return std::nullopt;
  Plan judged = plan;
  judged.budget = budget;
  if (!Referee(caller, &judged).ok()) return std::nullopt;
  if (!same_overheads) judged.bounds.least_budget = Bytes(0);
  const bool same_costs = same_overheads && SameTimes(caller, reference);
  // What was optimal under other costs need not be under these, unless nothing is recomputed.
  if (!same_costs && judged.prediction.makespan != caller.ideal_time()) {
    judged.bounds.proven_optimal = false;
  }
  return judged;
}

}  // namespace stowage
