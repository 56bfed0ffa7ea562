#include "solvers/graph/internal/order_search.h"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>
#include <vector>

#include "solvers/model/index.h"

namespace stowage {
namespace {

// Of the candidates, so many are looked at closer, and so many replayed.
constexpr size_t kRanked = 32;
constexpr size_t kReplayed = 8;

// What is put in together with the best insertion is nearly as good.
constexpr double kNearlyAsGood = 0.7;

// Overload that goes for the time that comes; 0 if none goes.
double Rate(const OrderCost& before, const OrderCost& after) {
  if (after.overload >= before.overload) return 0.0;
  const double gain = static_cast<double>(before.overload - after.overload);
  const int64_t time = after.forward_time - before.forward_time;
  return time <= 0 ? gain * 1e9 : gain / static_cast<double>(time);
}

}  // namespace

OrderMoves::OrderMoves(const OpGraph& graph, const StopToken* stop)
    : graph_(graph),
      evaluator_(graph),
      poll_(stop),
      trials_(graph),
      in_closure_(Index(graph.size()), false),
      left_out_(Index(graph.size()), 0) {}

absl::Status OrderMoves::Poll() {
  const int64_t steps = work() - polled_;
  polled_ = work();
  return poll_.Spend(steps);
}

void OrderMoves::SumOverload(int64_t target) {
  const size_t size = profile_.running.size();
  over_sum_.assign(size + 1, 0);
  over_count_.assign(size + 1, 0);
  for (size_t i = 0; i < size; ++i) {
    const int64_t over = graph_.OverloadUnits(profile_.running[i] - target);
    over_sum_[i + 1] = over_sum_[i] + over;
    over_count_[i + 1] = over_count_[i] + (over > 0 ? 1 : 0);
  }
}

double OrderMoves::GainBetween(int from, int to, int64_t bytes) const {
  if (to <= from + 1) return 0.0;
  const size_t first = Index(from + 1);
  const double sum = static_cast<double>(over_sum_[Index(to)] - over_sum_[first]);
  const double count = static_cast<double>(over_count_[Index(to)] - over_count_[first]);
  return std::min(sum, count * static_cast<double>(graph_.OverloadUnits(bytes)));
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

const OrderProfile::Life* OrderMoves::LifeBefore(int vertex, int at) {
  const std::vector<OrderProfile::Life>& lives = profile_.lives[Index(vertex)];
  ++looked_at_;
  const auto life = std::partition_point(
      lives.begin(), lives.end(), [at](const OrderProfile::Life& l) { return l.from >= at; });
  return life == lives.end() ? nullptr : &*life;
}

bool OrderMoves::IsLive(int vertex, int at) {
  const OrderProfile::Life* const life = LifeBefore(vertex, at);
  return life != nullptr && at <= life->to;
}

void OrderMoves::FindClosure(int vertex, int at, std::vector<int>* closure) {
  closure->assign(1, vertex);
  in_closure_[Index(vertex)] = true;
  for (size_t i = 0; i < closure->size(); ++i) {
    looked_at_ += static_cast<int64_t>(graph_.inputs((*closure)[i]).size());
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

void OrderMoves::StartTrials(const OrderCost& cost, int64_t target) {
  try_parts_ = trials_.Start(profile_, cost, target);
}

OrderCost OrderMoves::CostWith(const Insertion& insertion, int64_t target) {
  if (try_parts_) {
    return trials_.With(insertion.before, insertion.vertices, insertion.instead_of_next);
  }
  Apply({&insertion}, &trial_order_);
  return evaluator_.Evaluate(trial_order_, target);
}

void OrderMoves::Apply(std::vector<const Insertion*> insertions, ComputeOrder* order) {
  std::stable_sort(insertions.begin(), insertions.end(),
                   [](const Insertion* a, const Insertion* b) { return a->before < b->before; });
  order->clear();
  auto next = insertions.begin();
  const int size = static_cast<int>(profile_.order.size());
  for (int i = 0; i <= size; ++i) {
    for (; next != insertions.end() && (*next)->before == i; ++next) {
      for (const int v : (*next)->vertices) {
        order->push_back({v, false});
        if ((*next)->instead_of_next) ++left_out_[Index(v)];
      }
    }
    if (i == size) break;
    const Compute& c = profile_.order[Index(i)];
    if (!c.backward && left_out_[Index(c.vertex)] > 0) {
      --left_out_[Index(c.vertex)];
    } else {
      order->push_back(c);
    }
  }
  for (const Insertion* insertion : insertions) {
    for (const int v : insertion->vertices) left_out_[Index(v)] = 0;
  }
}

// Leaves the most promising candidates, best first.
absl::Status OrderMoves::RankCandidates() {
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
    absl::Status status = Poll();
    if (!status.ok()) return status;
    FindClosure(c.vertex, c.before, &closure);
    int64_t time = 1;
    for (const int v : closure) time += graph_.costs(v).forward_time;
    // To hold an input instead costs memory and no time: half way between.
    const double own = static_cast<double>(graph_.costs(c.vertex).forward_time + 1);
    c.rate = 2.0 * c.gain / (own + static_cast<double>(time));
  }
  std::sort(candidates_.begin(), candidates_.end(), by_rate);
  if (candidates_.size() > kReplayed) candidates_.resize(kReplayed);
  return absl::OkStatus();
}

void OrderMoves::Replay(Insertion insertion, int64_t target, const OrderCost& cost,
                        std::vector<Trial>* trials) {
  const double rate = Rate(cost, CostWith(insertion, target));
  if (rate > 0.0) trials->push_back({std::move(insertion), rate});
}

absl::Status OrderMoves::ReplayCandidates(int64_t target, const OrderCost& cost,
                                          std::vector<Trial>* trials) {
  std::vector<int> closure;
  for (const Candidate& c : candidates_) {
    absl::Status status = Poll();
    if (!status.ok()) return status;
    Replay({c.before, {c.vertex}, false}, target, cost, trials);
    FindClosure(c.vertex, c.before, &closure);
    if (closure.size() == 1) continue;
    Replay({c.before, closure, false}, target, cost, trials);
    Replay({c.before, closure, true}, target, cost, trials);
  }
  return absl::OkStatus();
}

absl::Status OrderMoves::ApplyBest(std::vector<Trial> trials, int64_t target, ComputeOrder* order) {
  std::stable_sort(trials.begin(), trials.end(),
                   [](const Trial& a, const Trial& b) { return a.rate > b.rate; });
  std::vector<const Insertion*> chosen = {&trials.front().insertion};
  Apply(chosen, order);
  OrderCost best = evaluator_.Evaluate(*order, target);
  for (size_t i = 1; i < trials.size() && best.overload > 0; ++i) {
    if (trials[i].rate < kNearlyAsGood * trials.front().rate) break;
    absl::Status status = Poll();
    if (!status.ok()) return status;
    chosen.push_back(&trials[i].insertion);
    Apply(chosen, &trial_order_);
    const OrderCost together = evaluator_.Evaluate(trial_order_, target);
    if (Rate(best, together) < kNearlyAsGood * trials.front().rate) {
      chosen.pop_back();
      continue;
    }
    best = together;
    order->swap(trial_order_);
  }
  return absl::OkStatus();
}

absl::Status OrderMoves::Evict(int64_t target, int64_t work_limit, ComputeOrder* order) {
  const int64_t end = work() + work_limit;
  OrderCost cost = evaluator_.EvaluateWithProfile(*order, target, &profile_);
  absl::Status status = Poll();
  while (status.ok() && cost.overload > 0 && work() < end) {
    SumOverload(target);
    FindCandidates();
    StartTrials(cost, target);
    status = RankCandidates();
    std::vector<Trial> trials;
    if (status.ok()) status = ReplayCandidates(target, cost, &trials);
    if (!status.ok() || trials.empty()) break;
    const ComputeOrder before = *order;
    const int64_t overload = cost.overload;
    status = ApplyBest(std::move(trials), target, order);
    cost = evaluator_.EvaluateWithProfile(*order, target, &profile_);
    *order = profile_.order;
    if (cost.overload <= overload) continue;
    // Together they parted a repeat that stopped early from its backward.
    *order = before;
    break;
  }
  return status;
}

void OrderMoves::FindBlocks() {
  most_running_.assign(profile_.running.size() / kBlock + 1, 0);
  for (size_t i = 0; i < profile_.running.size(); ++i) {
    most_running_[i / kBlock] = std::max(most_running_[i / kBlock], profile_.running[i]);
  }
}

bool OrderMoves::MayRetain(int64_t target, size_t index) {
  const int v = profile_.order[index].vertex;
  int64_t more =
      graph_.costs(v).output;  // held; less what only the repeat needs, at most its inputs
  for (const OpGraph::Input& input : graph_.inputs(v)) more -= graph_.costs(input.vertex).output;
  looked_at_ += static_cast<int64_t>(graph_.inputs(v).size());
  const OrderProfile::Life* const life = LifeBefore(v, static_cast<int>(index));
  if (life == nullptr) return true;  // nothing was used of the run before
  const size_t begin = Index(life->to + 1);
  for (size_t i = index; i > begin;) {
    ++looked_at_;
    const bool whole = i % kBlock == 0 && i - begin >= kBlock;
    if ((whole ? most_running_[i / kBlock - 1] : profile_.running[i - 1]) + more > target) {
      return false;
    }
    i -= whole ? kBlock : 1;
  }
  return true;
}

absl::StatusOr<std::vector<size_t>> OrderMoves::FindRepeats(int64_t target) {
  struct Repeat {
    double rate;
    size_t index;
  };
  FindBlocks();
  std::vector<Repeat> repeats;
  std::vector<bool> ran(Index(graph_.size()), false);
  for (size_t i = 0; i < profile_.order.size(); ++i) {
    const Compute& c = profile_.order[i];
    if (c.backward) continue;
    absl::Status status = Poll();
    if (!status.ok()) return status;
    if (ran[Index(c.vertex)] && MayRetain(target, i)) {
      const OpGraph::Costs& costs = graph_.costs(c.vertex);
      repeats.push_back({static_cast<double>(costs.forward_time) /
                             static_cast<double>(costs.output + costs.extra + 1),
                         i});
    }
    ran[Index(c.vertex)] = true;
  }
  std::stable_sort(repeats.begin(), repeats.end(),
                   [](const Repeat& a, const Repeat& b) { return a.rate > b.rate; });
  std::vector<size_t> indices;
  for (const Repeat& repeat : repeats) indices.push_back(repeat.index);
  return indices;
}

absl::Status OrderMoves::Retain(int64_t target, int64_t work_limit, ComputeOrder* order) {
  const int64_t end = work() + work_limit;
  std::vector<bool> removed;
  const auto without_removed = [&] {
    trial_order_.clear();
    for (size_t i = 0; i < order->size(); ++i) {
      if (!removed[i]) trial_order_.push_back((*order)[i]);
    }
  };
  const auto cost_without = [&](size_t index) {
    if (try_parts_) return trials_.Without(static_cast<int>(index));
    without_removed();
    return evaluator_.Evaluate(trial_order_, target);
  };
  OrderCost cost = evaluator_.EvaluateWithProfile(*order, target, &profile_);
  for (bool faster = true; faster && work() < end;) {
    *order = profile_.order;
    StartTrials(cost, target);
    removed.assign(order->size(), false);
    const int64_t time_before = cost.forward_time;
    const absl::StatusOr<std::vector<size_t>> repeats = FindRepeats(target);
    if (!repeats.ok()) return repeats.status();
    for (const size_t index : *repeats) {
      if (work() >= end) break;
      absl::Status status = Poll();
      if (!status.ok()) return status;
      removed[index] = true;
      const OrderCost without = cost_without(index);
      if (without.overload > cost.overload) {
        removed[index] = false;
        continue;
      }
      cost = without;
      if (try_parts_) trials_.Keep();
    }
    without_removed();
    cost = evaluator_.EvaluateWithProfile(trial_order_, target, &profile_);
    faster = cost.forward_time < time_before;
  }
  *order = profile_.order;
  return absl::OkStatus();
}

namespace {

// Orders of at most so many computes have every place tried, longer ones the ends of the range.
constexpr int kEveryPlace = 48;

}  // namespace

OrderMoves::Places OrderMoves::FindPlaces() const {
  Places places;
  places.first_run.assign(Index(graph_.size()), kNoIndex);
  places.backward.assign(Index(graph_.size()), kNoIndex);
  for (size_t i = 0; i < profile_.order.size(); ++i) {
    const Compute& c = profile_.order[i];
    const int at = static_cast<int>(i);
    if (c.backward) {
      places.backward[Index(c.vertex)] = at;
    } else if (places.first_run[Index(c.vertex)] == kNoIndex) {
      places.first_run[Index(c.vertex)] = at;
      if (graph_.costs(c.vertex).ordered) places.ordered.push_back(at);
    }
  }
  return places;
}

std::pair<int, int> OrderMoves::Range(const Places& places, int index) {
  const ComputeOrder& order = profile_.order;
  const Compute& c = order[Index(index)];
  const int v = c.vertex;
  int low = 0, high = static_cast<int>(order.size()) - 1;
  if (c.backward) {
    low = places.first_run[Index(v)] + 1;
    for (const int u : graph_.readers(v)) low = std::max(low, places.backward[Index(u)] + 1);
    for (const OpGraph::Input& input : graph_.inputs(v)) {
      high = std::min(high, places.backward[Index(input.vertex)] - 1);
    }
    for (const int u : graph_.sums().Before(v)) low = std::max(low, places.backward[Index(u)] + 1);
    for (const int u : graph_.sums().After(v)) high = std::min(high, places.backward[Index(u)] - 1);
    return {low, high};
  }
  if (places.first_run[Index(v)] != index) {
    low = places.first_run[Index(v)] + 1;
  } else {
    for (const OpGraph::Input& input : graph_.inputs(v)) {
      low = std::max(low, places.first_run[Index(input.vertex)] + 1);
    }
    if (graph_.costs(v).ordered) {
      const auto own = std::lower_bound(places.ordered.begin(), places.ordered.end(), index);
      if (own != places.ordered.begin()) low = std::max(low, *(own - 1) + 1);
      if (own + 1 != places.ordered.end()) high = std::min(high, *(own + 1) - 1);
    }
  }
  // Up to its next use, or the next forward that makes the same.
  for (int i = index + 1; i <= high; ++i) {
    const Compute& other = order[Index(i)];
    const auto reads = [&](const OpGraph::Input& input) { return input.vertex == v; };
    const absl::Span<const OpGraph::Input> inputs = graph_.inputs(other.vertex);
    looked_at_ += 1 + static_cast<int64_t>(inputs.size());
    if (other.vertex == v ||
        (!other.backward && std::any_of(inputs.begin(), inputs.end(), reads))) {
      high = i - 1;
    }
  }
  return {low, high};
}

bool OrderMoves::MoveOne(const Places& places, int index, int64_t target, OrderCost* cost) {
  const auto [low, high] = Range(places, index);
  const bool everywhere = profile_.order.size() <= Index(kEveryPlace);
  for (int to = low; to <= high; to += everywhere ? 1 : std::max(high - low, 1)) {
    const int first = std::min(index, to), last = std::max(index, to);
    if (over_count_[Index(last) + 1] == over_count_[Index(first)]) continue;
    if (to == index) continue;
    const auto move = [&] {
      trial_order_ = profile_.order;
      const auto begin = trial_order_.begin();
      if (to > index) {
        std::rotate(begin + index, begin + index + 1, begin + to + 1);
      } else {
        std::rotate(begin + to, begin + index, begin + index + 1);
      }
    };
    const bool part = try_parts_ && !profile_.order[Index(index)].backward;
    if (!part) move();
    const OrderCost moved = part ? trials_.Moved(index, to > index ? to + 1 : to)
                                 : evaluator_.Evaluate(trial_order_, target);
    if (moved.overload >= cost->overload || moved.forward_time > cost->forward_time) continue;
    if (part) move();
    *cost = evaluator_.EvaluateWithProfile(trial_order_, target, &profile_);
    SumOverload(target);
    StartTrials(*cost, target);
    return true;
  }
  return false;
}

absl::Status OrderMoves::Reorder(int64_t target, int64_t work_limit, ComputeOrder* order) {
  const int64_t end = work() + work_limit;
  OrderCost cost = evaluator_.EvaluateWithProfile(*order, target, &profile_);
  SumOverload(target);
  StartTrials(cost, target);
  Places places = FindPlaces();
  absl::Status status = Poll();
  if (!status.ok()) return status;
  for (bool moved = true; moved;) {
    moved = false;
    for (int i = 0; i < static_cast<int>(profile_.order.size()); ++i) {
      if (work() >= end || cost.overload == 0) break;
      status = Poll();
      if (!status.ok()) return status;
      if (!MoveOne(places, i, target, &cost)) continue;
      places = FindPlaces();
      moved = true;
    }
  }
  *order = profile_.order;
  return absl::OkStatus();
}

}  // namespace stowage
