// The compute orders that no other one found beats: the state of a search over all budgets. Internal
// to solvers/graph/budget.
#ifndef STOWAGE_SOLVERS_GRAPH_BUDGET_ORDER_POOL_H_
#define STOWAGE_SOLVERS_GRAPH_BUDGET_ORDER_POOL_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "solvers/graph/budget/compute_order.h"

namespace stowage {

// Keeps within a number of bytes, but for the lowest peak and the fastest order, which stay: of the
// others, those go first that are the least faster, by their share, than the next lower peak's.
class OrderPool {
 public:
  struct Entry {
    int64_t peak;
    int64_t forward_time;
    ComputeOrder order;
  };

  explicit OrderPool(int64_t most_bytes) : most_bytes_(most_bytes) {}

  // Keeps it unless an entry of no higher peak is as fast. O(entries).
  void Offer(const OrderCost& cost, const ComputeOrder& order);
  // Peaks rise, times fall.
  const std::vector<Entry>& entries() const { return entries_; }
  // Entries within the budget: the last of them is the fastest. O(log entries).
  size_t Within(int64_t budget) const;

 private:
  // Of all orders.
  int64_t TotalBytes() const;
  void DropLeastGain();

  int64_t most_bytes_;
  std::vector<Entry> entries_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_BUDGET_ORDER_POOL_H_
