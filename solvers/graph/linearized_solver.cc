#include "solvers/graph/linearized_solver.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/graph/expand.h"
#include "solvers/graph/linearize.h"

namespace stowage {
namespace {

SolverInfo InfoOf(const SolverInfo& chain) {
  SolverInfo info = chain;
  info.schedule_class = absl::StrCat(chain.schedule_class, " over the graph's segments");
  return info;
}

}  // namespace

LinearizedSolver::LinearizedSolver(const ChainSolver* chain_solver)
    : chain_solver_(*chain_solver), info_(InfoOf(chain_solver->info())) {}

absl::StatusOr<Plan> LinearizedSolver::Solve(const Graph& graph, Bytes budget,
                                             const SolveOptions& options) const {
  const absl::StatusOr<LinearizedGraph> linear = Linearize(graph);
  if (!linear.ok()) return linear.status();
  absl::StatusOr<Plan> plan = chain_solver_.Solve(linear->chain, budget, options);
  if (!plan.ok()) return plan.status();
  plan->bounds.schedule_class = info_.schedule_class;
  plan->bounds.proven_optimal = false;
  if (plan->status == PlanStatus::kFound) {
    plan->schedule = ExpandSchedule(graph, *linear, plan->schedule);
  } else if (plan->status == PlanStatus::kProvenInfeasible) {
    plan->status = PlanStatus::kNotFound;
    absl::StrAppend(&plan->explanation, plan->explanation.empty() ? "" : "; ",
                    "proven for the chain of the graph's segments only, whose least budget is ",
                    plan->bounds.least_budget.value(), " bytes");
    plan->bounds.least_budget = Bytes(0);
  }
  return plan;
}

absl::StatusOr<Frontier> LinearizedSolver::SolveFrontier(const Graph& graph,
                                                         const SolveOptions& options) const {
  const absl::StatusOr<LinearizedGraph> linear = Linearize(graph);
  if (!linear.ok()) return linear.status();
  absl::StatusOr<Frontier> frontier = chain_solver_.SolveFrontier(linear->chain, options);
  if (!frontier.ok()) return frontier.status();
  FrontierBuilder builder(graph);
  for (const Frontier::Point& point : frontier->points()) {
    const absl::StatusOr<Plan> plan = frontier->PlanAt(point.peak);
    if (!plan.ok()) return plan.status();
    const absl::Status status = builder.Add(ExpandSchedule(graph, *linear, plan->schedule));
    if (!status.ok()) return status;
  }
  FrontierInfo info = frontier->info();
  info.schedule_class = info_.schedule_class;
  info.least_budget = Bytes(0);
  info.exact = false;
  return builder.Build(std::move(info));
}

absl::StatusOr<Bytes> LinearizedSolver::LeastBudget(const Graph& graph,
                                                    const SolveOptions& options) const {
  const absl::StatusOr<LinearizedGraph> linear = Linearize(graph);
  if (!linear.ok()) return linear.status();
  return chain_solver_.LeastBudget(linear->chain, options);
}

}  // namespace stowage
