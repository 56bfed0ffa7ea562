#include "server/planning/planning_problem.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "solvers/model/field_error.h"
#include "solvers/plan/store_all_schedule.h"

namespace stowage {
namespace {

absl::Status CheckSolver(const std::string& name) {
  const std::vector<const ChainSolver*>& all = AllSolvers();
  const auto named = [&name](const ChainSolver* solver) { return solver->info().name == name; };
  if (name.empty() || std::any_of(all.begin(), all.end(), named)) return absl::OkStatus();
  const std::string names = absl::StrJoin(all, ", ", [](std::string* out, const ChainSolver* s) {
    absl::StrAppend(out, s->info().name);
  });
  return FieldError("options.solver", absl::StrCat("\"", name, "\""),
                    absl::StrCat("must be empty or one of ", names));
}

// The derived chain's fields mean nothing to who sent a graph.
absl::Status GraphError(const absl::Status& status) {
  const std::optional<FieldViolation> violation = GetFieldViolation(status);
  if (!violation)
    return FieldError("profile.graph", std::string(status.message()), "must split into stages");
  return FieldError("profile.graph",
                    absl::StrCat("cut into ", violation->field, " = ", violation->value),
                    violation->rule);
}

absl::StatusOr<Chain> BoundedChain(const Profile& profile, int64_t max_stages,
                                   std::vector<std::vector<int64_t>>* stage_vertices) {
  absl::StatusOr<Chain> chain = PlanningChain(profile, stage_vertices);
  if (std::holds_alternative<Chain>(profile.problem)) {
    stage_vertices->clear();
    return chain;
  }
  if (!chain.ok()) return GraphError(chain.status());
  if (chain->length() <= max_stages) return chain;
  return FieldError("profile.graph", absl::StrCat(chain->length(), " stages"),
                    absl::StrCat("must split into at most ", max_stages, " stages"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<PlanningProblem>> MakePlanningProblem(const Profile& profile,
                                                                     const KeyOptions& options,
                                                                     const DigestFunction& digest,
                                                                     int64_t max_stages) {
  if (absl::Status status = CheckSolver(options.solver); !status.ok()) return status;
  auto problem = std::make_shared<PlanningProblem>();
  absl::StatusOr<Chain> chain = BoundedChain(profile, max_stages, &problem->stage_vertices);
  if (!chain.ok()) return chain.status();
  absl::StatusOr<Simulation> store_all = Simulate(*chain, StoreAllSchedule(*chain));
  if (!store_all.ok()) return store_all.status();
  problem->chain = std::make_shared<const Chain>(*std::move(chain));
  problem->store_all = *store_all;
  problem->canonical = std::make_shared<const std::string>(CanonicalBytes(profile, options));
  problem->key.digest = digest(*problem->canonical);
  problem->options = options;
  return problem;
}

std::optional<Bytes> WithoutSolver(const Budget& budget, Bytes store_all_peak) {
  if (const Bytes* bytes = std::get_if<Bytes>(&budget)) return *bytes;
  const auto* share = std::get_if<ShareOfStoreAll>(&budget);
  if (share == nullptr) return std::nullopt;
  return ShareOf(*share, store_all_peak);
}

}  // namespace stowage
