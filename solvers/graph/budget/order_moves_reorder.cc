#include <algorithm>
#include <cstddef>

#include "solvers/graph/budget/order_moves.h"
#include "solvers/model/index.h"

namespace stowage {
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

}  // namespace stowage
