#include "solvers/graph/budget/order_moves.h"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

namespace stowage {
namespace {

// Of the candidates, so many are looked at closer, and so many replayed.
constexpr size_t kRanked = 32;
constexpr size_t kReplayed = 8;

size_t Index(int i) { return static_cast<size_t>(i); }

}  // namespace

OrderMoves::OrderMoves(const OpGraph& graph, const StopToken* stop)
    : graph_(graph), evaluator_(graph), poll_(stop), in_closure_(Index(graph.size()), false) {}

absl::Status OrderMoves::Poll() {
  const int64_t steps = evaluator_.work() - polled_;
  polled_ = evaluator_.work();
  return poll_.Spend(steps);
}

void OrderMoves::SumOverload(int64_t target) {
  const size_t size = profile_.running.size();
  over_sum_.assign(size + 1, 0);
  over_count_.assign(size + 1, 0);
  for (size_t i = 0; i < size; ++i) {
    const int64_t over = std::max<int64_t>(profile_.running[i] - target, 0);
    over_sum_[i + 1] = over_sum_[i] + over;
    over_count_[i + 1] = over_count_[i] + (over > 0 ? 1 : 0);
  }
}

double OrderMoves::GainBetween(int from, int to, int64_t bytes) const {
  if (to <= from + 1) return 0.0;
  const size_t first = Index(from + 1);
  const double sum = static_cast<double>(over_sum_[Index(to)] - over_sum_[first]);
  const double count = static_cast<double>(over_count_[Index(to)] - over_count_[first]);
  return std::min(sum, count * static_cast<double>(bytes));
}

void OrderMoves::FindCandidates() {
  candidates_.clear();
  for (const OrderProfile::Gap& gap : profile_.gaps) {
    const OpGraph::Costs& costs = graph_.costs(gap.vertex);
    if (!costs.recomputable) continue;
    const double gain = GainBetween(gap.from, gap.to, gap.extras ? costs.extra : costs.output);
    if (gain <= 0.0) continue;
    candidates_.push_back({gap.vertex, gap.to, gain, 0.0});
  }
  // A forward makes the output and the extras: what one before another use of it frees.
  std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
    return std::tie(a.vertex, a.before) < std::tie(b.vertex, b.before);
  });
  size_t kept = 0;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    Candidate& last = candidates_[kept == 0 ? 0 : kept - 1];
    if (kept > 0 && last.vertex == candidates_[i].vertex && last.before == candidates_[i].before) {
      last.gain += candidates_[i].gain;
    } else {
      candidates_[kept++] = candidates_[i];
    }
  }
  candidates_.resize(kept);
  for (Candidate& c : candidates_) {
    c.rate = c.gain / static_cast<double>(graph_.costs(c.vertex).forward_time + 1);
  }
}

bool OrderMoves::IsLive(int vertex, int at) const {
  for (const OrderProfile::Life& life : profile_.lives[Index(vertex)]) {
    if (life.from < at && at <= life.to) return true;
  }
  return false;
}

void OrderMoves::FindClosure(int vertex, int at, std::vector<int>* closure) {
  closure->assign(1, vertex);
  in_closure_[Index(vertex)] = true;
  for (size_t i = 0; i < closure->size(); ++i) {
    for (const OpGraph::Input& input : graph_.inputs((*closure)[i])) {
      const int u = input.vertex;
      if (in_closure_[Index(u)] || !graph_.costs(u).recomputable || IsLive(u, at)) continue;
      in_closure_[Index(u)] = true;
      closure->push_back(u);
    }
  }
  for (const int u : *closure) in_closure_[Index(u)] = false;
  std::sort(closure->begin(), closure->end());
}

void OrderMoves::Insert(int at, const std::vector<int>& vertices, bool instead_of_next,
                        ComputeOrder* order) const {
  const ComputeOrder& from = profile_.order;
  order->assign(from.begin(), from.begin() + at);
  for (const int v : vertices) order->push_back({v, false});
  if (!instead_of_next) {
    order->insert(order->end(), from.begin() + at, from.end());
    return;
  }
  std::vector<int> waiting = vertices;
  for (size_t i = Index(at); i < from.size(); ++i) {
    if (!from[i].backward && !waiting.empty()) {
      const auto found = std::find(waiting.begin(), waiting.end(), from[i].vertex);
      if (found != waiting.end()) {
        waiting.erase(found);
        continue;
      }
    }
    order->push_back(from[i]);
  }
}

