// What one request asks to plan. The key is computed here, from the profile: a caller cannot name
// the entry it writes to.
#ifndef STOWAGE_SERVER_ENTRIES_PLANNING_PROBLEM_H_
#define STOWAGE_SERVER_ENTRIES_PLANNING_PROBLEM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/entries/plan_entry.h"
#include "solvers/model/budget.h"
#include "solvers/model/canonical.h"
#include "solvers/model/problem.h"
#include "solvers/planner.h"
#include "solvers/schedule/instance.h"

namespace stowage {

struct PlanningProblem {
  // What is planned, under the caller's costs and with the link that its plans may use.
  std::shared_ptr<const Instance> costs;
  std::vector<std::vector<int64_t>> stage_vertices;  // the caller's own ids; empty for a chain
  // What store-all takes on it: replayed once for all that is judged under these costs.
  Simulation store_all;
  // Shared with the others of a flight: a long chain's bytes need not wait once per caller.
  std::shared_ptr<const std::string> canonical;
  PlanKey key;
  KeyOptions options;
  std::string name;       // of the network, for people
  uint64_t job = 0;       // JobHash of who asks
  uint64_t identity = 0;  // IdentityHash of the same
  // What it counts as among the open requests, kept as long as the problem is; may be null.
  std::shared_ptr<const void> charge;
};

// Bytes of memory that it holds, near enough to bound a sum by. O(stages or vertices).
Bytes MemoryOf(const PlanningProblem& problem);

// Sha256, or in tests a function with collisions.
using DigestFunction = std::function<Digest(const std::string&)>;

// O(size of the profile). INVALID_ARGUMENT made by FieldError: no such solver, or a graph that not
// even plain training could run.
absl::StatusOr<std::shared_ptr<PlanningProblem>> MakePlanningProblem(const Profile& profile,
                                                                     const KeyOptions& options,
                                                                     const DigestFunction& digest);

// The question that an entry answers, under its costs of reference: to solve it anew. Null if the
// canonical bytes are not of this version. O(canonical bytes).
std::shared_ptr<PlanningProblem> ProblemOfEntry(const PlanKey& key, const PlanEntry& entry);

// The budget in bytes without a solver; nothing for "least", which needs one.
std::optional<Bytes> WithoutSolver(const Budget& budget, Bytes store_all_peak);

}  // namespace stowage

#endif  // STOWAGE_SERVER_ENTRIES_PLANNING_PROBLEM_H_
