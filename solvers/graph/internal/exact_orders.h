// All compute orders of a small graph that keep its gradient sums (solvers/schedule/gradient_sums.h): those that no
// other one beats, by exhaustive search (algorithms.md).
#ifndef STOWAGE_SOLVERS_GRAPH_INTERNAL_EXACT_ORDERS_H_
#define STOWAGE_SOLVERS_GRAPH_INTERNAL_EXACT_ORDERS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/graph/internal/compute_order.h"
#include "solvers/graph/internal/order_search.h"
#include "solvers/solver.h"

namespace stowage {

constexpr int kMaxExactVertices = 20;

struct ExactOrders {
  // Better than what was known, each at its own peak.
  std::vector<ComputeOrder> orders;
  // Nothing else is better.
  bool complete = false;
  int64_t labels = 0;
};

// `known` has an order for every vertex running once; `peak_lower_bound`: no peak is lower. Stops, not
// complete, before it makes more than `max_labels`; some 100 bytes each. CANCELLED, DEADLINE_EXCEEDED.
// At most kMaxExactVertices vertices.
absl::StatusOr<ExactOrders> SearchAllOrders(const OpGraph& graph, const OrderPool& known,
                                            int64_t peak_lower_bound, int64_t max_labels,
                                            const StopToken* stop);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_INTERNAL_EXACT_ORDERS_H_
