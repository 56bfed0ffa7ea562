#include "solvers/graph/budget/order_pool.h"

#include <algorithm>

namespace stowage {

size_t OrderPool::Within(int64_t budget) const {
  const auto over = std::upper_bound(entries_.begin(), entries_.end(), budget,
                                     [](int64_t b, const Entry& entry) { return b < entry.peak; });
  return static_cast<size_t>(over - entries_.begin());
}

void OrderPool::Offer(const OrderCost& cost, const ComputeOrder& order) {
  const size_t within = Within(cost.peak);
  if (within > 0 && entries_[within - 1].forward_time <= cost.forward_time) return;
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), cost.peak,
                                   [](const Entry& e, int64_t peak) { return e.peak < peak; });
  const auto slower = std::find_if(
      at, entries_.end(), [&cost](const Entry& e) { return e.forward_time < cost.forward_time; });
  entries_.insert(entries_.erase(at, slower), {cost.peak, cost.forward_time, order});
}

}  // namespace stowage
