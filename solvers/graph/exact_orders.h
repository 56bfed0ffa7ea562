// All compute orders of a small graph that keep its gradient sums (solvers/schedule/gradient_sums.h): those that no other one beats, by exhaustive search. Internal
// to solvers/graph.
//
// Dijkstra's algorithm over what is needed, from the last compute of an order to its first. A state
// is the tensors and extras that later computes wait for, the backwards and the first runs that come
// later. A compute in front of them adds what it needs and takes away what it makes: in this
// direction nothing is ever dropped, so nothing has to be decided about it. A forward of what nobody
// waits for is only run where it is the first. Labels carry the time of repeats and the peak so far,
// and come in this order, so that one search finds the whole frontier.
//
// Every schedule that the evaluator accepts for a graph without aliases takes as long as its compute
// order, or longer, and needs as much memory, or more (solvers/schedule/graph_liveness.h): a search that
// ran to its end proves that no schedule at all is better than what it and `known` have.
#ifndef STOWAGE_SOLVERS_GRAPH_EXACT_ORDERS_H_
#define STOWAGE_SOLVERS_GRAPH_EXACT_ORDERS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/graph/compute_order.h"
#include "solvers/graph/order_search.h"
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

#endif  // STOWAGE_SOLVERS_GRAPH_EXACT_ORDERS_H_
