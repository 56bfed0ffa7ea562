#include "server/planning/plan_under.h"

#include <algorithm>

#include "solvers/model/transfer_model.h"

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

bool SameOverheads(const Problem& a, const Problem& b) {
  return AllSteps(a, b, [](const auto& x, const auto& y) {
    return x.forward_saving_overhead == y.forward_saving_overhead &&
           x.forward_overhead == y.forward_overhead && x.backward_overhead == y.backward_overhead;
  });
}

bool OverheadsAtLeast(const Problem& a, const Problem& b) {
  return AllSteps(a, b, [](const auto& x, const auto& y) {
    return x.forward_saving_overhead >= y.forward_saving_overhead &&
           x.forward_overhead >= y.forward_overhead && x.backward_overhead >= y.backward_overhead;
  });
}

bool SameTimes(const Problem& a, const Problem& b) {
  return AllSteps(a, b, [](const auto& x, const auto& y) {
    return x.forward_time == y.forward_time && x.backward_time == y.backward_time;
  });
}

bool SameCost(const CopyCost& a, const CopyCost& b) {
  return a.bytes_per_second == b.bytes_per_second && a.latency == b.latency;
}

bool SameLink(const LinkedProblem& a, const LinkedProblem& b) {
  if (!a.transfers || !b.transfers) return !a.transfers && !b.transfers;
  return SameCost(a.transfers->to_host, b.transfers->to_host) &&
         SameCost(a.transfers->to_device, b.transfers->to_device) &&
         a.transfers->full_duplex == b.transfers->full_duplex &&
         a.transfers->host_memory == b.transfers->host_memory;
}

// Of what steps save, or make.
Bytes MeanTensor(const Problem& problem) {
  Bytes sum;
  int count = 0;
  if (const Graph* graph = std::get_if<Graph>(&problem)) {
    for (count = 0; count < graph->size(); ++count) sum += graph->vertex(count).output;
  } else {
    const Chain& chain = std::get<Chain>(problem);
    for (count = 0; count <= chain.length(); ++count) sum += chain.stage(count + 1).saved;
  }
  return Bytes(sum.value() / std::max(count, 1) + 1);
}

// Measured links are noisy; beyond this ratio of the times that a copy takes they are others.
bool AlikeCost(const CopyCost& a, const CopyCost& b, Bytes bytes) {
  constexpr int64_t kMostRatio = 2;
  const Nanos x = CopyTime(a, bytes), y = CopyTime(b, bytes);
  return std::max(x, y).value() / kMostRatio <= std::min(x, y).value();
}

// Both have links; equal sizes.
bool AlikeLink(const LinkedProblem& a, const LinkedProblem& b) {
  const Bytes bytes = MeanTensor(a.problem);
  return AlikeCost(a.transfers->to_host, b.transfers->to_host, bytes) &&
         AlikeCost(a.transfers->to_device, b.transfers->to_device, bytes);
}

// Whether what is good with the reference's link, or without one, is so for the caller. Without a
// link of its own a caller may take what does not use the reference's.
bool LinkServes(const LinkedProblem& caller, const LinkedProblem& reference) {
  if (!caller.transfers) return true;
  return reference.transfers && AlikeLink(caller, reference);
}

bool IsPlain(const Simulation& simulation) {
  return simulation.recomputed_forwards == 0 && simulation.sent == Bytes(0);
}

}  // namespace

bool SameMemory(const LinkedProblem& a, const LinkedProblem& b) {
  if (!SameOverheads(a.problem, b.problem)) return false;
  if (!a.transfers || !b.transfers) return !a.transfers && !b.transfers;
  return a.transfers->host_memory == b.transfers->host_memory;
}

bool HoldsForMore(const LinkedProblem& a, const LinkedProblem& b) {
  if (!OverheadsAtLeast(a.problem, b.problem)) return false;
  if (!b.transfers) return true;
  return a.transfers && AlikeLink(a, b);
}

std::optional<Plan> PlanUnder(const LinkedProblem& caller, const Simulation& store_all,
                              const LinkedProblem& reference, const Plan& plan, Bytes budget) {
  const bool same_overheads = SameOverheads(caller.problem, reference.problem);
  const bool same_memory = SameMemory(caller, reference);
  const bool same_costs =
      same_memory && SameTimes(caller.problem, reference.problem) && SameLink(caller, reference);
  if (plan.status == PlanStatus::kProvenInfeasible && !same_memory) return std::nullopt;
  if (plan.status == PlanStatus::kNotFound && !same_costs) return std::nullopt;
  Plan judged = plan;
  judged.budget = budget;
  judged.bounds.store_all_makespan = store_all.makespan;
  judged.bounds.store_all_peak = store_all.peak;
  if (!same_memory) judged.bounds.least_budget = Bytes(0);
  bool plain = true;
  if (plan.status == PlanStatus::kFound) {
    const absl::StatusOr<Simulation> simulation = Simulate(caller, plan.schedule);
    if (!simulation.ok() || simulation->peak > budget) return std::nullopt;
    judged.prediction = *simulation;
    plain = IsPlain(*simulation);
    if (!plain && !same_overheads && store_all.peak <= budget) return std::nullopt;
    if (!plain && !LinkServes(caller, reference)) return std::nullopt;
  }
  judged.bounds.lower_bound = MakespanLowerBound(caller, budget);
  if (same_costs && budget <= plan.budget) {
    judged.bounds.lower_bound = std::max(judged.bounds.lower_bound, plan.bounds.lower_bound);
  }
  // What was optimal under other costs need not be under these, unless it is plain training.
  if (!plain && !same_costs) judged.bounds.proven_optimal = false;
  return judged;
}

}  // namespace stowage
