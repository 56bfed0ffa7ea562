// The facade of the solver library: a profile and a budget in, a refereed plan out.
#ifndef STOWAGE_SOLVERS_PLANNER_H_
#define STOWAGE_SOLVERS_PLANNER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/graph/graph_solver.h"
#include "solvers/model/budget.h"
#include "solvers/model/canonical.h"
#include "solvers/model/problem.h"
#include "solvers/plan/frontier.h"
#include "solvers/plan/linked_problem.h"
#include "solvers/plan/plan.h"
#include "solvers/solver.h"

namespace stowage {

// Also that of the project, its programs and its images. Rises with every change after which a request
// may get another plan, or the same plan another prediction: services then solve anew what they keep.
inline constexpr char kSolverVersion[] = "0.1.1";

// All solvers of chains, in the order `stowage solvers` lists them. Lives as long as the process.
const std::vector<const ChainSolver*>& AllSolvers();

// Those of them that copy nothing. Where there is no link to host memory, what the others find is what one of
// these does, too.
const std::vector<const ChainSolver*>& RecomputeSolvers();

// The same for graphs: the solvers made for them, then every chain solver that copies nothing on the
// chain that a graph is cut into at its splitting vertices (solvers/graph/linearized_solver.h).
const std::vector<const GraphSolver*>& AllGraphSolvers();

// What people are told: every solver once, those of chains (of which those that copy nothing plan
// graphs as chains, too), then those made for graphs.
std::vector<SolverInfo> SolverInfos();

// INVALID_ARGUMENT made by FieldError unless the name is empty or that of a solver for the problem's
// kind.
absl::Status CheckSolverName(const Problem& problem, const std::string& name);

struct PlanOptions {
  // Name of a solver for the problem's kind. Empty: the planner chooses. Where there is a link, joint
  // (solvers/joint/joint_solver.h, solvers/graph/joint/solvers.h); else for chains as
  // solvers/chain/solvers.h says, for graphs order_search (solvers/graph/budget/solvers.h).
  std::string solver;
  // With solve.transfers, the link that plans may use: they are judged and bounded with it, whichever
  // solver makes them. For a profile it is set to that of the device.
  SolveOptions solve;
  // Plans copy nothing to host memory, whatever link there is.
  bool recompute_only = false;
};

// What the numbers of a plan's instructions mean to the sender (Plan.stage_vertices): of a graph,
// the id of each vertex in program order; of a chain nothing, its stages are numbered.
std::vector<std::vector<int64_t>> StepVertices(const Problem& problem);

// Budget in bytes: a share by the store-all peak under the problem's costs, "least" by the named
// solver's class. Errors as for MakePlan; a budget in bytes is not looked at further.
absl::StatusOr<Bytes> ResolveBudget(const Profile& profile, const Budget& budget,
                                    const PlanOptions& options);
absl::StatusOr<Bytes> ResolveBudget(const Problem& problem, const Budget& budget,
                                    const PlanOptions& options);
absl::StatusOr<Bytes> ResolveBudget(const Chain& chain, const Budget& budget,
                                    const PlanOptions& options);

// Plans. Every plan that comes back FOUND was accepted by the referee within the budget. Errors:
// INVALID_ARGUMENT (unknown solver, bad budget or options, a graph that plain training cannot run
// because a vertex in place writes over what a backward needs: PlainTraining in
// solvers/plan/problem_referee.h), CANCELLED, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED. Thread-safe.
absl::StatusOr<Plan> MakePlan(const Profile& profile, const Budget& budget,
                              const PlanOptions& options);

// The same for a budget that is resolved already; Plan.stage_vertices is left empty.
absl::StatusOr<Plan> MakePlan(const Problem& problem, Bytes budget, const PlanOptions& options);
absl::StatusOr<Plan> MakeChainPlan(const Chain& chain, Bytes budget, const PlanOptions& options);

// Replaces a refereed plan's bound by the strongest there is (solvers/plan/lower_bound.h,
// graph_lower_bound.h, transfer_lower_bound.h): for plans that are made or taken over once, not for
// every answer of a cache; it takes milliseconds. A schedule that meets the bound is the fastest of
// any class.
void TightenBound(const Chain& chain, Plan* plan);
void TightenBound(const LinkedProblem& linked, Plan* plan);

// All budgets at once (solvers/plan/frontier.h), by the same choice of a solver. Errors as for
// MakePlan.
absl::StatusOr<Frontier> MakeFrontier(const Profile& profile, const PlanOptions& options);
absl::StatusOr<Frontier> MakeFrontier(const Problem& problem, const PlanOptions& options);
absl::StatusOr<Frontier> MakeChainFrontier(const Chain& chain, const PlanOptions& options);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLANNER_H_
