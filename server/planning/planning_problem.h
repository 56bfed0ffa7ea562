// What one request asks to plan. The key is computed here, from the profile: a caller cannot name
// the entry it writes to.
#ifndef STOWAGE_SERVER_PLANNING_PLANNING_PROBLEM_H_
#define STOWAGE_SERVER_PLANNING_PLANNING_PROBLEM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/canonical.h"
#include "solvers/model/problem.h"
#include "solvers/planner.h"

namespace stowage {

struct PlanningProblem {
  std::shared_ptr<const Chain> chain;  // what the profile is planned on, under the caller's costs
  std::vector<std::vector<int64_t>> stage_vertices;  // the caller's own ids; empty for a chain
  std::string canonical;
  PlanKey key;
  KeyOptions options;
};

// Sha256, or in tests a function with collisions.
using DigestFunction = std::function<Digest(const std::string&)>;

// O(size of the profile). INVALID_ARGUMENT when a graph cannot be planned as a chain.
absl::StatusOr<std::shared_ptr<const PlanningProblem>> MakePlanningProblem(
    const Profile& profile, const KeyOptions& options, const DigestFunction& digest);

PlanOptions ToPlanOptions(const KeyOptions& options, const StopToken* stop);

}  // namespace stowage

#endif  // STOWAGE_SERVER_PLANNING_PLANNING_PROBLEM_H_
