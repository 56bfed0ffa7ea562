#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/graph/budget/order_frontier.h"
#include "solvers/graph/budget/order_solving.h"
#include "solvers/graph/budget/solvers.h"
#include "solvers/graph/easy_plan.h"
#include "solvers/graph/least_need.h"
#include "solvers/plan/graph_lower_bound.h"

namespace stowage {
namespace {

class OrderSearchSolverImpl final : public GraphSolver {
 public:
  const SolverInfo& info() const override { return OrderSearchInfo(); }

  absl::StatusOr<Plan> Solve(const Graph& graph, Bytes budget,
                             const SolveOptions& options) const override {
    absl::StatusOr<std::optional<Plan>> easy = EasyPlan(graph, budget, OrderSearchInfo(), options);
    if (!easy.ok()) return easy.status();
    if (easy->has_value()) return **std::move(easy);
    bool cut_short = false;
    const absl::StatusOr<Frontier> frontier =
        SearchOrders(graph, options, /*compact=*/false, budget, &cut_short);
    if (!frontier.ok()) return frontier.status();
    absl::StatusOr<Plan> found = frontier->PlanAt(budget);
    if (!found.ok()) return found.status();
    Explain(graph, *frontier, &*found);
    found->search_complete = !cut_short;
    if (cut_short) found->explanation = "the deadline cut the search short";
    return found;
  }

  absl::StatusOr<Frontier> SolveFrontier(const Graph& graph,
                                         const SolveOptions& options) const override {
    return SearchOrders(graph, options, /*compact=*/true);
  }

  absl::StatusOr<Bytes> LeastBudget(const Graph& graph,
                                    const SolveOptions& options) const override {
    const absl::StatusOr<Frontier> frontier = SolveFrontier(graph, options);
    if (!frontier.ok()) return frontier.status();
    return frontier->points().front().peak;
  }

 private:
  static void Explain(const Graph& graph, const Frontier& frontier, Plan* plan) {
    const Bytes least = frontier.points().front().peak;
    plan->bounds.least_budget = least;
    if (plan->status == PlanStatus::kFound) {
      plan->bounds.proven_optimal =
          frontier.info().exact ||
          frontier.At(plan->budget)->makespan <= MakespanLowerBound(graph, plan->budget);
    }
    if (plan->status != PlanStatus::kNotFound) return;
    plan->explanation = absl::StrCat(
        "plain training, checkpoints, chain solvers and a search from what they propose "
        "found nothing below ",
        least.value(), " bytes; proven is that ", LeastNeed(graph).value(), " are needed");
  }
};

}  // namespace

absl::StatusOr<Frontier> AllOrders(const Graph& graph, const SolveOptions& options) {
  return SearchOrders(graph, options, /*compact=*/false);
}

const GraphSolver& OrderSearchSolver() {
  static const OrderSearchSolverImpl* const kSolver = new OrderSearchSolverImpl;
  return *kSolver;
}

}  // namespace stowage
