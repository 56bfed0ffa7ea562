#include "solvers/chain/solvers.h"

#include <vector>

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

class StoreAll final : public Solver {
 public:
  const SolverInfo& info() const override { return info_; }

 private:
  absl::StatusOr<Plan> DoSolve(const Instance& instance, Bytes budget,
                               const SolveContext&) const override {
    Plan plan;
    plan.bounds.schedule_class = info_.schedule_class;
    plan.bounds.least_budget = instance.store_all()->peak;
    if (PlanStoreAll(instance, budget, &plan)) return plan;
    plan.status = PlanStatus::kProvenInfeasible;
    plan.explanation =
        absl::StrCat("plain training needs ", plan.bounds.least_budget.value(), " bytes");
    return plan;
  }

  absl::StatusOr<Frontier> DoSolveFrontier(const Instance& instance,
                                           const SolveContext&) const override {
    FrontierBuilder builder(instance);
    absl::Status status = builder.Add(instance.store_all_schedule());
    if (!status.ok()) return status;
    return builder.Build({info_.name, info_.schedule_class, instance.store_all()->peak,
                          /*exact=*/true, /*slots=*/0});
  }

  absl::StatusOr<Bytes> DoLeastBudget(const Instance& instance,
                                      const SolveContext&) const override {
    return instance.store_all()->peak;
  }

  const SolverInfo info_ = {"store_all", "plain training: stores every activation",
                            "plain training alone", ScheduleClass::kPlainTraining};
};

// On longer chains all intervals take longer and gain nothing over some of them with more slots.
constexpr int kMaxStagesNonPersistent = 40;
// Longer chains get the optimal persistent solver's table: going beyond takes it more than some seconds.
constexpr int kMaxStagesWithSlots = 128;

// Best first; the next one where a chain is too long for the one before.
std::vector<const Solver*> Candidates(const Chain& chain, const SolveContext& context) {
  std::vector<const Solver*> solvers;
  const int most = context.slots() > 0 ? kMaxStagesWithSlots : kMaxStagesNonPersistent;
  if (chain.length() <= most) {
    solvers.push_back(&NonPersistentSolver());
  } else if (context.slots() == 0) {
    solvers.push_back(&SparseIntervalsSolver());
  }
  solvers.push_back(&OptimalPersistentSolver());
  if (context.slots() == 0) solvers.push_back(&CheckpointSequentialSolver());
  return solvers;
}

// What the first of the candidates says that the chain is not too long for.
template <class Ask>
auto FirstAnswer(const Chain& chain, const SolveContext& context, const Ask& ask) {
  const std::vector<const Solver*> solvers = Candidates(chain, context);
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
                               const SolveContext& context) const override {
    const auto solve = [&](const Solver& solver) {
      return solver.Solve(instance, budget, context);
    };
    absl::StatusOr<Plan> store_all = solve(StoreAllSolver());
    if (!store_all.ok() || store_all->status == PlanStatus::kFound) return store_all;
    absl::StatusOr<Plan> plan = FirstAnswer(instance.chain(), context, solve);
    // Those before it know more schedules, and have none that is short enough to be kept.
    if (plan.ok() && plan->status == PlanStatus::kProvenInfeasible &&
        plan->bounds.schedule_class == CheckpointSequentialSolver().info().schedule_class) {
      plan->status = PlanStatus::kNotFound;
    }
    return plan;
  }

  absl::StatusOr<Frontier> DoSolveFrontier(const Instance& instance,
                                           const SolveContext& context) const override {
    return FirstAnswer(instance.chain(), context, [&](const Solver& solver) {
      return solver.SolveFrontier(instance, context);
    });
  }

  absl::StatusOr<Bytes> DoLeastBudget(const Instance& instance,
                                      const SolveContext& context) const override {
    return FirstAnswer(instance.chain(), context,
                       [&](const Solver& solver) { return solver.LeastBudget(instance, context); });
  }

 private:
  const SolverInfo info_;
};

}  // namespace

bool PlanStoreAll(const Instance& instance, Bytes budget, Plan* plan) {
  if (!instance.store_all().ok() || instance.store_all()->peak > budget) return false;
  plan->status = PlanStatus::kFound;
  plan->schedule = instance.store_all_schedule();
  plan->bounds.proven_optimal = true;
  plan->explanation = "everything fits: nothing is recomputed";
  return true;
}

const Solver& StoreAllSolver() {
  static const StoreAll* const kSolver = new StoreAll;
  return *kSolver;
}

const Solver& ChosenChainSolver() {
  static const auto* const kChoice = new ChainChoice;
  return *kChoice;
}

}  // namespace stowage
