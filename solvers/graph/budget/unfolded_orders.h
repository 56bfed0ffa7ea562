// Compute orders of a graph without aliases as schedules of the graph that it was folded from. Internal
// to solvers/graph/budget.
#ifndef STOWAGE_SOLVERS_GRAPH_BUDGET_UNFOLDED_ORDERS_H_
#define STOWAGE_SOLVERS_GRAPH_BUDGET_UNFOLDED_ORDERS_H_

#include <optional>

#include "solvers/graph/budget/compute_order.h"
#include "solvers/graph/fold.h"
#include "solvers/model/graph.h"
#include "solvers/plan/gradient_sums.h"
#include "solvers/plan/schedule.h"

namespace stowage {

// Immutable; both graphs outlive it.
class UnfoldedOrders {
 public:
  // `folded` is what FoldAliases made of `graph`. O(V + E).
  UnfoldedOrders(const Graph& graph, const FoldedGraph& folded)
      : graph_(graph), folded_(folded), sums_(graph) {}

  // Whether the graph has aliases: what is proven of the folded graph is then no proof of this one.
  bool IsFolded() const { return folded_.graph.size() != graph_.size(); }

  // The order's schedule, with its discards. Nothing where the order is none of the graph's: a value
  // that is written over in place before all have read it, or the gradient of a view among others that
  // a tensor adds up in another order. O((V + E + computes) log computes).
  std::optional<Schedule> ScheduleOf(const ComputeOrder& order) const;

 private:
  const Graph& graph_;
  const FoldedGraph& folded_;
  const GradientSums sums_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_BUDGET_UNFOLDED_ORDERS_H_
