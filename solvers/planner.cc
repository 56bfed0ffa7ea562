#include "solvers/planner.h"

#include <chrono>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "solvers/chain/solvers.h"
#include "solvers/graph/linearize.h"
#include "solvers/model/field_error.h"
#include "solvers/plan/lower_bound.h"
#include "solvers/plan/store_all_schedule.h"

namespace stowage {
namespace {

absl::StatusOr<const ChainSolver*> FindSolver(const std::string& name) {
  for (const ChainSolver* solver : AllSolvers()) {
    if (solver->info().name == name) return solver;
  }
  const std::string names = absl::StrJoin(
      AllSolvers(), ", ",
      [](std::string* out, const ChainSolver* solver) { *out += solver->info().name; });
  return FieldError("options.solver", '"' + name + '"',
                    absl::StrCat("must be empty or one of ", names));
}

// Calls `solve`; memory that cannot be had is an answer, too.
template <class Solve>
auto WithinMemory(Solve solve) -> decltype(solve()) {
  try {
    return solve();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("the machine has not the memory that this solve takes");
  }
}

// Longer chains get the optimal persistent solver: going beyond takes it more than some seconds.
constexpr int kMaxStagesBeyond = 128;

// The planner's own choice, best first; the next one where a chain is too long for the one before.
// Who asks for slots wants a table, or to hear that it is too large.
std::vector<const ChainSolver*> Choice(const Chain& chain, const SolveOptions& options) {
  std::vector<const ChainSolver*> solvers;
  if (chain.length() <= kMaxStagesBeyond) solvers.push_back(&BeyondPersistentSolver());
  solvers.push_back(&OptimalPersistentSolver());
  if (options.slots == 0) solvers.push_back(&CheckpointSequentialSolver());
  return solvers;
}

// What the first of `solvers` says that the chain is not too long for.
template <class Ask>
auto FirstAnswer(const std::vector<const ChainSolver*>& solvers, Ask ask) {
  auto answer = ask(*solvers.front());
  for (size_t i = 1; i < solvers.size() && absl::IsResourceExhausted(answer.status()); ++i) {
    answer = ask(*solvers[i]);
  }
  return answer;
}

absl::StatusOr<Plan> SolveByChoice(const Chain& chain, Bytes budget, const SolveOptions& options) {
  const auto solve = [&](const ChainSolver& solver) {
    absl::StatusOr<Plan> plan = solver.Solve(chain, budget, options);
    if (plan.ok()) plan->provenance.solver = solver.info().name;
    return plan;
  };
  absl::StatusOr<Plan> store_all = solve(StoreAllSolver());
  if (!store_all.ok() || store_all->status == PlanStatus::kFound) return store_all;
  return FirstAnswer(Choice(chain, options), solve);
}

absl::StatusOr<Plan> Solve(const Chain& chain, Bytes budget, const PlanOptions& options) {
  if (options.solver.empty()) return SolveByChoice(chain, budget, options.solve);
  absl::StatusOr<const ChainSolver*> solver = FindSolver(options.solver);
  if (!solver.ok()) return solver.status();
  absl::StatusOr<Plan> plan = (*solver)->Solve(chain, budget, options.solve);
  if (plan.ok()) plan->provenance.solver = options.solver;
  return plan;
}

absl::StatusOr<Frontier> SolveFrontier(const Chain& chain, const PlanOptions& options) {
  if (options.solver.empty()) {
    return FirstAnswer(Choice(chain, options.solve), [&](const ChainSolver& solver) {
      return solver.SolveFrontier(chain, options.solve);
    });
  }
  absl::StatusOr<const ChainSolver*> solver = FindSolver(options.solver);
  if (!solver.ok()) return solver.status();
  return (*solver)->SolveFrontier(chain, options.solve);
}

}  // namespace

const std::vector<const ChainSolver*>& AllSolvers() {
  static const auto* const kSolvers = new std::vector<const ChainSolver*>{
      &StoreAllSolver(),         &CheckpointSequentialSolver(),
      &ChenSqrtSolver(),         &ChenGreedySolver(),
      &RevolveSolver(),          &OptimalPersistentSolver(),
      &BeyondPersistentSolver(),
  };
  return *kSolvers;
}

absl::StatusOr<Chain> PlanningChain(const Profile& profile,
                                    std::vector<std::vector<int64_t>>* stage_vertices) {
  if (stage_vertices != nullptr) stage_vertices->clear();
  if (const Chain* chain = std::get_if<Chain>(&profile.problem)) return *chain;
  absl::StatusOr<LinearizedGraph> linear = Linearize(std::get<Graph>(profile.problem));
  if (!linear.ok()) return linear.status();
  if (stage_vertices != nullptr) *stage_vertices = std::move(linear->stage_vertices);
  return std::move(linear->chain);
}

absl::StatusOr<Bytes> ResolveBudget(const Chain& chain, const Budget& budget,
                                    const PlanOptions& options) {
  absl::Status status = ValidateBudget(budget);
  if (!status.ok()) return status;
  if (const Bytes* bytes = std::get_if<Bytes>(&budget)) return *bytes;
  if (const auto* share = std::get_if<ShareOfStoreAll>(&budget)) {
    absl::StatusOr<Bytes> peak = StoreAllSolver().LeastBudget(chain, options.solve);
    if (!peak.ok()) return peak.status();
    return ShareOf(*share, *peak);
  }
  if (options.solver.empty()) {
    return FirstAnswer(Choice(chain, options.solve), [&](const ChainSolver& solver) {
      return solver.LeastBudget(chain, options.solve);
    });
  }
  absl::StatusOr<const ChainSolver*> solver = FindSolver(options.solver);
  if (!solver.ok()) return solver.status();
  return (*solver)->LeastBudget(chain, options.solve);
}

void TightenBound(const Chain& chain, Plan* plan) {
  plan->bounds.lower_bound = StrongMakespanLowerBound(chain, plan->budget);
  if (plan->status != PlanStatus::kFound) return;
  if (plan->prediction.makespan <= plan->bounds.lower_bound) plan->bounds.proven_optimal = true;
}

absl::StatusOr<Plan> MakeChainPlan(const Chain& chain, Bytes budget, const PlanOptions& options) {
  absl::Status status = ValidateBudget(budget);
  if (status.ok()) status = ValidateSolveOptions(options.solve);
  if (!status.ok()) return status;
  const auto start = std::chrono::steady_clock::now();
  absl::StatusOr<Plan> plan = WithinMemory([&] { return Solve(chain, budget, options); });
  if (!plan.ok()) return plan.status();
  plan->budget = budget;
  plan->provenance.solver_version = kSolverVersion;
  plan->provenance.solve_time = Nanos(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start)
          .count());
  status = Referee(chain, &*plan);
  if (!status.ok()) {
    return absl::InternalError(absl::StrCat("the referee refused a plan of ",
                                            plan->provenance.solver, ": ", status.message()));
  }
  TightenBound(chain, &*plan);
  return plan;
}

absl::StatusOr<Plan> MakePlan(const Profile& profile, const Budget& budget,
                              const PlanOptions& options) {
  std::vector<std::vector<int64_t>> stage_vertices;
  absl::StatusOr<Chain> chain = PlanningChain(profile, &stage_vertices);
  if (!chain.ok()) return chain.status();
  absl::StatusOr<Bytes> bytes = ResolveBudget(*chain, budget, options);
  if (!bytes.ok()) return bytes.status();
  absl::StatusOr<Plan> plan = MakeChainPlan(*chain, *bytes, options);
  if (plan.ok()) plan->stage_vertices = std::move(stage_vertices);
  return plan;
}

absl::StatusOr<Frontier> MakeChainFrontier(const Chain& chain, const PlanOptions& options) {
  absl::Status status = ValidateSolveOptions(options.solve);
  if (!status.ok()) return status;
  return WithinMemory([&] { return SolveFrontier(chain, options); });
}

absl::StatusOr<Frontier> MakeFrontier(const Profile& profile, const PlanOptions& options) {
  absl::StatusOr<Chain> chain = PlanningChain(profile);
  if (!chain.ok()) return chain.status();
  return MakeChainFrontier(*chain, options);
}

}  // namespace stowage
