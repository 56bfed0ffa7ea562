#include "absl/strings/str_cat.h"
#include "solvers/chain/solvers.h"
#include "solvers/chain/store_all_plan.h"

namespace stowage {
namespace {

class StoreAll final : public Solver {
 public:
  const SolverInfo& info() const override { return info_; }

 private:
  absl::StatusOr<Plan> DoSolve(const Instance& instance, Bytes budget,
                               const SolveOptions&) const override {
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
                                           const SolveOptions&) const override {
    FrontierBuilder builder(instance);
    absl::Status status = builder.Add(instance.store_all_schedule());
    if (!status.ok()) return status;
    return builder.Build({info_.name, info_.schedule_class, instance.store_all()->peak,
                          /*exact=*/true, /*slots=*/0});
  }

  absl::StatusOr<Bytes> DoLeastBudget(const Instance& instance,
                                      const SolveOptions&) const override {
    return instance.store_all()->peak;
  }

  const SolverInfo info_ = {"store_all", "plain training: stores every activation",
                            "plain training alone"};
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

}  // namespace stowage
