#include "solvers/graph/budget/compute_order.h"

#include <algorithm>
#include <cstddef>

#include "solvers/model/index.h"

namespace stowage {
namespace {}  // namespace

ComputeOrder StoreAllOrder(const OpGraph& graph) {
  ComputeOrder order;
  order.reserve(2 * Index(graph.size()));
  for (int v = 0; v < graph.size(); ++v) order.push_back({v, false});
  for (int v = graph.size(); v-- > 0;) order.push_back({v, true});
  return order;
}

bool KeepsGradientSums(const OpGraph& graph, const ComputeOrder& order) {
  std::vector<bool> ran(static_cast<size_t>(graph.size()), false);
  for (const Compute& c : order) {
    if (!c.backward) continue;
    const absl::Span<const int> before = graph.sums().Before(c.vertex);
    const auto has_run = [&](int u) { return ran[static_cast<size_t>(u)]; };
    if (!std::all_of(before.begin(), before.end(), has_run)) return false;
    ran[static_cast<size_t>(c.vertex)] = true;
  }
  return true;
}

Schedule ToSchedule(const ComputeOrder& order) {
  Schedule schedule;
  schedule.reserve(order.size());
  for (const Compute& c : order) {
    const int stage = c.vertex + 1;
    schedule.push_back(c.backward      ? Backward(stage)
                       : c.extras_stay ? ForwardKeepInput(stage)
                                       : ForwardKeepAll(stage));
  }
  return schedule;
}

OrderEvaluator::OrderEvaluator(const OpGraph& graph) : graph_(graph) {
  const size_t size = Index(graph.size());
  next_use_.resize(size);
  extra_use_.resize(size);
  last_use_.resize(size);
  runs_.resize(size);
  live_.resize(size);
  has_gradient_.resize(size);
}

OrderCost OrderEvaluator::Evaluate(const ComputeOrder& order, int64_t target) {
  return Run<false>(order, target, nullptr);
}

OrderCost OrderEvaluator::EvaluateWithProfile(const ComputeOrder& order, int64_t target,
                                              OrderProfile* profile) {
  // Indices are those of the order that is left when what is not run has gone.
  Run<false>(order, target, nullptr);
  profile->order.clear();
  for (size_t i = 0; i < order.size(); ++i) {
    if (!dead_[i]) profile->order.push_back(order[i]);
  }
  return Run<true>(profile->order, target, profile);
}

void OrderEvaluator::Prepare(const ComputeOrder& order) {
  std::fill(next_use_.begin(), next_use_.end(), kNoIndex);
  std::fill(extra_use_.begin(), extra_use_.end(), kNoIndex);
  std::fill(runs_.begin(), runs_.end(), 0);
  live_.assign(live_.size(), false);
  has_gradient_.assign(has_gradient_.size(), false);
  new_gradients_.assign(order.size(), 0);
  dead_.assign(order.size(), false);
  first_backward_ = kNoIndex;
  for (size_t i = 0; i < order.size(); ++i) {
    const Compute& c = order[i];
    if (!c.backward) {
      ++runs_[Index(c.vertex)];
      continue;
    }
    if (first_backward_ == kNoIndex) {
      first_backward_ = static_cast<int>(i);
      new_gradients_[i] += graph_.seed_gradients();
    }
    for (const OpGraph::Input& input : graph_.inputs(c.vertex)) {
      if (has_gradient_[Index(input.vertex)]) continue;
      has_gradient_[Index(input.vertex)] = true;
      new_gradients_[i] += graph_.costs(input.vertex).gradient;
    }
    work_ += static_cast<int64_t>(graph_.inputs(c.vertex).size());
  }
  work_ += static_cast<int64_t>(order.size());
}

// Nobody uses what the forward makes, and another one is the first run, or may be.
bool OrderEvaluator::IsDead(const Compute& forward) const {
  const size_t v = Index(forward.vertex);
  if (next_use_[v] != kNoIndex || (extra_use_[v] != kNoIndex && !forward.extras_stay)) return false;
  return runs_[v] > 1 || (live_[v] && !graph_.costs(forward.vertex).ordered);
}

template <bool kProfile>
OrderCost OrderEvaluator::Run(const ComputeOrder& order, int64_t target, OrderProfile* profile) {
  Prepare(order);
  OrderCost cost;
  if (kProfile) {
    profile->running.assign(order.size(), 0);
    profile->gaps.clear();
    profile->lives.assign(Index(graph_.size()), {});
  }
  int64_t held = 0;  // after the compute; from the end to the start
  const auto use = [&](int u, int at) {
    int& next = next_use_[Index(u)];
    if (next == kNoIndex) {
      held += graph_.costs(u).output;
      last_use_[Index(u)] = at;
    } else if (kProfile && next > at + 1) {
      profile->gaps.push_back({u, at, next, false});
    }
    next = at;
  };
  for (size_t i = order.size(); i-- > 0;) {
    const int at = static_cast<int>(i);
    const int v = order[i].vertex;
    const OpGraph::Costs& costs = graph_.costs(v);
    int64_t running = 0;
    if (order[i].backward) {
      for (const OpGraph::Input& input : graph_.inputs(v)) {
        if (input.backward_needs) use(input.vertex, at);
      }
      if (costs.backward_needs_output) use(v, at);
      if (costs.extra > 0) {
        extra_use_[Index(v)] = at;
        held += costs.extra;
      }
      held += costs.gradient;
      running = held + costs.backward_overhead;
      held -= new_gradients_[i];
    } else {
      if (IsDead(order[i])) {
        dead_[i] = true;
        --runs_[Index(v)];
        continue;
      }
      --runs_[Index(v)];
      live_[Index(v)] = true;
      cost.forward_time = std::min(cost.forward_time + costs.forward_time, kMaxTotal);
      int& next = next_use_[Index(v)];
      int& extra_next = extra_use_[Index(v)];
      const bool waited_for = extra_next != kNoIndex;
      const bool saving = waited_for && !order[i].extras_stay;
      if (kProfile) {
        if (next > at + 1) profile->gaps.push_back({v, at, next, false});
        if (saving && extra_next > at + 1) profile->gaps.push_back({v, at, extra_next, true});
        if (next != kNoIndex) profile->lives[Index(v)].push_back({at, last_use_[Index(v)]});
      }
      if (next != kNoIndex) held -= costs.output;
      if (saving) held -= costs.extra;
      next = kNoIndex;
      if (saving) extra_next = kNoIndex;
      for (const OpGraph::Input& input : graph_.inputs(v)) use(input.vertex, at);
      running = held + costs.output +
                (saving       ? costs.extra + costs.saving_overhead
                 : waited_for ? costs.staying_overhead
                              : costs.unsaved_overhead);
    }
    cost.peak = std::max(cost.peak, running);
    cost.overload += graph_.OverloadUnits(running - target);
    if (kProfile) profile->running[i] = running;
  }
  return cost;
}

}  // namespace stowage
