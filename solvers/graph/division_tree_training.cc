#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "solvers/graph/compute_order.h"
#include "solvers/graph/fold.h"
#include "solvers/graph/proposals.h"
#include "solvers/graph/solvers.h"
#include "solvers/graph/trivial_plan.h"
#include "solvers/schedule/frontier.h"
#include "solvers/schedule/gradient_sums.h"
#include "solvers/schedule/instance.h"

namespace stowage {
namespace {

class DivisionTreeTraining final : public Solver {
 public:
  const SolverInfo& info() const override { return info_; }

  absl::StatusOr<Plan> DoSolve(const Instance& instance, Bytes budget,
                               const SolveContext& context) const override {
    absl::StatusOr<std::optional<Plan>> easy = TrivialPlan(instance, budget, info_);
    if (!easy.ok()) return easy.status();
    if (easy->has_value()) return **std::move(easy);
    const absl::StatusOr<Frontier> frontier = DoSolveFrontier(instance, context);
    if (!frontier.ok()) return frontier.status();
    Plan plan = frontier->PlanAt(budget);
    plan.bounds.least_budget = frontier->points().front().peak;
    plan.explanation =
        plan.status == PlanStatus::kFound
            ? "keeps the checkpoints of the division tree, recomputes what lies between them"
            : absl::StrCat("training by the checkpoints of the division tree takes ",
                           plan.bounds.least_budget.value(), " bytes");
    return plan;
  }

  absl::StatusOr<Frontier> DoSolveFrontier(const Instance& instance,
                                           const SolveContext& context) const override {
    const Graph& graph = instance.graph();
    const absl::StatusOr<FoldedGraph> folded = FoldAliases(graph);
    if (!folded.ok()) return folded.status();
    const absl::StatusOr<std::vector<int>> segment_of =
        DivisionTreeSegments(graph, *folded, context);
    if (!segment_of.ok()) return segment_of.status();
    const OpGraph ops(folded->graph, GradientSums(graph, folded->members));
    const UnfoldedOrders orders(instance, *folded);
    FrontierBuilder builder(instance, context.frontier_limit());
    absl::Status status = builder.Add(instance.store_all_schedule());
    // Where ops of other segments run between those of the last one, holding it may take more memory.
    for (const bool last_stays : {false, true}) {
      if (status.ok()) status = context.CheckStop();
      if (!status.ok()) return status;
      const std::optional<Schedule> schedule =
          orders.ScheduleOf(CheckpointOrder(ops, *segment_of, last_stays));
      if (schedule) status = builder.Add(*schedule);
    }
    if (!status.ok()) return status;
    return builder.Build(
        {info_.name, info_.schedule_class, LeastNeed(graph), /*exact=*/true, /*slots=*/0});
  }

  absl::StatusOr<Bytes> DoLeastBudget(const Instance& instance,
                                      const SolveContext& context) const override {
    const absl::StatusOr<Frontier> frontier = DoSolveFrontier(instance, context);
    if (!frontier.ok()) return frontier.status();
    return frontier->points().front().peak;
  }

 private:
  const SolverInfo info_ = {
      "division_tree",
      "recomputes between the checkpoints that `stowage checkpoints` finds (Feng & Huang 2018)",
      "plain training, or recomputing between the division tree's checkpoints", /*chains=*/false,
      /*graphs=*/true};
};

}  // namespace

const Solver& DivisionTreeTrainingSolver() {
  static const DivisionTreeTraining* const kSolver = new DivisionTreeTraining;
  return *kSolver;
}

}  // namespace stowage