bool OrderMoves::EvictOnce(int64_t target, OrderCost* cost, ComputeOrder* order) {
  SumOverload(target);
  FindCandidates();
  const auto by_rate = [](const Candidate& a, const Candidate& b) {
    return std::make_tuple(-a.rate, -a.gain, a.vertex, a.before) <
           std::make_tuple(-b.rate, -b.gain, b.vertex, b.before);
  };
  const size_t ranked = std::min(kRanked, candidates_.size());
  std::partial_sort(candidates_.begin(), candidates_.begin() + static_cast<ptrdiff_t>(ranked),
                    candidates_.end(), by_rate);
  candidates_.resize(ranked);
  std::vector<int> closure;
  for (Candidate& c : candidates_) {
    FindClosure(c.vertex, c.before, &closure);
    int64_t time = 1;
    for (const int v : closure) time += graph_.costs(v).forward_time;
    // Holding an input instead costs memory and no time: half way between.
    const double own = static_cast<double>(graph_.costs(c.vertex).forward_time + 1);
    c.rate = 2.0 * c.gain / (own + static_cast<double>(time));
  }
  std::sort(candidates_.begin(), candidates_.end(), by_rate);
  if (candidates_.size() > kReplayed) candidates_.resize(kReplayed);

  bool found = false;
  OrderCost best_cost;
  double best_rate = 0.0;
  ComputeOrder trial, best;
  const auto consider = [&] {
    const OrderCost c = evaluator_.Evaluate(trial, target);
    if (c.overload >= cost->overload) return;
    const double gain = static_cast<double>(cost->overload - c.overload);
    const int64_t time = c.forward_time - cost->forward_time;
    const double rate = time <= 0 ? gain * 1e9 : gain / static_cast<double>(time);
    if (found && rate <= best_rate) return;
    found = true;
    best_rate = rate;
    best_cost = c;
    best.swap(trial);
  };
  for (const Candidate& c : candidates_) {
    Insert(c.before, {c.vertex}, false, &trial);
    consider();
    FindClosure(c.vertex, c.before, &closure);
    if (closure.size() == 1) continue;
    Insert(c.before, closure, false, &trial);
    consider();
    Insert(c.before, closure, true, &trial);
    consider();
  }
  if (!found) return false;
  *cost = best_cost;
  order->swap(best);
  return true;
}

absl::Status OrderMoves::Evict(int64_t target, int64_t work_limit, ComputeOrder* order) {
  const int64_t end = work() + work_limit;
  OrderCost cost = evaluator_.EvaluateWithProfile(*order, target, &profile_);
  while (cost.overload > 0 && work() < end) {
    absl::Status status = Poll();
    if (!status.ok()) return status;
    if (!EvictOnce(target, &cost, order)) break;
    cost = evaluator_.EvaluateWithProfile(*order, target, &profile_);
    *order = profile_.order;
  }
  return absl::OkStatus();
}

absl::Status OrderMoves::Retain(int64_t target, int64_t work_limit, ComputeOrder* order) {
  const int64_t end = work() + work_limit;
  struct Repeat {
    double rate;
    size_t index;
  };
  std::vector<Repeat> repeats;
  std::vector<bool> ran;
  ComputeOrder trial;
  for (bool changed = true; changed && work() < end;) {
    changed = false;
    const OrderCost before = evaluator_.EvaluateWithProfile(*order, target, &profile_);
    *order = profile_.order;
    repeats.clear();
    ran.assign(Index(graph_.size()), false);
    for (size_t i = 0; i < order->size(); ++i) {
      const Compute& c = (*order)[i];
      if (c.backward) continue;
      if (ran[Index(c.vertex)]) {
        const OpGraph::Costs& costs = graph_.costs(c.vertex);
        repeats.push_back({static_cast<double>(costs.forward_time) /
                               static_cast<double>(costs.output + costs.extra + 1),
                           i});
      }
      ran[Index(c.vertex)] = true;
    }
    std::stable_sort(repeats.begin(), repeats.end(),
                     [](const Repeat& a, const Repeat& b) { return a.rate > b.rate; });
    OrderCost cost = before;
    std::vector<bool> removed(order->size(), false);
    for (const Repeat& repeat : repeats) {
      if (work() >= end) break;
      absl::Status status = Poll();
      if (!status.ok()) return status;
      removed[repeat.index] = true;
      trial.clear();
      for (size_t i = 0; i < order->size(); ++i) {
        if (!removed[i]) trial.push_back((*order)[i]);
      }
      const OrderCost c = evaluator_.Evaluate(trial, target);
      if (c.overload > cost.overload) {
        removed[repeat.index] = false;
        continue;
      }
      cost = c;
      changed = true;
    }
    if (!changed) break;
    trial.clear();
    for (size_t i = 0; i < order->size(); ++i) {
      if (!removed[i]) trial.push_back((*order)[i]);
    }
    order->swap(trial);
    if (evaluator_.Evaluate(*order, target).forward_time >= before.forward_time) break;
  }
  return absl::OkStatus();
}

}  // namespace stowage
