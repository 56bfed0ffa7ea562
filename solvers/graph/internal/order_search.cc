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
  while (entries_.size() > 2 && TotalBytes() > most_bytes_) DropLeastWorth();
}

int64_t OrderPool::TotalBytes() const {
  size_t computes = 0;
  for (const Entry& entry : entries_) computes += entry.order.size();
  return static_cast<int64_t>(computes * sizeof(Compute));
}

// What an order is worth for its computes: by the share that it is faster, for budgets up to the next one's peak.
void OrderPool::DropLeastWorth() {
  const auto worth = [this](size_t i) {
    const auto slower = static_cast<double>(entries_[i - 1].forward_time);
    const auto faster = static_cast<double>(entries_[i].forward_time);
    return (slower - faster) / slower *
           static_cast<double>(entries_[i + 1].peak - entries_[i].peak) /
           static_cast<double>(entries_[i].order.size());
  };
  size_t least = 1;
  for (size_t i = 2; i + 1 < entries_.size(); ++i) {
    if (worth(i) < worth(least)) least = i;
  }
  entries_.erase(entries_.begin() + static_cast<ptrdiff_t>(least));
}

namespace {

constexpr int64_t kNoTarget = std::numeric_limits<int64_t>::max();
// Budgets that are worked on; fewer on graphs where each of them takes much of the work. The moves replay whole orders
// again and again, which is too much for huge graphs: prices alone choose there. Compute DAGs have no prices; the largest
// are left as they are.
constexpr int kTargets = 64;
constexpr int kTargetsOfLarge = 48;
constexpr int kTargetsOfHuge = 24;
constexpr int kLarge = 512;
constexpr int kHuge = 5000;
constexpr int kLargestDag = 20000;
// A part of the work for what lies between them, beyond the rest.
constexpr int64_t kLoosening = 16;
// Prices change at most so often for a target, and for one between it and the one before; they take this share of the
// work, beyond the rest.
constexpr int kPriceSteps = 30;
constexpr double kPricing = 0.25;
// Of the work, at most: to make the orders fit of the next higher peak, and the fastest; to vary what fits; to make fit
// what varying found for neighbours, beyond the rest.
constexpr double kFittingNearest = 0.25;
constexpr double kFittingFastest = 0.25;
constexpr double kVarying = 0.5;
constexpr double kFittingNext = 0.05;
constexpr double kAllParts = kPricing + kFittingNearest + kFittingFastest + kVarying + kFittingNext;
// A budget gets its whole share where the makespan may be this part above the least, which is what is proven; less where
// it is closer, but at least so much.
constexpr double kWholeShare = 0.02;
constexpr double kLeastShare = 0.05;
// Lanes of targets, each with as many neighbours: as many threads can be of use. The first prices of each have so many
// times as many steps.
constexpr int kLanes = 8;
constexpr int kFirstPrices = 8;
// Of a sketch: budgets of a lane, and how often prices change for each.
constexpr int kSketched = 2;
constexpr int kSketchSteps = 24;
// Parts of the ideal time, and of what is proven to run again: orders this close to what is proven are not improved.
constexpr int64_t kClose = 1000;
constexpr int64_t kCloseToRepeated = 100;

bool IsHuge(const OpGraph& graph) { return graph.has_backwards() && graph.size() > kHuge; }

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

absl::Status OrderLane::Price(int64_t target, int64_t enough, int steps, int64_t work) {
  if (!prices_) prices_.emplace(graph_, stop_);
  const int64_t end = prices_->work() + work;
  ComputeOrder order;
  for (int step = 0; step < steps && prices_->work() < end; ++step) {
    const OrderPool::Entry* const within = all_.Within(target);
    const int64_t fastest = all_.Fastest().forward_time;
    const int64_t known = within != nullptr ? within->forward_time : 2 * fastest;
    if (known <= std::max(enough, fastest)) break;
    const absl::StatusOr<OrderCost> cost = prices_->Next(target, known, &order);
    if (!cost.ok()) return cost.status();
    if (all_.Beats(*cost)) all_.Offer(*cost, prices_->WithoutDead(order));
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

// The budgets of a search, from the highest down: what is proven of them and what they get of the work.
class OrderSearch::Targets {
 public:
  Targets(const OpGraph& graph, const OrderPool& pool, int64_t work,
          const std::function<int64_t(int64_t)>& least_repeated)
      : size_(graph.size()),
        huge_(IsHuge(graph)),
        count_(huge_            ? kTargetsOfHuge
               : size_ > kLarge ? kTargetsOfLarge
                                : kTargets),
        low_(Bytes(pool.entries().front().peak)),
        high_(Bytes(pool.entries().back().peak)),
        work_(work),
        // The fastest order, plain training, runs every forward once.
        once_(pool.entries().back().forward_time),
        ideal_time_(graph.ideal_time()),
        pool_(pool),
        repeated_(2 * Index(count_) + 1, 0) {
    for (int half = 1; least_repeated && half <= 2 * count_; ++half) {
      repeated_[Index(half)] = least_repeated(At(half));
    }
  }

  int count() const { return count_; }
  double work() const { return static_cast<double>(work_); }

  // Of the budgets from 1 to 2 * count(), every other one lies between two that are worked on: those are even.
  // From the highest peak down, each the same share below the one before; of smaller graphs a quarter of the
  // way to equal steps, denser where plain training nearly fits; of huge ones equal steps.
  int64_t At(int half) const {
    const double part = 0.5 * half / count_;
    const double shares = high_ * FractionPower(low_ / high_, part),
                 steps = high_ + (low_ - high_) * part;
    return static_cast<int64_t>(huge_            ? steps
                                : size_ > kLarge ? shares
                                                 : (3.0 * shares + steps) / 4.0);
  }
  // An order whose forwards take no longer is close to what is proven.
  int64_t Enough(int half) const {
    const int64_t repeated = repeated_[Index(half)];
    return once_ + repeated + std::min(ideal_time_ / kClose, repeated / kCloseToRepeated);
  }
  bool IsClose(int half) const {
    const OrderPool::Entry* const within = Within(half);
    return within != nullptr && within->forward_time <= Enough(half);
  }
  // What the budget gets of what it could get, by how far its order may be from the best.
  double Share(int half) const {
    const OrderPool::Entry* const within = Within(half);
    if (within == nullptr) return 1.0;
    const auto least = static_cast<double>(ideal_time_ + repeated_[Index(half)]);
    const auto more = static_cast<double>(within->forward_time - once_ - repeated_[Index(half)]);
    return std::min(std::max(more / least / kWholeShare, kLeastShare), 1.0);
  }

 private:
  // A graph without bytes has peaks of 0.
  static double Bytes(int64_t peak) { return static_cast<double>(std::max<int64_t>(peak, 1)); }
  const OrderPool::Entry* Within(int half) const {
    const size_t count = pool_.Within(At(half));
    return count == 0 ? nullptr : &pool_.entries()[count - 1];
  }

  const int size_;
  const bool huge_;
  const int count_;
  const double low_, high_;
  const int64_t work_;
  const int64_t once_;
  const int64_t ideal_time_;
  const OrderPool& pool_;
  std::vector<int64_t> repeated_;  // at least, by half; 0 where nothing is proven
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

absl::Status OrderSearch::Price(const Targets& targets, const After& after, Lanes* lanes) {
  const int count = 2 * targets.count();
  const int rounds = (count + kLanes - 1) / kLanes;
  const auto most = static_cast<int64_t>(targets.work() * kPricing);
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
    const auto half = [&](size_t lane) { return static_cast<int>(lane) * rounds + round + 1; };
    absl::Status status = Round(
        [&](size_t lane) {
          if (half(lane) > count) return absl::OkStatus();
          return (*lanes)[lane]->Price(targets.At(half(lane)), targets.Enough(half(lane)),
                                       times * kPriceSteps, times * share);
        },
        lanes);
    for (size_t lane = 0; lane < lanes->size() && half(lane) <= count; ++lane) {
      if (status.ok() && after) {
        status = after(kPricing / kAllParts * (round + 1) / rounds, targets.At(half(lane)));
      }
    }
    if (!status.ok()) return status;
  }
  parts_done_ = kPricing;
  return absl::OkStatus();
}

absl::Status OrderSearch::ForTargets(const Targets& targets, double part, Step step,
                                     const After& after, Lanes* lanes) {
  const int rounds = (targets.count() + kLanes - 1) / kLanes;
  const double each = targets.work() * part / targets.count();
  for (int round = 0; round < rounds; ++round) {
    const auto half = [&](size_t lane) {
      return 2 * (static_cast<int>(lane) * rounds + round + 1);
    };
    absl::Status status = Round(
        [&](size_t lane) {
          const int i = half(lane);
          if (i > 2 * targets.count() || targets.IsClose(i)) return absl::OkStatus();
          return ((*lanes)[lane].get()->*step)(targets.At(i),
                                               static_cast<int64_t>(each * targets.Share(i)));
        },
        lanes);
    const double done = parts_done_ + part * (round + 1) / rounds;
    for (size_t lane = 0; lane < lanes->size() && half(lane) <= 2 * targets.count(); ++lane) {
      if (status.ok() && after) status = after(done / kAllParts, targets.At(half(lane)));
    }
    if (!status.ok()) return status;
  }
  parts_done_ += part;
  return absl::OkStatus();
}

OrderSearch::Lanes OrderSearch::MakeLanes() const {
  Lanes lanes;
  for (int i = 0; i < kLanes; ++i) {
    lanes.push_back(
        std::make_unique<OrderLane>(graph_, stop_, &pool_, &unpriced_, most_bytes_ / kLanes / 2));
  }
  return lanes;
}

absl::Status OrderSearch::Sketch(int64_t least_peak, int64_t work, const After& after) {
  Lanes lanes = MakeLanes();
  const auto high = static_cast<double>(pool_.entries().back().peak);
  const double step = (high - static_cast<double>(least_peak)) / (kLanes * kSketched);
  for (int round = 0; round < kSketched; ++round) {
    const auto target = [&](size_t lane) {
      return static_cast<int64_t>(high - step * (static_cast<int>(lane) * kSketched + round + 1));
    };
    absl::Status status = Round(
        [&](size_t lane) {
          return lanes[lane]->Price(target(lane), /*enough=*/0, kSketchSteps,
                                    work / (kLanes * kSketched));
        },
        &lanes);
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
      if (status.ok() && after) status = after(0.0, target(lane));
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status OrderSearch::Improve(int64_t work, const After& after,
                                  const std::function<int64_t(int64_t)>& least_repeated) {
  if (!graph_.has_backwards() && graph_.size() > kLargestDag) return absl::OkStatus();
  const bool huge = IsHuge(graph_);
  absl::Status status = huge ? absl::OkStatus() : Shrink(work / 16);
  if (!status.ok()) return status;
  const Targets targets(graph_, pool_, work, least_repeated);
  Lanes lanes = MakeLanes();
  if (graph_.has_backwards()) status = Price(targets, after, &lanes);
  if (huge) return status;
  // What prices choose is close to the bound in most places; where it is not, other ways may be better.
  const std::pair<double, Step> steps[] = {{kFittingNearest, &OrderLane::FitNearest},
                                           {kFittingFastest, &OrderLane::FitFastest},
                                           {kVarying, &OrderLane::Vary},
                                           {kFittingNext, &OrderLane::FitNext}};
  for (const auto& [part, step] : steps) {
    if (status.ok()) status = ForTargets(targets, part, step, after, &lanes);
  }
  return status.ok() && !graph_.has_backwards() ? Loosen(work / kLoosening) : status;
}

}  // namespace stowage
