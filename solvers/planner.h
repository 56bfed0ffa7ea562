// The facade of the solver library: a profile and a budget in, a refereed plan out.
#ifndef STOWAGE_SOLVERS_PLANNER_H_
#define STOWAGE_SOLVERS_PLANNER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/budget.h"
#include "solvers/model/canonical.h"
#include "solvers/model/problem.h"
#include "solvers/plan/frontier.h"
#include "solvers/plan/plan.h"
#include "solvers/solver.h"

namespace stowage {

inline constexpr char kSolverVersion[] = "0.1.0";

// All solvers there are, in the order `stowage solvers` lists them. Lives as long as the process.
const std::vector<const ChainSolver*>& AllSolvers();

struct PlanOptions {
  // Name of a solver. Empty: store-all whenever it fits, else beyond_persistent on chains of up to
  // 128 stages, optimal_persistent on longer ones, checkpoint_sequential on those too
  // long for it (unless slots are asked for: then the refusal is the answer).
  std::string solver;
  SolveOptions solve;
};

// The chain that a profile is planned on: the chain itself, or a graph cut at its splitting
// vertices (solvers/graph/linearize.h). `stage_vertices`, if given, gets the vertices of each stage
// (ids of the sender).
absl::StatusOr<Chain> PlanningChain(const Profile& profile,
                                    std::vector<std::vector<int64_t>>* stage_vertices = nullptr);

// Budget in bytes: a share by the store-all peak under the profile's costs, "least" by the named
// solver's class.
absl::StatusOr<Bytes> ResolveBudget(const Chain& chain, const Budget& budget,
                                    const PlanOptions& options);

// Plans. Every plan that comes back FOUND was accepted by the referee within the budget. Errors:
// INVALID_ARGUMENT (unknown solver, bad budget or options), CANCELLED, DEADLINE_EXCEEDED,
// RESOURCE_EXHAUSTED. Thread-safe.
absl::StatusOr<Plan> MakePlan(const Profile& profile, const Budget& budget,
                              const PlanOptions& options);

// The same for a chain and a budget already resolved: what MakePlan does after PlanningChain and
// ResolveBudget.
absl::StatusOr<Plan> MakeChainPlan(const Chain& chain, Bytes budget, const PlanOptions& options);

// Replaces a refereed plan's bound by the stronger one (solvers/plan/lower_bound.h): for plans that
// are made or taken over once, not for every answer of a cache; it takes milliseconds. A schedule
// that meets the bound is the fastest of any class.
void TightenBound(const Chain& chain, Plan* plan);

// All budgets at once (solvers/plan/frontier.h), by the same choice of a solver. Errors as for
// MakePlan.
absl::StatusOr<Frontier> MakeFrontier(const Profile& profile, const PlanOptions& options);
absl::StatusOr<Frontier> MakeChainFrontier(const Chain& chain, const PlanOptions& options);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLANNER_H_
