#include "solvers/graph/internal/order_search.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "solvers/base/fraction_power.h"
#include "solvers/base/worker_pool.h"
#include "solvers/model/index.h"

namespace stowage {

size_t OrderPool::Within(int64_t budget) const {
  const auto over = std::upper_bound(entries_.begin(), entries_.end(), budget,
                                     [](int64_t b, const Entry& entry) { return b < entry.peak; });
  return static_cast<size_t>(over - entries_.begin());
}

bool OrderPool::Beats(const OrderCost& cost) const {
  const size_t within = Within(cost.peak);
  return within == 0 || entries_[within - 1].forward_time > cost.forward_time;
}

void OrderPool::Offer(const OrderCost& cost, const ComputeOrder& order) {
  if (!Beats(cost)) return;
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), cost.peak,
                                   [](const Entry& e, int64_t peak) { return e.peak < peak; });
  const auto slower = std::find_if(
      at, entries_.end(), [&cost](const Entry& e) { return e.forward_time < cost.forward_time; });
  entries_.insert(entries_.erase(at, slower), {cost.peak, cost.forward_time, order});
  while (entries_.size() > 2 && TotalBytes() > most_bytes_) DropLeastGain();
}

int64_t OrderPool::TotalBytes() const {
  size_t computes = 0;
  for (const Entry& entry : entries_) computes += entry.order.size();
  return static_cast<int64_t>(computes * sizeof(Compute));
}

void OrderPool::DropLeastGain() {
  const auto share = [this](size_t i) {
    return static_cast<double>(entries_[i].forward_time) /
           static_cast<double>(entries_[i - 1].forward_time);
  };
  size_t least = 1;
  for (size_t i = 2; i + 1 < entries_.size(); ++i) {
    if (share(i) > share(least)) least = i;
  }
  entries_.erase(entries_.begin() + static_cast<ptrdiff_t>(least));
}

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

