#include "solvers/graph/budget/order_search.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

namespace stowage {
namespace {

constexpr int64_t kNoTarget = std::numeric_limits<int64_t>::max();
// Budgets that are worked on, equally far apart.
constexpr int kTargets = 24;

// Fits better: within the target, then faster, then of a lower peak.
bool Better(const OrderCost& a, const OrderCost& b) {
  return std::tie(a.overload, a.forward_time, a.peak) <
         std::tie(b.overload, b.forward_time, b.peak);
}

// Indices of the forwards that are not the vertex's first, those that take longest first.
std::vector<size_t> Repeats(const OpGraph& graph, const ComputeOrder& order) {
  std::vector<bool> ran(static_cast<size_t>(graph.size()), false);
  std::vector<size_t> repeats;
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i].backward) continue;
    const size_t v = static_cast<size_t>(order[i].vertex);
    if (ran[v]) repeats.push_back(i);
    ran[v] = true;
  }
  std::stable_sort(repeats.begin(), repeats.end(), [&](size_t a, size_t b) {
    return graph.costs(order[a].vertex).forward_time > graph.costs(order[b].vertex).forward_time;
  });
  return repeats;
}

}  // namespace

void OrderSearch::Offer(const ComputeOrder& order) {
  pool_.Offer(moves_.Cost(order, kNoTarget), order);
}

absl::Status OrderSearch::Fit(int64_t target, int64_t work, ComputeOrder* order, OrderCost* cost) {
  absl::Status status = moves_.Evict(target, work, order);
  if (!status.ok()) return status;
  *cost = moves_.Cost(*order, target);
  pool_.Offer(*cost, *order);
  if (cost->overload > 0) return absl::OkStatus();
  status = moves_.Retain(target, work, order);
  if (!status.ok()) return status;
  *cost = moves_.Cost(*order, target);
  pool_.Offer(*cost, *order);
  return absl::OkStatus();
}

absl::Status OrderSearch::Vary(int64_t target, int64_t end, ComputeOrder* order, OrderCost* cost) {
  for (bool better = true; better && moves_.work() < end;) {
    better = false;
    for (const size_t repeat : Repeats(graph_, *order)) {
      if (moves_.work() >= end) break;
      ComputeOrder trial = *order;
      trial.erase(trial.begin() + static_cast<ptrdiff_t>(repeat));
      OrderCost trial_cost;
      absl::Status status = Fit(target, end - moves_.work(), &trial, &trial_cost);
      if (!status.ok()) return status;
      if (!Better(trial_cost, *cost)) continue;
      *order = std::move(trial);
      *cost = trial_cost;
      better = true;
      break;
    }
  }
  return absl::OkStatus();
}

absl::Status OrderSearch::ImproveAt(int64_t target, int64_t work) {
  const int64_t end = moves_.work() + work;
  const auto left = [&] { return std::max<int64_t>(end - moves_.work(), 0); };
  // What fits, what nearly does, and plain training.
  std::vector<ComputeOrder> starts;
  const std::vector<OrderPool::Entry>& entries = pool_.entries();
  const size_t within = pool_.Within(target);
  if (within > 0) starts.push_back(entries[within - 1].order);
  for (size_t i = within; i < std::min(within + 2, entries.size()); ++i) {
    starts.push_back(entries[i].order);
  }
  if (within + 2 < entries.size()) starts.push_back(entries.back().order);
  bool found = false;
  ComputeOrder best;
  OrderCost best_cost;
  for (ComputeOrder& start : starts) {
    OrderCost cost;
    absl::Status status = Fit(target, left() / 2, &start, &cost);
    if (!status.ok()) return status;
    if (found && !Better(cost, best_cost)) continue;
    found = true;
    best = std::move(start);
    best_cost = cost;
  }
  if (best_cost.overload > 0) return absl::OkStatus();
  return Vary(target, end, &best, &best_cost);
}

absl::Status OrderSearch::Shrink(int64_t work) {
  const int64_t end = moves_.work() + work;
  while (moves_.work() < end) {
    ComputeOrder order = pool_.entries().front().order;
    const int64_t peak = pool_.entries().front().peak;
    OrderCost cost;
    absl::Status status = Fit(peak - 1 - peak / 64, end - moves_.work(), &order, &cost);
    if (!status.ok()) return status;
    if (pool_.entries().front().peak >= peak) break;
  }
  return absl::OkStatus();
}

absl::Status OrderSearch::Improve(int64_t work, const std::function<void(double)>& progress) {
  const int64_t start = moves_.work();
  const int64_t end = start + work;
  const int64_t high = pool_.entries().back().peak;
  absl::Status status = Shrink(work / 8);
  if (!status.ok()) return status;
  const int64_t low = pool_.entries().front().peak;
  for (int i = 1; i <= kTargets; ++i) {
    const int64_t target =
        high - static_cast<int64_t>(static_cast<double>(high - low) * i / kTargets);
    status = ImproveAt(target, (end - moves_.work()) / (kTargets + 1 - i));
    if (!status.ok()) return status;
    if (progress) progress(static_cast<double>(i) / kTargets);
  }
  return absl::OkStatus();
}

}  // namespace stowage
