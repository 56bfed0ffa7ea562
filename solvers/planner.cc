#include "solvers/planner.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "solvers/chain/solvers.h"
#include "solvers/graph/budget/solvers.h"
#include "solvers/graph/joint/solvers.h"
#include "solvers/graph/linearized_solver.h"
#include "solvers/joint/joint_solver.h"
#include "solvers/model/field_error.h"
#include "solvers/offload/offload_solver.h"
#include "solvers/plan/lower_bound.h"
#include "solvers/plan/problem_referee.h"

namespace stowage {
namespace {

// The solver of that name among those for the problem's kind.
template <class Solver>
absl::StatusOr<const Solver*> Find(const std::vector<const Solver*>& all, const std::string& name) {
  for (const Solver* solver : all) {
    if (solver->info().name == name) return solver;
  }
  const std::string names = absl::StrJoin(
      all, ", ", [](std::string* out, const Solver* solver) { *out += solver->info().name; });
  return FieldError("options.solver", '"' + name + '"',
                    absl::StrCat("must be empty or one of ", names));
}

absl::StatusOr<const ChainSolver*> SolverFor(const Chain&, const std::string& name, bool linked) {
  if (name.empty()) return linked ? &JointSolver() : &ChosenChainSolver();
  return Find(AllSolvers(), name);
}

absl::StatusOr<const GraphSolver*> SolverFor(const Graph&, const std::string& name, bool linked) {
  if (name.empty()) return linked ? &JointGraphSolver() : &OrderSearchSolver();
  return Find(AllGraphSolvers(), name);
}

// Calls `solve`; memory that cannot be had is an answer, too.
template <class Solve>
auto WithinMemory(Solve solve) -> decltype(solve()) {
  try {
    return solve();
  } catch (const std::bad_alloc&) {
    return SolveOutOfMemoryError();
  }
}

PlanOptions WithLinkOf(const Profile& profile, PlanOptions options) {
  options.solve.transfers = TransfersOf(profile.device);
  return options;
}

SolveOptions SolveOptionsOf(const PlanOptions& options) {
  SolveOptions solve = options.solve;
  if (options.recompute_only) solve.transfers.reset();
  return solve;
}

template <class Kind>
absl::Status RefereeWithin(const Kind& kind, const SolveOptions& options, Plan* plan) {
  return options.transfers ? Referee(kind, *options.transfers, plan) : Referee(kind, plan);
}

Nanos StrongestBound(const Chain& chain, const std::optional<TransferModel>& transfers,
                     Bytes budget) {
  return transfers ? MakespanLowerBound(chain, *transfers, budget)
                   : StrongMakespanLowerBound(chain, budget);
}

Nanos StrongestBound(const Graph& graph, const std::optional<TransferModel>& transfers,
                     Bytes budget) {
  return transfers ? MakespanLowerBound(graph, *transfers, budget)
                   : MakespanLowerBound(graph, budget);
}

// As the validator lowers its own (Plan::Bounds): a bound is of schedules that run nothing on the
// communication stream, and one that does is faster by no more than its time there.
void Tighten(Nanos lower_bound, Plan* plan) {
  plan->bounds.lower_bound = lower_bound;
  if (plan->status != PlanStatus::kFound) return;
  lower_bound -= std::min(lower_bound, plan->prediction.communication_time);
  plan->bounds.lower_bound = lower_bound;
  if (plan->prediction.makespan <= lower_bound) plan->bounds.proven_optimal = true;
}

template <class Kind>
absl::StatusOr<Bytes> ResolveBudgetOf(const Kind& kind, const Budget& budget,
                                      const PlanOptions& options) {
  absl::Status status = ValidateBudget(budget);
  if (!status.ok()) return status;
  if (const Bytes* bytes = std::get_if<Bytes>(&budget)) return *bytes;
  const absl::StatusOr<Simulation> plain = PlainTraining(kind);
  if (!plain.ok()) return plain.status();
  if (const auto* share = std::get_if<ShareOfStoreAll>(&budget))
    return ShareOf(*share, plain->peak);
  const SolveOptions solve = SolveOptionsOf(options);
  status = ValidateSolveOptions(solve);
  if (!status.ok()) return status;
  const auto solver = SolverFor(kind, options.solver, solve.transfers.has_value());
  if (!solver.ok()) return solver.status();
  return WithinMemory([&] { return (*solver)->LeastBudget(kind, solve); });
}

template <class Kind>
absl::StatusOr<Plan> Solve(const Kind& kind, Bytes budget, const std::string& name,
                           const SolveOptions& options) {
  const auto solver = SolverFor(kind, name, options.transfers.has_value());
  if (!solver.ok()) return solver.status();
  absl::StatusOr<Plan> plan = WithinMemory([&] { return (*solver)->Solve(kind, budget, options); });
  if (plan.ok() && plan->provenance.solver.empty()) {
    plan->provenance.solver = (*solver)->info().name;
  }
  return plan;
}

template <class Kind>
absl::StatusOr<Plan> MakePlanOf(const Kind& kind, Bytes budget, const PlanOptions& options) {
  const SolveOptions solve = SolveOptionsOf(options);
  absl::Status status = ValidateBudget(budget);
  if (status.ok()) status = ValidateSolveOptions(solve);
  if (status.ok()) status = PlainTraining(kind).status();
  if (!status.ok()) return status;
  const auto start = std::chrono::steady_clock::now();
  absl::StatusOr<Plan> plan = Solve(kind, budget, options.solver, solve);
  if (!plan.ok()) return plan.status();
  plan->budget = budget;
  plan->provenance.solver_version = kSolverVersion;
  plan->provenance.solve_time = Nanos(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start)
          .count());
  status = RefereeWithin(kind, solve, &*plan);
  if (!status.ok()) {
    return absl::InternalError(absl::StrCat("the referee refused a plan of ",
                                            plan->provenance.solver, ": ", status.message()));
  }
  Tighten(StrongestBound(kind, solve.transfers, budget), &*plan);
  return plan;
}

template <class Kind>
absl::StatusOr<Frontier> MakeFrontierOf(const Kind& kind, const PlanOptions& options) {
  const SolveOptions solve = SolveOptionsOf(options);
  absl::Status status = ValidateSolveOptions(solve);
  if (status.ok()) status = PlainTraining(kind).status();
  if (!status.ok()) return status;
  const auto solver = SolverFor(kind, options.solver, solve.transfers.has_value());
  if (!solver.ok()) return solver.status();
  return WithinMemory([&] { return (*solver)->SolveFrontier(kind, solve); });
}

}  // namespace

