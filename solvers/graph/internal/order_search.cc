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