bool OrderMoves::IsLive(int vertex, int at) {
  for (const OrderProfile::Life& life : profile_.lives[Index(vertex)]) {
    ++looked_at_;
    if (life.from < at && at <= life.to) return true;
  }
  return false;
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
  Apply({&insertion}, &trial_order_);
  const double rate = Rate(cost, evaluator_.Evaluate(trial_order_, target));
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

bool OrderMoves::MayRetain(int64_t target, size_t index) {
  const int v = profile_.order[index].vertex;
  int64_t more =
      graph_.costs(v).output;  // held; less what only the repeat needs, at most its inputs
  for (const OpGraph::Input& input : graph_.inputs(v)) more -= graph_.costs(input.vertex).output;
  looked_at_ += static_cast<int64_t>(graph_.inputs(v).size());
  int before = -1;  // the last use of what is held until the repeat
  for (const OrderProfile::Life& life : profile_.lives[Index(v)]) {
    ++looked_at_;
    if (life.from >= static_cast<int>(index)) continue;
    before = life.to;
    break;
  }
  if (before < 0) return true;  // nothing was used of the run before
  for (size_t i = index; i-- > Index(before + 1);) {
    ++looked_at_;
    if (profile_.running[i] + more > target) return false;
  }
  return true;
}

absl::StatusOr<std::vector<size_t>> OrderMoves::FindRepeats(int64_t target) {
  struct Repeat {
    double rate;
    size_t index;
  };
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
  OrderCost cost = evaluator_.EvaluateWithProfile(*order, target, &profile_);
  for (bool faster = true; faster && work() < end;) {
    *order = profile_.order;
    removed.assign(order->size(), false);
    const int64_t time_before = cost.forward_time;
    const absl::StatusOr<std::vector<size_t>> repeats = FindRepeats(target);
    if (!repeats.ok()) return repeats.status();
    for (const size_t index : *repeats) {
      if (work() >= end) break;
      absl::Status status = Poll();
      if (!status.ok()) return status;
      removed[index] = true;
      without_removed();
      const OrderCost without = evaluator_.Evaluate(trial_order_, target);
      if (without.overload > cost.overload) {
        removed[index] = false;
      } else {
        cost = without;
      }
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
    trial_order_ = profile_.order;
    const auto begin = trial_order_.begin();
    if (to > index) {
      std::rotate(begin + index, begin + index + 1, begin + to + 1);
    } else {
      std::rotate(begin + to, begin + index, begin + index + 1);
    }
    const OrderCost moved = evaluator_.Evaluate(trial_order_, target);
    if (moved.overload >= cost->overload || moved.forward_time > cost->forward_time) continue;
    *cost = evaluator_.EvaluateWithProfile(trial_order_, target, &profile_);
    SumOverload(target);
    return true;
  }
  return false;
}

absl::Status OrderMoves::Reorder(int64_t target, int64_t work_limit, ComputeOrder* order) {
  const int64_t end = work() + work_limit;
  OrderCost cost = evaluator_.EvaluateWithProfile(*order, target, &profile_);
  SumOverload(target);
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

namespace {

constexpr int64_t kNoTarget = std::numeric_limits<int64_t>::max();
// Budgets that are worked on; fewer on graphs where each of them takes much of the work.
constexpr int kTargets = 64;
constexpr int kTargetsOfLarge = 48;
constexpr int kLarge = 512;
// A part of the work for what lies between them, beyond the rest.
constexpr int64_t kLoosening = 16;
// Prices change at most so often for a target, and for one between it and the one before; they take this share of the
// work, beyond the rest.
constexpr int kPriceSteps = 30;
constexpr double kPricing = 0.25;
// And so does what varying found for neighbours.
constexpr double kFitting = 0.05;
// Lanes of targets, each with as many neighbours: as many threads can be of use. The first prices of each have so many
// times as many steps.
constexpr int kLanes = 8;
constexpr int kFirstPrices = 8;
// Parts of the ideal time, and of what is proven to run again: orders this close to what is proven are not improved.
constexpr int64_t kClose = 1000;
constexpr int64_t kCloseToRepeated = 100;

// Fits better: within the target, then faster, then of a lower peak.
bool Better(const OrderCost& a, const OrderCost& b) {
  return std::tie(a.overload, a.forward_time, a.peak) <
         std::tie(b.overload, b.forward_time, b.peak);
}

// Which vertices an order repeats.
class Repeats {
 public:
  Repeats(const ComputeOrder& order, int size) : below_(static_cast<size_t>(size) + 1, 0) {
    std::vector<bool> ran(static_cast<size_t>(size), false);
    for (const Compute& c : order) {
      if (c.backward) continue;
      const auto v = static_cast<size_t>(c.vertex);
      if (ran[v]) ++below_[v + 1];
      ran[v] = true;
    }
    std::partial_sum(below_.begin(), below_.end(), below_.begin());
  }

  // Whether there are any of vertices first..last.
  bool Any(int first, int last) const {
    const size_t end = std::min(static_cast<size_t>(last) + 1, below_.size() - 1);
    return below_[end] > below_[static_cast<size_t>(first)];
  }

 private:
  std::vector<int64_t> below_;  // by vertex: repeats of those before it
};

// The order without the repeats of vertices first..last.
ComputeOrder WithoutRepeats(const ComputeOrder& order, int size, int first, int last) {
  std::vector<bool> ran(static_cast<size_t>(size), false);
  ComputeOrder left;
  left.reserve(order.size());
  for (const Compute& c : order) {
    if (!c.backward) {
      const bool repeat = ran[static_cast<size_t>(c.vertex)];
      ran[static_cast<size_t>(c.vertex)] = true;
      if (repeat && first <= c.vertex && c.vertex <= last) continue;
    }
    left.push_back(c);
  }
  return left;
}

}  // namespace

void OrderLane::Orders::Offer(const OrderCost& cost, const ComputeOrder& order) {
  if (all->Beats(cost)) own.Offer(cost, order);
}

const OrderPool::Entry* OrderLane::Orders::Within(int64_t budget) const {
  const auto within = [budget](const OrderPool& pool) {
    const size_t count = pool.Within(budget);
    return count == 0 ? nullptr : &pool.entries()[count - 1];
  };
  const OrderPool::Entry* const known = within(*all);
  const OrderPool::Entry* const found = within(own);
  if (known == nullptr || found == nullptr) return known == nullptr ? found : known;
  return found->forward_time < known->forward_time ? found : known;
}

const OrderPool::Entry* OrderLane::Orders::Beyond(int64_t budget) const {
  const auto beyond = [budget](const OrderPool& pool) {
    const size_t count = pool.Within(budget);
    return count == pool.entries().size() ? nullptr : &pool.entries()[count];
  };
  const OrderPool::Entry* const known = beyond(*all);
  const OrderPool::Entry* const found = beyond(own);
  if (known == nullptr || found == nullptr) return known == nullptr ? found : known;
  return found->peak < known->peak ? found : known;
}

const OrderPool::Entry& OrderLane::Orders::Fastest() const {
  const OrderPool::Entry& known = all->entries().back();
  if (own.entries().empty()) return known;
  const OrderPool::Entry& found = own.entries().back();
  return found.forward_time < known.forward_time ? found : known;
}

OrderLane::OrderLane(const OpGraph& graph, const StopToken* stop, const OrderPool* all,
                     const OrderPool* unpriced, int64_t most_bytes)
    : graph_(graph),
      stop_(stop),
      moves_(graph, stop),
      all_{all, OrderPool(most_bytes)},
      unpriced_{unpriced, OrderPool(most_bytes)} {}

void OrderLane::MoveTo(OrderPool* all, OrderPool* unpriced) {
  const auto move = [](OrderPool from, OrderPool* to) {
    for (const OrderPool::Entry& entry : from.entries()) {
      to->Offer({entry.peak, entry.forward_time, 0}, entry.order);
    }
  };
  move(std::exchange(all_.own, OrderPool(all_.own.most_bytes())), all);
  move(std::exchange(unpriced_.own, OrderPool(unpriced_.own.most_bytes())), unpriced);
}

void OrderLane::Keep(const OrderCost& cost, const ComputeOrder& order) {
  all_.Offer(cost, order);
  unpriced_.Offer(cost, order);
}

absl::Status OrderLane::Fit(int64_t target, int64_t work, ComputeOrder* order, OrderCost* cost) {
  absl::Status status = moves_.Reorder(target, work / 4, order);
  if (status.ok()) status = moves_.Evict(target, work, order);
  if (!status.ok()) return status;
  *cost = moves_.Cost(*order, target);
  Keep(*cost, moves_.WithoutDead(*order));
  if (cost->overload > 0) {
    status = moves_.Reorder(target, work / 4, order);
    if (status.ok()) status = moves_.Evict(target, work, order);
    if (!status.ok()) return status;
    *cost = moves_.Cost(*order, target);
    Keep(*cost, moves_.WithoutDead(*order));
    if (cost->overload > 0) return absl::OkStatus();
  }
  status = moves_.Retain(target, work, order);
  if (!status.ok()) return status;
  *cost = moves_.Cost(*order, target);
  Keep(*cost, moves_.WithoutDead(*order));
  return absl::OkStatus();
}

absl::Status OrderLane::FitFrom(const OrderPool::Entry* entry, int64_t target, int64_t end) {
  if (entry == nullptr) return absl::OkStatus();
  ComputeOrder order = entry->order;
  OrderCost cost;
  return Fit(target, std::max<int64_t>(end - moves_.work(), 0), &order, &cost);
}

absl::Status OrderLane::Price(int64_t target, int steps, int64_t work) {
  if (!prices_) prices_.emplace(graph_, stop_);
  const int64_t end = prices_->work() + work;
  ComputeOrder order;
  for (int step = 0; step < steps && prices_->work() < end; ++step) {
    const OrderPool::Entry* const within = all_.Within(target);
    const int64_t fastest = all_.Fastest().forward_time;
    const int64_t known = within != nullptr ? within->forward_time : 2 * fastest;
    if (known == fastest) break;
    absl::Status status = prices_->Next(target, known, &order);
    if (!status.ok()) return status;
    all_.Offer(moves_.Cost(order, kNoTarget), moves_.WithoutDead(order));
  }
  return absl::OkStatus();
}

absl::Status OrderLane::FitNearest(int64_t target, int64_t work) {
  const int64_t end = moves_.work() + work;
  absl::Status status = FitFrom(unpriced_.Beyond(target), target, end);
  return status.ok() ? FitFrom(unpriced_.Within(target), target, end) : status;
}

absl::Status OrderLane::FitNext(int64_t target, int64_t work) {
  return FitFrom(all_.Beyond(target), target, moves_.work() + work);
}

absl::Status OrderLane::FitFastest(int64_t target, int64_t work) {
  return FitFrom(&unpriced_.Fastest(), target, moves_.work() + work);
}

absl::Status OrderLane::Vary(int64_t target, int64_t work) {
  const int64_t end = moves_.work() + work;
  const OrderPool::Entry* const within = all_.Within(target);
  if (within == nullptr) return absl::OkStatus();
  ComputeOrder order = within->order;
  OrderCost cost;
  absl::Status status = Fit(target, work, &order, &cost);
  return status.ok() ? VaryFrom(target, end, &order, &cost) : status;
}

absl::Status OrderLane::VaryFrom(int64_t target, int64_t end, ComputeOrder* order,
                                 OrderCost* cost) {
  Repeats repeats(*order, graph_.size());
  for (bool better = true; better && moves_.work() < end;) {
    better = false;
    for (int width = graph_.size() / 2; width > 0; width /= 2) {
      const int step = (width + 1) / 2;
      for (int first = 0; first < graph_.size() && moves_.work() < end; first += step) {
        const int last = first + width - 1;
        if (!repeats.Any(first, last)) continue;
        ComputeOrder trial = WithoutRepeats(*order, graph_.size(), first, last);
        OrderCost trial_cost;
        absl::Status status = Fit(target, end - moves_.work(), &trial, &trial_cost);
        if (!status.ok()) return status;
        if (!Better(trial_cost, *cost)) continue;
        *order = std::move(trial);
        repeats = Repeats(*order, graph_.size());
        *cost = trial_cost;
        better = true;
      }
    }
  }
  return absl::OkStatus();
}

// The budgets of a search, from the highest down, and how they are dealt.
class OrderSearch::Targets {
 public:
  Targets(const OpGraph& graph, const OrderPool& pool, int64_t work,
          const std::function<absl::Status(double, int64_t)>& after,
          const std::function<int64_t(int64_t)>& least_repeated)
      : large_(graph.size() > kLarge),
        count_(large_ ? kTargetsOfLarge : kTargets),
        low_(Bytes(pool.entries().front().peak)),
        high_(Bytes(pool.entries().back().peak)),
        work_(work),
        after_(after),
        pool_(pool),
        enough_(Index(count_) + 1, 0) {
    // The fastest order, plain training, runs every forward once.
    const int64_t once = pool.entries().back().forward_time;
    for (int i = 1; least_repeated && i <= count_; ++i) {
      const int64_t repeated = least_repeated(At(i));
      enough_[Index(i)] =
          once + repeated + std::min(graph.ideal_time() / kClose, repeated / kCloseToRepeated);
    }
  }

  int count() const { return count_; }
  int64_t work() const { return work_; }

  // From the highest peak down, each the same share below the one before; of smaller graphs a quarter of the
  // way to equal steps, denser where plain training nearly fits. Halves lie between.
  int64_t At(double i) const {
    const double part = i / count_;
    const double shares = high_ * FractionPower(low_ / high_, part),
                 steps = high_ + (low_ - high_) * part;
    return static_cast<int64_t>(large_ ? shares : (3.0 * shares + steps) / 4.0);
  }
  // Whether an order is close to what is proven.
  bool IsClose(int i) const {
    const size_t within = pool_.Within(At(i));
    return within > 0 && pool_.entries()[within - 1].forward_time <= enough_[Index(i)];
  }
  // That so much of the work is done, of prices and of all else.
  absl::Status Tell(int64_t priced, int64_t done, int64_t target) const {
    if (!after_) return absl::OkStatus();
    const double whole = static_cast<double>(work_) * (1.0 + kPricing + kFitting);
    return after_(static_cast<double>(priced + done) / whole, target);
  }

 private:
  // A graph without bytes has peaks of 0.
  static double Bytes(int64_t peak) { return static_cast<double>(std::max<int64_t>(peak, 1)); }

  const bool large_;
  const int count_;
  const double low_, high_;
  const int64_t work_;
  const std::function<absl::Status(double, int64_t)>& after_;
  const OrderPool& pool_;
  std::vector<int64_t> enough_;
};

void OrderSearch::Offer(const ComputeOrder& order) {
  if (!KeepsGradientSums(graph_, order)) return;
  const OrderCost cost = moves_.Cost(order, kNoTarget);
  const ComputeOrder& without_dead = moves_.WithoutDead(order);
  pool_.Offer(cost, without_dead);
  unpriced_.Offer(cost, without_dead);
}

absl::Status OrderSearch::Shrink(int64_t work) {
  const int64_t end = moves_.work() + work;
  while (moves_.work() < end) {
    ComputeOrder order = pool_.entries().front().order;
    const int64_t peak = pool_.entries().front().peak;
    const int64_t target = peak - 1 - peak / 64;
    absl::Status status = moves_.Reorder(target, end - moves_.work(), &order);
    if (status.ok()) status = moves_.Evict(target, end - moves_.work(), &order);
    if (status.ok()) status = moves_.Reorder(target, end - moves_.work(), &order);
    if (!status.ok()) return status;
    Offer(order);
    if (pool_.entries().front().peak >= peak) break;
  }
  return absl::OkStatus();
}

absl::Status OrderSearch::Loosen(int64_t work) {
  const int64_t end = moves_.work() + work;
  for (int64_t done = -1; moves_.work() < end;) {
    const size_t next = pool_.Within(done);
    if (next >= pool_.entries().size()) break;
    done = pool_.entries()[next].peak;
    const ComputeOrder order = pool_.entries()[next].order;
    std::vector<bool> ran(Index(graph_.size()), false);
    for (size_t i = 0; i < order.size() && moves_.work() < end; ++i) {
      if (order[i].backward) continue;
      if (!ran[Index(order[i].vertex)]) {
        ran[Index(order[i].vertex)] = true;
        continue;
      }
      absl::Status status = moves_.Poll();
      if (!status.ok()) return status;
      ComputeOrder without = order;
      without.erase(without.begin() + static_cast<ptrdiff_t>(i));
      const OrderCost cost = moves_.Cost(without, kNoTarget);
      if (!pool_.Beats(cost)) continue;
      Offer(without);
      if (!pool_.Beats(cost)) done = std::min(done, cost.peak - 1);  // it was kept
    }
  }
  return absl::OkStatus();
}

absl::Status OrderSearch::Round(const std::function<absl::Status(size_t)>& step, Lanes* lanes) {
  const int tasks = static_cast<int>(lanes->size());
  WorkerPool pool(tasks, std::min(threads_, tasks), stop_, /*report=*/[](double) {});
  const absl::Status status = pool.Run([&](WorkerPool::Member* member) {
    absl::Status done;
    for (int task = member->NextTask(); done.ok() && task >= 0; task = member->NextTask()) {
      done = step(Index(task));
    }
    return done;
  });
  for (const auto& lane : *lanes) lane->MoveTo(&pool_, &unpriced_);
  return status;
}

absl::Status OrderSearch::Price(const Targets& targets, Lanes* lanes) {
  const int count = 2 * targets.count();  // halves, too
  const int rounds = (count + kLanes - 1) / kLanes;
  const auto most = static_cast<int64_t>(static_cast<double>(targets.work()) * kPricing);
  const auto done = [lanes] {
    int64_t sum = 0;
    for (const auto& lane : *lanes) sum += lane->priced_work();
    return sum;
  };
  for (int round = 0; round < rounds; ++round) {
    // Lanes begin without prices.
    const int times = round == 0 ? kFirstPrices : 1;
    const int64_t share =
        std::max<int64_t>(most - done(), 0) / (kLanes * (rounds - round + times - 1));
    const auto number = [&](size_t lane) { return static_cast<int>(lane) * rounds + round + 1; };
    absl::Status status = Round(
        [&](size_t lane) {
          if (number(lane) > count) return absl::OkStatus();
          const int64_t target = targets.At(0.5 * number(lane));
          return (*lanes)[lane]->Price(target, times * kPriceSteps, times * share);
        },
        lanes);
    for (size_t lane = 0; lane < lanes->size() && number(lane) <= count; ++lane) {
      if (status.ok()) status = targets.Tell(done(), 0, targets.At(0.5 * number(lane)));
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status OrderSearch::ForTargets(const Targets& targets, double share, Step step,
                                     Lanes* lanes) {
  const int rounds = (targets.count() + kLanes - 1) / kLanes;
  const auto end = static_cast<int64_t>(static_cast<double>(targets.work()) * share);
  int64_t priced = 0;
  for (const auto& lane : *lanes) priced += lane->priced_work();
  const auto done = [&] {
    int64_t sum = shrinking_;
    for (const auto& lane : *lanes) sum += lane->work();
    return sum;
  };
  for (int round = 0; round < rounds; ++round) {
    const int64_t each = std::max<int64_t>(end - done(), 0) / (kLanes * (rounds - round));
    const auto number = [&](size_t lane) { return static_cast<int>(lane) * rounds + round + 1; };
    absl::Status status = Round(
        [&](size_t lane) {
          const int i = number(lane);
          if (i > targets.count() || targets.IsClose(i)) return absl::OkStatus();
          return ((*lanes)[lane].get()->*step)(targets.At(i), each);
        },
        lanes);
    for (size_t lane = 0; lane < lanes->size() && number(lane) <= targets.count(); ++lane) {
      if (status.ok()) status = targets.Tell(priced, done(), targets.At(number(lane)));
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status OrderSearch::Improve(int64_t work,
                                  const std::function<absl::Status(double, int64_t)>& after,
                                  const std::function<int64_t(int64_t)>& least_repeated) {
  const int64_t start = moves_.work();
  absl::Status status = Shrink(work / 16);
  if (!status.ok()) return status;
  shrinking_ = moves_.work() - start;
  const Targets targets(graph_, pool_, work, after, least_repeated);
  Lanes lanes;
  for (int i = 0; i < kLanes; ++i) {
    lanes.push_back(
        std::make_unique<OrderLane>(graph_, stop_, &pool_, &unpriced_, most_bytes_ / kLanes / 2));
  }
  if (graph_.has_backwards()) status = Price(targets, &lanes);
  // What prices choose is close to the bound in most places; where it is not, other ways may be better.
  if (status.ok()) status = ForTargets(targets, 0.25, &OrderLane::FitNearest, &lanes);
  if (status.ok()) status = ForTargets(targets, 0.5, &OrderLane::FitFastest, &lanes);
  if (status.ok()) status = ForTargets(targets, 1.0, &OrderLane::Vary, &lanes);
  // What varying found for neighbours.
  if (status.ok()) status = ForTargets(targets, 1.0 + kFitting, &OrderLane::FitNext, &lanes);
  return status.ok() && !graph_.has_backwards() ? Loosen(work / kLoosening) : status;
}

}  // namespace stowage
