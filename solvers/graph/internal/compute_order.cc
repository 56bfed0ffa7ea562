#include "solvers/graph/internal/compute_order.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "solvers/model/index.h"
#include "solvers/schedule/graph_liveness.h"

namespace stowage {
namespace {

OpGraph::Costs CostsOf(const Vertex& v) {
  OpGraph::Costs costs;
  costs.output = v.output.value();
  costs.extra = v.extra_saved.value();
  costs.gradient = v.output_gradient.value();
  costs.forward_time = v.forward_time.value();
  costs.saving_overhead = v.forward_saving_overhead.value();
  // A forward whose extras nobody uses runs in the way that takes less.
  costs.unsaved_overhead =
      std::min(v.forward_overhead, v.extra_saved + v.forward_saving_overhead).value();
  costs.staying_overhead = v.forward_overhead.value();
  costs.backward_overhead = v.backward_overhead.value();
  costs.stops = v.stops() && v.extra_saved > Bytes(0) && Recomputable(v);
  costs.backward_needs_output = v.backward_needs_output;
  costs.recomputable = !v.inputs.empty() && !v.collective && !v.must_keep;
  costs.ordered = v.random || v.stateful || v.collective;
  costs.result = v.result;
  return costs;
}

// Orders have fewer than 2^24 computes.
constexpr int64_t kMostUnits = int64_t{1} << 38;

}  // namespace

OpGraph::OpGraph(const Graph& folded, GradientSums sums)
    : sums_(std::move(sums)), has_backwards_(folded.has_backwards()) {
  const size_t size = static_cast<size_t>(folded.size());
  costs_.reserve(size);
  first_reader_.assign(size + 1, 0);
  for (int v = 0; v < folded.size(); ++v) {
    const Vertex& vertex = folded.vertex(v);
    costs_.push_back(CostsOf(vertex));
    stopped_.push_back({vertex.stopped_time().value(), vertex.stopped_overhead().value()});
    stops_ = stops_ || costs_.back().stops;
    first_input_.push_back(inputs_.size());
    for (const GraphInput& input : folded.vertex(v).inputs) {
      inputs_.push_back({static_cast<int>(input.vertex), input.backward_needs});
      ++first_reader_[static_cast<size_t>(input.vertex) + 1];
    }
  }
  first_input_.push_back(inputs_.size());
  for (size_t v = 0; v < size; ++v) first_reader_[v + 1] += first_reader_[v];
  readers_.resize(inputs_.size());
  std::vector<size_t> next(first_reader_.begin(), first_reader_.end() - 1);
  for (int v = 0; v < this->size(); ++v) {
    for (const Input& input : inputs(v)) readers_[next[static_cast<size_t>(input.vertex)]++] = v;
  }
  for (int v = 0; v < this->size(); ++v) {
    if (readers(v).empty()) seed_gradients_ += costs(v).gradient;
  }
  ideal_time_ = folded.ideal_time().value();
  int64_t total = 0;
  for (const Costs& c : costs_) {
    total += c.output + c.extra + c.gradient +
             std::max({c.saving_overhead, c.unsaved_overhead, c.backward_overhead});
  }
  while (total >> unit_bits_ > kMostUnits) ++unit_bits_;
  unit_mask_ = (int64_t{1} << unit_bits_) - 1;
}

ComputeOrder StoreAllOrder(const OpGraph& graph) {
  ComputeOrder order;
  order.reserve(2 * Index(graph.size()));
  for (int v = 0; v < graph.size(); ++v) order.push_back({v, false});
  for (int v = graph.has_backwards() ? graph.size() : 0; v-- > 0;) order.push_back({v, true});
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

Schedule ToSchedule(const Graph& graph, const ComputeOrder& order) {
  Schedule schedule;
  schedule.reserve(order.size());
  for (const Compute& c : order) {
    const int stage = c.vertex + 1;
    const bool saving = graph.has_backwards() && !c.extras_stay;
    schedule.push_back(c.backward ? Backward(stage)
                       : saving   ? ForwardSave(stage)
                                  : ForwardNoSave(stage));
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
  return Run<Notes::kNothing>(order, target, nullptr);
}

OrderCost OrderEvaluator::EvaluateWithRunning(const ComputeOrder& order, int64_t target,
                                              OrderProfile* profile) {
  return Run<Notes::kRunning>(order, target, profile);
}

OrderCost OrderEvaluator::EvaluateWithProfile(const ComputeOrder& order, int64_t target,
                                              OrderProfile* profile) {
  const OrderCost cost = Run<Notes::kProfile>(order, target, profile);
  if (std::find(dead_.begin(), dead_.end(), true) == dead_.end()) {
    profile->order = order;
    return cost;
  }
  // Indices are those of the order that is left when what is not run has gone.
  profile->order = WithoutDead(order);
  return Run<Notes::kProfile>(profile->order, target, profile);
}

ComputeOrder OrderEvaluator::WithoutDead(const ComputeOrder& order) const {
  ComputeOrder left;
  left.reserve(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (!dead_[i]) left.push_back(order[i]);
  }
  return left;
}

void OrderEvaluator::Prepare(const ComputeOrder& order) {
  std::fill(next_use_.begin(), next_use_.end(), kNoIndex);
  std::fill(extra_use_.begin(), extra_use_.end(), kNoIndex);
  std::fill(runs_.begin(), runs_.end(), 0);
  live_.assign(live_.size(), false);
  if (graph_.stops()) stopped_.assign(live_.size(), false);
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
template <bool kStops>
bool OrderEvaluator::IsDead(const Compute& forward) const {
  const size_t v = Index(forward.vertex);
  if (kStops && stopped_[v] && runs_[v] == 1)
    return false;  // it is what one that stops early repeats
  if (next_use_[v] != kNoIndex || (extra_use_[v] != kNoIndex && !forward.extras_stay)) return false;
  return runs_[v] > 1 || (live_[v] && !graph_.costs(forward.vertex).ordered);
}

template <OrderEvaluator::Notes kNotes, bool kStops>
OrderCost OrderEvaluator::Run(const ComputeOrder& order, int64_t target, OrderProfile* profile) {
  constexpr bool kProfile = kNotes == Notes::kProfile;
  Prepare(order);
  OrderCost cost;
  if (kNotes != Notes::kNothing) profile->running.assign(order.size(), 0);
  if (kProfile) {
    profile->held.assign(order.size() + 1, 0);
    profile->gaps.clear();
    profile->lives.assign(Index(graph_.size()), {});
  }
  int64_t held = 0;              // after the compute; from the end to the start
  int next_backward = kNoIndex;  // the vertex whose backward is what runs after the compute
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
  for (int v = 0; v < graph_.size(); ++v) {
    if (graph_.costs(v).result) use(v, static_cast<int>(order.size()));
  }
  if (kProfile) profile->held[order.size()] = held;
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
      if (kStops) next_backward = v;
    } else {
      if (IsDead<kStops>(order[i])) {
        dead_[i] = true;
        --runs_[Index(v)];
        continue;
      }
      --runs_[Index(v)];
      live_[Index(v)] = true;
      int& next = next_use_[Index(v)];
      int& extra_next = extra_use_[Index(v)];
      const bool waited_for = extra_next != kNoIndex;
      const bool saving = waited_for && !order[i].extras_stay;
      const bool stops = kStops && costs.stops && saving && next == kNoIndex &&
                         next_backward == v && runs_[Index(v)] > 0;
      if (stops) stopped_[Index(v)] = true;
      if (kStops) next_backward = kNoIndex;
      cost.forward_time = std::min(
          cost.forward_time + (stops ? graph_.stopped(v).time : costs.forward_time), kMaxTotal);
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
      running = held + (stops        ? costs.extra + graph_.stopped(v).overhead
                        : saving     ? costs.output + costs.extra + costs.saving_overhead
                        : waited_for ? costs.output + costs.staying_overhead
                                     : costs.output + costs.unsaved_overhead);
    }
    cost.peak = std::max(cost.peak, running);
    cost.overload += graph_.OverloadUnits(running - target);
    if (kNotes != Notes::kNothing) profile->running[i] = running;
    if (kProfile) profile->held[i] = held;
  }
  return cost;
}

std::optional<Schedule> UnfoldedOrders::ScheduleOf(const ComputeOrder& order) const {
  Schedule schedule = ToSchedule(folded_.graph, order);
  // Members of a group run together, a view among them too late for its place in the sum.
  if (IsFolded()) schedule = sums_.WithViewsInOrder(graph(), UnfoldCompute(folded_, schedule));
  schedule = WithDiscards(graph(), schedule);
  if (!sums_.KeptBy(schedule)) return std::nullopt;
  if (IsFolded() && !evaluator_.Run(schedule).ok()) return std::nullopt;
  return schedule;
}

}  // namespace stowage
