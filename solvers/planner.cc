#include "solvers/planner.h"

#include <chrono>
#include <optional>

namespace stowage {
namespace {

Instance Planned(const Instance& instance, const PlanOptions& options) {
  return options.recompute_only ? instance.WithLink(std::nullopt) : instance;
}

}  // namespace

std::vector<std::vector<int64_t>> StepVertices(const Problem& problem) {
  std::vector<std::vector<int64_t>> vertices;
  if (const Graph* graph = std::get_if<Graph>(&problem)) {
    for (int p = 0; p < graph->size(); ++p) vertices.push_back({graph->vertex(p).id});
  }
  return vertices;
}

absl::StatusOr<Bytes> ResolveBudget(const Instance& instance, const Budget& budget,
                                    const PlanOptions& options) {
  absl::Status status = ValidateBudget(budget);
  if (!status.ok()) return status;
  if (const Bytes* bytes = std::get_if<Bytes>(&budget)) return *bytes;
  const absl::StatusOr<Simulation>& plain = instance.store_all();
  if (!plain.ok()) return plain.status();
  if (const auto* share = std::get_if<ShareOfStoreAll>(&budget)) {
    return ShareOf(*share, plain->peak);
  }
  const Instance planned = Planned(instance, options);
  const absl::StatusOr<const Solver*> solver = FindSolver(planned, options.solver);
  if (!solver.ok()) return solver.status();
  return (*solver)->LeastBudget(planned, options.solve);
}

absl::StatusOr<Plan> MakePlan(const Instance& instance, const Budget& budget,
                              const PlanOptions& options) {
  const Instance remembering = instance.Remembering();
  const absl::StatusOr<Bytes> bytes = ResolveBudget(remembering, budget, options);
  if (!bytes.ok()) return bytes.status();
  const Instance planned = Planned(remembering, options);
  const absl::StatusOr<const Solver*> solver = FindSolver(planned, options.solver);
  if (!solver.ok()) return solver.status();
  const auto start = std::chrono::steady_clock::now();
  absl::StatusOr<Plan> plan = (*solver)->Solve(planned, *bytes, options.solve);
  if (!plan.ok()) return plan.status();
  plan->provenance.solver_version = kSolverVersion;
  plan->provenance.solve_time = Nanos(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start)
          .count());
  StrengthenBound(planned, &*plan);
  plan->stage_vertices = StepVertices(instance.problem());
  return plan;
}

absl::StatusOr<Frontier> MakeFrontier(const Instance& instance, const PlanOptions& options) {
  const Instance planned = Planned(instance, options);
  const absl::StatusOr<const Solver*> solver = FindSolver(planned, options.solver);
  if (!solver.ok()) return solver.status();
  return (*solver)->SolveFrontier(planned, options.solve);
}

}  // namespace stowage