const std::vector<const ChainSolver*>& RecomputeSolvers() {
  static const auto* const kSolvers =
      new std::vector<const ChainSolver*>{&StoreAllSolver(),        &CheckpointSequentialSolver(),
                                          &ChenSqrtSolver(),        &ChenGreedySolver(),
                                          &RevolveSolver(),         &OptimalPersistentSolver(),
                                          &BeyondPersistentSolver()};
  return *kSolvers;
}

const std::vector<const ChainSolver*>& AllSolvers() {
  static const auto* const kSolvers = [] {
    auto* solvers = new std::vector<const ChainSolver*>(RecomputeSolvers());
    solvers->push_back(&JointSolver());
    solvers->insert(solvers->end(), OffloadSolvers().begin(), OffloadSolvers().end());
    return solvers;
  }();
  return *kSolvers;
}

const std::vector<const GraphSolver*>& AllGraphSolvers() {
  static const auto* const kSolvers = [] {
    auto* solvers = new std::vector<const GraphSolver*>{&OrderSearchSolver(), &JointGraphSolver(),
                                                        &DivisionTreeTrainingSolver()};
    for (const ChainSolver* solver : RecomputeSolvers()) {
      solvers->push_back(new LinearizedSolver(solver));
    }
    return solvers;
  }();
  return *kSolvers;
}

std::vector<SolverInfo> SolverInfos() {
  std::vector<SolverInfo> infos;
  for (const ChainSolver* solver : AllSolvers()) infos.push_back(solver->info());
  for (const GraphSolver* solver : {&OrderSearchSolver(), &DivisionTreeTrainingSolver()}) {
    infos.push_back(solver->info());
  }
  return infos;
}

absl::Status CheckSolverName(const Problem& problem, const std::string& name) {
  return std::visit([&name](const auto& kind) { return SolverFor(kind, name, false).status(); },
                    problem);
}

std::vector<std::vector<int64_t>> StepVertices(const Problem& problem) {
  std::vector<std::vector<int64_t>> vertices;
  if (const Graph* graph = std::get_if<Graph>(&problem)) {
    for (int p = 0; p < graph->size(); ++p) vertices.push_back({graph->vertex(p).id});
  }
  return vertices;
}

absl::StatusOr<Bytes> ResolveBudget(const Problem& problem, const Budget& budget,
                                    const PlanOptions& options) {
  return std::visit([&](const auto& kind) { return ResolveBudgetOf(kind, budget, options); },
                    problem);
}

absl::StatusOr<Bytes> ResolveBudget(const Profile& profile, const Budget& budget,
                                    const PlanOptions& options) {
  return ResolveBudget(profile.problem, budget, WithLinkOf(profile, options));
}

absl::StatusOr<Plan> MakePlan(const Problem& problem, Bytes budget, const PlanOptions& options) {
  return std::visit([&](const auto& kind) { return MakePlanOf(kind, budget, options); }, problem);
}

absl::StatusOr<Plan> MakePlan(const Profile& profile, const Budget& budget,
                              const PlanOptions& options) {
  const PlanOptions linked = WithLinkOf(profile, options);
  const absl::StatusOr<Bytes> bytes = ResolveBudget(profile.problem, budget, linked);
  if (!bytes.ok()) return bytes.status();
  absl::StatusOr<Plan> plan = MakePlan(profile.problem, *bytes, linked);
  if (plan.ok()) plan->stage_vertices = StepVertices(profile.problem);
  return plan;
}

absl::StatusOr<Frontier> MakeFrontier(const Profile& profile, const PlanOptions& options) {
  return MakeFrontier(profile.problem, WithLinkOf(profile, options));
}

absl::StatusOr<Frontier> MakeFrontier(const Problem& problem, const PlanOptions& options) {
  return std::visit([&](const auto& kind) { return MakeFrontierOf(kind, options); }, problem);
}

absl::StatusOr<Bytes> ResolveBudget(const Chain& chain, const Budget& budget,
                                    const PlanOptions& options) {
  return ResolveBudgetOf(chain, budget, options);
}

absl::StatusOr<Plan> MakeChainPlan(const Chain& chain, Bytes budget, const PlanOptions& options) {
  return MakePlanOf(chain, budget, options);
}

absl::StatusOr<Frontier> MakeChainFrontier(const Chain& chain, const PlanOptions& options) {
  return MakeFrontierOf(chain, options);
}

void TightenBound(const Chain& chain, Plan* plan) {
  Tighten(StrongestBound(chain, std::nullopt, plan->budget), plan);
}

void TightenBound(const LinkedProblem& linked, Plan* plan) {
  const auto bound = [&](const auto& kind) {
    return StrongestBound(kind, linked.transfers, plan->budget);
  };
  Tighten(std::visit(bound, linked.problem), plan);
}

}  // namespace stowage
