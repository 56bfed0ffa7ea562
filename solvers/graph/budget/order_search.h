// Search over compute orders for many budgets. Deterministic; effort is counted, not timed. Internal
// to solvers/graph/budget.
#ifndef STOWAGE_SOLVERS_GRAPH_BUDGET_ORDER_SEARCH_H_
#define STOWAGE_SOLVERS_GRAPH_BUDGET_ORDER_SEARCH_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "solvers/graph/budget/order_moves.h"
#include "solvers/graph/budget/order_pool.h"

namespace stowage {

class OrderSearch {
 public:
  OrderSearch(const OpGraph& graph, const SolveOptions& options)
      : graph_(graph), moves_(graph, options.stop), pool_(options.table_limit.value() / 4) {}

  // A proposal. Its first runs must follow their inputs. Ignored if it does not keep gradient sums.
  void Offer(const ComputeOrder& order);

  // Improves what there is, for budgets between the least peak there is, or below, and the highest.
  // Spends about `work` computes and edges.
  absl::Status Improve(int64_t work, const std::function<void(double)>& progress);

  const OrderPool& pool() const { return pool_; }

 private:
  absl::Status FitFrom(int64_t target, size_t entry, int64_t end);
  absl::Status VaryAt(int64_t target, int64_t end);
  // Makes the order fit and takes back what room there is for.
  absl::Status Fit(int64_t target, int64_t work, ComputeOrder* order, OrderCost* cost);
  // Takes out one repeat after the other and makes the order fit again another way.
  absl::Status Vary(int64_t target, int64_t end, ComputeOrder* order, OrderCost* cost);
  absl::Status Shrink(int64_t work);

  const OpGraph& graph_;
  OrderMoves moves_;
  OrderPool pool_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_BUDGET_ORDER_SEARCH_H_
