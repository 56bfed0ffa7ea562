#include "solvers/graph/budget/unfolded_orders.h"

#include <utility>

#include "solvers/plan/graph_liveness.h"
#include "solvers/plan/graph_simulate.h"

namespace stowage {

std::optional<Schedule> UnfoldedOrders::ScheduleOf(const ComputeOrder& order) const {
  Schedule schedule = ToSchedule(order);
  // Members of a group run together, a view among them too late for its place in the sum.
  if (IsFolded()) schedule = sums_.WithViewsInOrder(graph_, UnfoldCompute(folded_, schedule));
  schedule = WithDiscards(graph_, schedule);
  if (!sums_.KeptBy(schedule)) return std::nullopt;
  if (IsFolded() && !SimulateGraph(graph_, schedule).ok()) return std::nullopt;
  return schedule;
}

}  // namespace stowage
