#include "server/entries/planning_problem.h"

#include <utility>

#include "solvers/registry.h"

namespace stowage {

Bytes MemoryOf(const PlanningProblem& problem) {
  size_t bytes = sizeof(PlanningProblem) + problem.canonical->capacity();
  for (const std::vector<int64_t>& vertices : problem.stage_vertices) {
    bytes += sizeof(vertices) + vertices.capacity() * sizeof(int64_t);
  }
  return ChargeOf(*problem.costs) + Bytes(static_cast<int64_t>(bytes));
}

absl::StatusOr<std::shared_ptr<PlanningProblem>> MakePlanningProblem(const Profile& profile,
                                                                     const KeyOptions& options,
                                                                     const DigestFunction& digest) {
  auto costs = std::make_shared<const Instance>(InstanceOf(profile, options.recompute_only));
  const absl::StatusOr<const Solver*> solver = FindSolver(*costs, options.solver);
  if (!solver.ok()) return solver.status();
  const absl::StatusOr<Simulation>& store_all = costs->store_all();
  if (!store_all.ok()) return store_all.status();
  auto problem = std::make_shared<PlanningProblem>();
  problem->costs = std::move(costs);
  problem->stage_vertices = StepVertices(profile.problem);
  problem->store_all = *store_all;
  problem->canonical = std::make_shared<const std::string>(CanonicalBytes(profile, options));
  problem->key.digest = digest(*problem->canonical);
  problem->options = options;
  problem->name = profile.name;
  return problem;
}

std::shared_ptr<PlanningProblem> ProblemOfEntry(const PlanKey& key, const PlanEntry& entry) {
  const std::optional<KeyOptions> options = OptionsIn(entry.canonical);
  if (!options) return nullptr;
  auto problem = std::make_shared<PlanningProblem>();
  problem->costs = entry.reference;
  problem->stage_vertices = StepVertices(entry.reference->problem());
  problem->store_all = entry.store_all;
  problem->canonical = std::make_shared<const std::string>(entry.canonical);
  problem->key = key;
  problem->options = *options;
  problem->options.recompute_only = !entry.reference->link();
  problem->name = entry.name;
  return problem;
}

std::optional<Bytes> WithoutSolver(const Budget& budget, Bytes store_all_peak) {
  if (const Bytes* bytes = std::get_if<Bytes>(&budget)) return *bytes;
  const auto* share = std::get_if<ShareOfStoreAll>(&budget);
  if (share == nullptr) return std::nullopt;
  return ShareOf(*share, store_all_peak);
}

}  // namespace stowage
