#include "server/planning/planning_problem.h"

#include <utility>

namespace stowage {

absl::StatusOr<std::shared_ptr<const PlanningProblem>> MakePlanningProblem(
    const Profile& profile, const KeyOptions& options, const DigestFunction& digest) {
  auto problem = std::make_shared<PlanningProblem>();
  absl::StatusOr<Chain> chain = PlanningChain(profile, &problem->stage_vertices);
  if (!chain.ok()) return chain.status();
  if (std::holds_alternative<Chain>(profile.problem)) problem->stage_vertices.clear();
  problem->chain = std::make_shared<const Chain>(*std::move(chain));
  problem->canonical = CanonicalBytes(profile, options);
  problem->key.digest = digest(problem->canonical);
  problem->options = options;
  return std::shared_ptr<const PlanningProblem>(std::move(problem));
}

PlanOptions ToPlanOptions(const KeyOptions& options, const StopToken* stop) {
  PlanOptions plan_options;
  plan_options.solver = options.solver;
  plan_options.solve.slots = options.slots;
  plan_options.solve.stop = stop;
  return plan_options;
}

}  // namespace stowage
