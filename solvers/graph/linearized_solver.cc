#include "solvers/graph/linearized_solver.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/graph/linearize.h"
#include "solvers/graph/trivial_plan.h"
#include "solvers/model/field_error.h"
#include "solvers/schedule/instance.h"

namespace stowage {
namespace {

SolverInfo InfoOf(const SolverInfo& chain) {
  SolverInfo info = chain;
  info.chains = false;
  info.graphs = true;
  info.schedule_class = absl::StrCat(chain.schedule_class, ", of the graph cut into a chain");
  return info;
}

}  // namespace

LinearizedSolver::LinearizedSolver(const Solver* chain_solver)
    : chain_solver_(*chain_solver), info_(InfoOf(chain_solver->info())) {}

absl::StatusOr<Plan> LinearizedSolver::DoSolve(const Instance& instance, Bytes budget,
                                               const SolveContext& context) const {
  absl::StatusOr<std::optional<Plan>> easy = TrivialPlan(instance, budget, info_);
  if (!easy.ok()) return easy.status();
  if (easy->has_value()) return **std::move(easy);
  const absl::StatusOr<Frontier> frontier = Expanded(instance, context, /*compact=*/false);
  if (!frontier.ok()) return frontier.status();
  Plan plan = frontier->PlanAt(budget);
  plan.bounds.least_budget = frontier->points().front().peak;
  return plan;
}

absl::StatusOr<Frontier> LinearizedSolver::DoSolveFrontier(const Instance& instance,
                                                           const SolveContext& context) const {
  return Expanded(instance, context, /*compact=*/true);
}

absl::StatusOr<Frontier> LinearizedSolver::Expanded(const Instance& instance,
                                                    const SolveContext& context,
                                                    bool compact) const {
  const Graph& graph = instance.graph();
  const absl::StatusOr<LinearizedGraph> linear = Linearize(graph);
  if (absl::IsInvalidArgument(linear.status())) {
    return FieldError("profile.graph", std::string(linear.status().message()),
                      "must be a chain within its limits when cut at its splitting vertices, for a "
                      "solver of chains");
  }
  if (!linear.ok()) return linear.status();
  absl::StatusOr<Frontier> frontier = chain_solver_.SolveFrontier(linear->chain, context);
  if (!frontier.ok()) return frontier.status();
  FrontierBuilder builder(instance, context.frontier_limit());
  absl::Status status = builder.Add(instance.store_all_schedule());
  StopPoll poll(context.stop());
  for (const Frontier::Point& point : frontier->points()) {
    if (status.ok()) status = poll.Spend(kStepsPerVertex * graph.size());
    if (!status.ok()) return status;
    const Plan plan = frontier->PlanAt(point.peak);
    status = builder.Add(ExpandSchedule(graph, *linear, plan.schedule));
  }
  if (!status.ok()) return status;
  FrontierInfo info = frontier->info();
  info.schedule_class = info_.schedule_class;
  info.least_budget = LeastNeed(graph);
  info.exact = false;
  return compact ? builder.BuildCompact(std::move(info)) : builder.Build(std::move(info));
}

absl::StatusOr<Bytes> LinearizedSolver::DoLeastBudget(const Instance& instance,
                                                      const SolveContext& context) const {
  const absl::StatusOr<Frontier> frontier = DoSolveFrontier(instance, context);
  if (!frontier.ok()) return frontier.status();
  return frontier->points().front().peak;
}

}  // namespace stowage
