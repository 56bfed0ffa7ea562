#include "solvers/chain/solvers.h"

#include <vector>

namespace stowage {
namespace {

// Longer chains get the optimal persistent solver: going beyond takes it more than some seconds.
constexpr int kMaxStagesNonPersistent = 128;

// Best first; the next one where a chain is too long for the one before.
std::vector<const Solver*> Candidates(const Chain& chain, const SolveOptions& options) {
  std::vector<const Solver*> solvers;
  if (chain.length() <= kMaxStagesNonPersistent) solvers.push_back(&NonPersistentSolver());
  solvers.push_back(&OptimalPersistentSolver());
  if (options.slots == 0) solvers.push_back(&CheckpointSequentialSolver());
  return solvers;
}

// What the first of the candidates says that the chain is not too long for.
template <class Ask>
auto FirstAnswer(const Chain& chain, const SolveOptions& options, const Ask& ask) {
  const std::vector<const Solver*> solvers = Candidates(chain, options);
  auto answer = ask(*solvers.front());
  for (size_t i = 1; i < solvers.size() && absl::IsResourceExhausted(answer.status()); ++i) {
    answer = ask(*solvers[i]);
  }
  return answer;
}

class ChainChoice final : public Solver {
 public:
  ChainChoice() : info_{"", "the planner's choice", "schedules of the solver chosen"} {}

  const SolverInfo& info() const override { return info_; }

  absl::StatusOr<Plan> DoSolve(const Instance& instance, Bytes budget,
                               const SolveOptions& options) const override {
    const auto solve = [&](const Solver& solver) {
      return solver.Solve(instance, budget, options);
    };
    absl::StatusOr<Plan> store_all = solve(StoreAllSolver());
    if (!store_all.ok() || store_all->status == PlanStatus::kFound) return store_all;
    return FirstAnswer(instance.chain(), options, solve);
  }

  absl::StatusOr<Frontier> DoSolveFrontier(const Instance& instance,
                                           const SolveOptions& options) const override {
    return FirstAnswer(instance.chain(), options, [&](const Solver& solver) {
      return solver.SolveFrontier(instance, options);
    });
  }

  absl::StatusOr<Bytes> DoLeastBudget(const Instance& instance,
                                      const SolveOptions& options) const override {
    return FirstAnswer(instance.chain(), options,
                       [&](const Solver& solver) { return solver.LeastBudget(instance, options); });
  }

 private:
  const SolverInfo info_;
};

}  // namespace

const Solver& ChosenChainSolver() {
  static const auto* const kChoice = new ChainChoice;
  return *kChoice;
}

}  // namespace stowage
