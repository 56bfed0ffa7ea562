#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/chain/solvers.h"
#include "solvers/chain/store_all_plan.h"
#include "solvers/plan/store_all_schedule.h"

namespace stowage {
namespace {

class StoreAll final : public ChainSolver {
 public:
  const SolverInfo& info() const override { return info_; }

  absl::StatusOr<Plan> Solve(const Chain& chain, Bytes budget,
                             const SolveOptions& options) const override {
    absl::StatusOr<Bytes> least = LeastBudget(chain, options);
    if (!least.ok()) return least.status();
    Plan plan;
    plan.bounds.schedule_class = info_.schedule_class;
    plan.bounds.least_budget = *least;
    if (PlanStoreAll(chain, budget, &plan)) return plan;
    plan.status = PlanStatus::kProvenInfeasible;
    plan.explanation = absl::StrCat("plain training needs ", least->value(), " bytes");
    return plan;
  }

  absl::StatusOr<Frontier> SolveFrontier(const Chain& chain,
                                         const SolveOptions& options) const override {
    absl::StatusOr<Bytes> least = LeastBudget(chain, options);
    if (!least.ok()) return least.status();
    FrontierBuilder builder(chain);
    absl::Status status = builder.Add(StoreAllSchedule(chain));
    if (!status.ok()) return status;
    return builder.Build({info_.name, info_.schedule_class, *least, /*exact=*/true, /*slots=*/0});
  }

  absl::StatusOr<Bytes> LeastBudget(const Chain& chain, const SolveOptions&) const override {
    absl::StatusOr<Simulation> simulation = Simulate(chain, StoreAllSchedule(chain));
    if (!simulation.ok()) return simulation.status();
    return simulation->peak;
  }

 private:
  const SolverInfo info_ = {"store_all", "plain training: stores every activation",
                            "plain training alone"};
};

}  // namespace

bool PlanStoreAll(const Chain& chain, Bytes budget, Plan* plan) {
  Schedule schedule = StoreAllSchedule(chain);
  const absl::StatusOr<Simulation> simulation = Simulate(chain, schedule);
  if (!simulation.ok() || simulation->peak > budget) return false;
  plan->status = PlanStatus::kFound;
  plan->schedule = std::move(schedule);
  plan->bounds.proven_optimal = true;
  plan->explanation = "everything fits: nothing is recomputed";
  return true;
}

const ChainSolver& StoreAllSolver() {
  static const StoreAll* const kSolver = new StoreAll;
  return *kSolver;
}

}  // namespace stowage
