#include "solvers/registry.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "solvers/chain/solvers.h"
#include "solvers/graph/solvers.h"
#include "solvers/model/field_error.h"
#include "solvers/transfer/solvers.h"

namespace stowage {
namespace {

// One name, a solver for each kind.
class SolverOfBothKinds final : public Solver {
 public:
  // Both live as long as the process.
  SolverOfBothKinds(const Solver* chains, const Solver* graphs)
      : chains_(*chains), graphs_(*graphs), info_(chains->info()) {
    info_.graphs = true;
    info_.cuts_graphs = graphs->info().cuts_graphs;
  }

  const SolverInfo& info() const override { return info_; }

 private:
  const Solver& For(const Instance& instance) const {
    return instance.is_graph() ? graphs_ : chains_;
  }

  absl::StatusOr<Plan> DoSolve(const Instance& instance, Bytes budget,
                               const SolveContext& context) const override {
    return For(instance).Solve(instance, budget, context);
  }
  absl::StatusOr<Frontier> DoSolveFrontier(const Instance& instance,
                                           const SolveContext& context) const override {
    return For(instance).SolveFrontier(instance, context);
  }
  absl::StatusOr<Bytes> DoLeastBudget(const Instance& instance,
                                      const SolveContext& context) const override {
    return For(instance).LeastBudget(instance, context);
  }

  const Solver& chains_;
  const Solver& graphs_;
  SolverInfo info_;
};

const Solver* OfBothKinds(const Solver& chains) {
  return new SolverOfBothKinds(&chains, new LinearizedSolver(&chains));
}

}  // namespace

const std::vector<const Solver*>& AllSolvers() {
  static const auto* const kSolvers = [] {
    auto* all = new std::vector<const Solver*>;
    for (const Solver* solver :
         {&StoreAllSolver(), &CheckpointSequentialSolver(), &ChenSqrtSolver(), &ChenGreedySolver(),
          &RevolveSolver(), &OptimalPersistentSolver(), &NonPersistentSolver()}) {
      all->push_back(OfBothKinds(*solver));
    }
    all->push_back(new SolverOfBothKinds(&JointSolver(), &JointGraphSolver()));
    all->insert(all->end(), OffloadSolvers().begin(), OffloadSolvers().end());
    all->push_back(&OrderSearchSolver());
    all->push_back(&DivisionTreeTrainingSolver());
    return all;
  }();
  return *kSolvers;
}

std::vector<const Solver*> SolversOf(ProblemKind kind) {
  std::vector<const Solver*> solvers;
  for (const Solver* solver : AllSolvers()) {
    if (solver->info().Takes(kind)) solvers.push_back(solver);
  }
  return solvers;
}

absl::StatusOr<const Solver*> FindSolver(const Instance& instance, const std::string& name) {
  if (name.empty()) {
    if (instance.kind() == ProblemKind::kDag) return &OrderSearchSolver();
    if (instance.is_graph()) return instance.link() ? &JointGraphSolver() : &OrderSearchSolver();
    return instance.link() ? &JointSolver() : &ChosenChainSolver();
  }
  const std::vector<const Solver*> solvers = SolversOf(instance.kind());
  for (const Solver* solver : solvers) {
    if (solver->info().name == name) return solver;
  }
  const std::string names = absl::StrJoin(
      solvers, ", ", [](std::string* out, const Solver* solver) { *out += solver->info().name; });
  return FieldError("options.solver", '"' + name + '"',
                    absl::StrCat("must be empty or one of ", names));
}

}  // namespace stowage
