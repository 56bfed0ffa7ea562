#include "solvers/graph/budget/order_pool.h"

#include <algorithm>
#include <cstddef>

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

}  // namespace stowage
