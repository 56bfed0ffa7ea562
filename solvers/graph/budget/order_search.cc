#include "solvers/graph/budget/order_search.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "solvers/base/fraction_power.h"

namespace stowage {
namespace {

constexpr int64_t kNoTarget = std::numeric_limits<int64_t>::max();
// Budgets that are worked on; fewer on graphs where each of them takes much of the work.
constexpr int kTargets = 64;
constexpr int kTargetsOfLarge = 48;
constexpr int kLarge = 512;

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

void OrderSearch::Offer(const ComputeOrder& order) {
  if (!KeepsGradientSums(graph_, order)) return;
  pool_.Offer(moves_.Cost(order, kNoTarget), moves_.WithoutDead(order));
}

absl::Status OrderSearch::Fit(int64_t target, int64_t work, ComputeOrder* order, OrderCost* cost) {
  absl::Status status = moves_.Reorder(target, work / 4, order);
  if (status.ok()) status = moves_.Evict(target, work, order);
  if (!status.ok()) return status;
  *cost = moves_.Cost(*order, target);
  pool_.Offer(*cost, moves_.WithoutDead(*order));
  if (cost->overload > 0) {
    status = moves_.Reorder(target, work / 4, order);
    if (status.ok()) status = moves_.Evict(target, work, order);
    if (!status.ok()) return status;
    *cost = moves_.Cost(*order, target);
    pool_.Offer(*cost, moves_.WithoutDead(*order));
    if (cost->overload > 0) return absl::OkStatus();
  }
  status = moves_.Retain(target, work, order);
  if (!status.ok()) return status;
  *cost = moves_.Cost(*order, target);
  pool_.Offer(*cost, moves_.WithoutDead(*order));
  return absl::OkStatus();
}

absl::Status OrderSearch::Vary(int64_t target, int64_t end, ComputeOrder* order, OrderCost* cost) {
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

absl::Status OrderSearch::FitFrom(int64_t target, size_t entry, int64_t end) {
  if (entry >= pool_.entries().size()) return absl::OkStatus();
  ComputeOrder order = pool_.entries()[entry].order;
  OrderCost cost;
  return Fit(target, std::max<int64_t>(end - moves_.work(), 0), &order, &cost);
}

absl::Status OrderSearch::VaryAt(int64_t target, int64_t end) {
  const size_t within = pool_.Within(target);
  if (within == 0) return absl::OkStatus();
  ComputeOrder order = pool_.entries()[within - 1].order;
  OrderCost cost = moves_.Cost(order, target);
  return Vary(target, end, &order, &cost);
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

absl::Status OrderSearch::Improve(int64_t work, const std::function<void(double)>& progress) {
  const int64_t start = moves_.work();
  absl::Status status = Shrink(work / 16);
  if (!status.ok()) return status;
  // A graph without bytes has peaks of 0.
  const auto bytes = [](int64_t peak) { return static_cast<double>(std::max<int64_t>(peak, 1)); };
  const double low = bytes(pool_.entries().front().peak);
  const double high = bytes(pool_.entries().back().peak);
  const bool large = graph_.size() > kLarge;
  const int targets = large ? kTargetsOfLarge : kTargets;
  // From `high` down, each the same share below the one before; of smaller graphs a quarter of the
  // way to equal steps, denser where plain training nearly fits.
  const auto target_at = [&](int i) {
    const double part = static_cast<double>(i) / targets;
    const double shares = high * FractionPower(low / high, part),
                 steps = high + (low - high) * part;
    return static_cast<int64_t>(large ? shares : (3.0 * shares + steps) / 4.0);
  };
  // Calls `step` with every target, highest first, and its share of the work up to `share`.
  const auto for_targets = [&](double share, const auto& step) {
    const int64_t end = start + static_cast<int64_t>(static_cast<double>(work) * share);
    for (int i = 1; i <= targets && status.ok(); ++i) {
      const int64_t left = std::max<int64_t>(end - moves_.work(), 0);
      status = step(target_at(i), moves_.work() + left / (targets + 1 - i));
      if (progress)
        progress(static_cast<double>(moves_.work() - start) / static_cast<double>(work));
    }
  };
  for_targets(0.25, [&](int64_t target, int64_t end) {
    const size_t within = pool_.Within(target);
    absl::Status fitted = FitFrom(target, within, end);
    const size_t now_within = pool_.Within(target);
    if (fitted.ok() && now_within > 0) fitted = FitFrom(target, now_within - 1, end);
    return fitted;
  });
  for_targets(0.5, [&](int64_t target, int64_t end) {
    return FitFrom(target, pool_.entries().size() - 1, end);
  });
  for_targets(1.0, [&](int64_t target, int64_t end) { return VaryAt(target, end); });
  return status;
}

}  // namespace stowage
