#include "solvers/transfer/solvers.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "solvers/transfer/internal/budget_grid.h"
#include "solvers/transfer/internal/trace_problem.h"
#include "solvers/transfer/strategies.h"

namespace stowage {
namespace {

constexpr char kClass[] = "schedules that recompute nothing and copy whole tensors to the host";
constexpr int64_t kOffloadBudgets = 64;

// Plain training of one chain, and what may be moved around in it.
class Offloading {
 public:
  static absl::StatusOr<Offloading> Create(const Instance& instance) {
    absl::StatusOr<ComputeTrace> trace = TraceOf(instance, instance.store_all_schedule());
    if (!trace.ok()) return trace.status();
    return Offloading(instance, *std::move(trace));
  }

  const Instance& instance() const { return instance_; }
  Bytes plain_peak() const { return instance_.store_all()->peak; }
  bool HoldsAll(Bytes budget) const { return plain_peak() <= budget; }

  // Nothing of the class fits into less.
  Bytes Floor() const {
    const std::optional<TraceProblem> traced = Traced(plain_peak());
    if (!traced) return plain_peak();
    return std::max(traced->problem.least_memory(), plain_peak() - instance_.link()->host_memory);
  }

  // No schedule of the class is faster within the budget.
  Nanos LowerBound(Bytes budget) const {
    const std::optional<TraceProblem> traced = Traced(budget);
    const Nanos ideal = instance_.store_all()->makespan;
    return traced ? std::max(ideal, OffloadLowerBound(traced->problem)) : ideal;
  }

  // The strategy's own plan for a budget; its least_budget is set where it is infeasible alone.
  absl::StatusOr<Plan> Solve(const OffloadStrategy& strategy, Bytes budget,
                             const SolveContext& context) const {
    Plan plan;
    plan.bounds.schedule_class = kClass;
    if (HoldsAll(budget)) {
      plan.status = PlanStatus::kFound;
      plan.schedule = instance_.store_all_schedule();
      plan.bounds.proven_optimal = true;
      plan.explanation = "everything fits: nothing is offloaded";
      return plan;
    }
    if (!instance_.link()) {
      Refuse(absl::StrCat("without a link to host memory, ", plain_peak().value(),
                          " bytes are needed"),
             plain_peak(), &plan);
      return plan;
    }
    const std::optional<TraceProblem> traced = Traced(budget);
    if (!traced) {
      plan.status = PlanStatus::kNotFound;
      plan.explanation = "copies over this link take longer than times can say";
      return plan;
    }
    absl::StatusOr<OffloadPlan> answer = strategy.Solve(traced->problem, context);
    if (!answer.ok()) return answer.status();
    plan.explanation = std::move(answer->explanation);
    plan.provenance.slots = answer->slots;
    plan.status = answer->status;
    if (plan.status == PlanStatus::kProvenInfeasible) {
      Refuse(std::move(plan.explanation), std::max(Floor(), budget + Bytes(1)), &plan);
    }
    if (plan.status != PlanStatus::kFound) return plan;
    plan.schedule =
        WithTransfers(instance_.store_all_schedule(), trace_, *traced, answer->timeline);
    const absl::StatusOr<Simulation> simulation = Evaluator(instance_).Run(plan.schedule);
    if (!simulation.ok()) return absl::InternalError(simulation.status().message());
    plan.prediction = *simulation;
    plan.bounds.proven_optimal = simulation->makespan <= answer->lower_bound;
    return plan;
  }

 private:
  Offloading(const Instance& instance, ComputeTrace trace)
      : instance_(instance), trace_(std::move(trace)) {}

  // Nothing without a link, or where its copies are beyond the limits of times.
  std::optional<TraceProblem> Traced(Bytes budget) const {
    if (!instance_.link()) return std::nullopt;
    absl::StatusOr<TraceProblem> traced = MakeTraceProblem(trace_, *instance_.link(), budget);
    if (!traced.ok()) return std::nullopt;
    return *std::move(traced);
  }

  static void Refuse(std::string explanation, Bytes least, Plan* plan) {
    plan->status = PlanStatus::kProvenInfeasible;
    plan->bounds.least_budget = least;
    plan->explanation = std::move(explanation);
  }

  Instance instance_;
  ComputeTrace trace_;
};

class OffloadSolver final : public Solver {
 public:
  explicit OffloadSolver(const OffloadStrategy* strategy)
      : strategy_(*strategy),
        info_{strategy->info().name,
              "offloads, without recomputing: " + strategy->info().description,
              kClass,
              ScheduleClass::kOffloading,
              /*chains=*/true,
              /*graphs=*/false,
              /*copies=*/true,
              Anytime::kNever,
              /*dags=*/false,
              strategy->info().complete} {}

  const SolverInfo& info() const override { return info_; }

  absl::StatusOr<Plan> DoSolve(const Instance& instance, Bytes budget,
                               const SolveContext& context) const override {
    const absl::StatusOr<Offloading> offloading = Offloading::Create(instance);
    if (!offloading.ok()) return offloading.status();
    return offloading->HoldsAll(budget) ? offloading->Solve(strategy_, budget, context)
                                        : FastestUpTo(*offloading, budget, context);
  }

  absl::StatusOr<Frontier> DoSolveFrontier(const Instance& instance,
                                           const SolveContext& context) const override {
    const absl::StatusOr<Offloading> offloading = Offloading::Create(instance);
    if (!offloading.ok()) return offloading.status();
    const absl::StatusOr<Bytes> least = LeastOf(*offloading, context);
    if (!least.ok()) return least.status();
    FrontierBuilder builder(instance, context.frontier_limit());
    const std::vector<Bytes> grid = Grid(*offloading, *least);
    for (size_t i = 0; i < grid.size(); ++i) {
      // What takes no longer than plain training is not bettered by more memory.
      if (builder.MakespanAt(grid[i]) <= instance.store_all()->makespan) break;
      absl::StatusOr<Plan> plan = SolveAt(*offloading, grid[i], i, grid.size(), context);
      if (!plan.ok()) return plan.status();
      if (plan->status != PlanStatus::kFound) continue;
      absl::Status status = builder.Add(plan->schedule);
      if (!status.ok()) return status;
    }
    absl::Status status = builder.Add(instance.store_all_schedule());
    if (!status.ok()) return status;
    return builder.BuildCompact({info_.name, info_.schedule_class, offloading->Floor(),
                                 /*exact=*/!instance.link(), /*slots=*/0});
  }

  absl::StatusOr<Bytes> DoLeastBudget(const Instance& instance,
                                      const SolveContext& context) const override {
    const absl::StatusOr<Offloading> offloading = Offloading::Create(instance);
    if (!offloading.ok()) return offloading.status();
    return LeastOf(*offloading, context);
  }

 private:
  static std::vector<Bytes> Grid(const Offloading& offloading, Bytes least) {
    return BudgetGrid(least, offloading.plain_peak(), kOffloadBudgets, Spacing::kEven);
  }

  // The strategy's plan for a budget, after so many of the budgets of a grid.
  absl::StatusOr<Plan> SolveAt(const Offloading& offloading, Bytes budget, size_t done, size_t all,
                               const SolveContext& context) const {
    const double share = 1.0 / static_cast<double>(all);
    return offloading.Solve(
        strategy_, budget,
        context.Part(share * static_cast<double>(done), share * static_cast<double>(done + 1)));
  }

  // The fastest that fits of the strategy's plans for the budgets of the grid up to the first beyond `budget`: "more
  // budget is never slower" in algorithms.md. From the largest on down: those of less memory are left out as soon as
  // no schedule of theirs can be faster.
  absl::StatusOr<Plan> FastestUpTo(const Offloading& offloading, Bytes budget,
                                   const SolveContext& context) const {
    const absl::StatusOr<Bytes> least = LeastOf(offloading, context);
    if (!least.ok()) return least.status();
    if (budget < *least) return NothingBelow(offloading, *least, budget, context);
    const std::vector<Bytes> grid = GridFor(Grid(offloading, *least), budget);
    Plan best;
    for (size_t done = 0; done < grid.size(); ++done) {
      const Bytes at = grid[grid.size() - 1 - done];
      if (best.status == PlanStatus::kFound &&
          best.prediction.makespan <= offloading.LowerBound(std::min(at, budget))) {
        break;
      }
      absl::StatusOr<Plan> plan = SolveAt(offloading, at, done, grid.size(), context);
      if (!plan.ok()) return plan.status();
      if (plan->status != PlanStatus::kFound || plan->prediction.peak > budget) continue;
      if (best.status == PlanStatus::kFound &&
          plan->prediction.makespan >= best.prediction.makespan) {
        continue;
      }
      best = *std::move(plan);
      // A bound for other memory says nothing of this budget.
      best.bounds.proven_optimal &= at == budget;
    }
    best.bounds.proven_optimal |= best.prediction.makespan <= offloading.LowerBound(budget);
    return best;
  }

  // The strategy says why; what it finds below the least budget by chance does not count.
  absl::StatusOr<Plan> NothingBelow(const Offloading& offloading, Bytes least, Bytes budget,
                                    const SolveContext& context) const {
    absl::StatusOr<Plan> plan = offloading.Solve(strategy_, budget, context);
    if (!plan.ok() || plan->status == PlanStatus::kProvenInfeasible) return plan;
    if (plan->status == PlanStatus::kFound)
      plan->explanation = "not all larger budgets have a plan";
    plan->status = PlanStatus::kNotFound;
    plan->schedule.clear();
    plan->bounds.proven_optimal = false;
    plan->bounds.least_budget = least;
    return plan;
  }

  // Where the strategy does not find all that fits: a budget at which it finds something, and at one
  // byte less does not.
  absl::StatusOr<Bytes> LeastOf(const Offloading& offloading, const SolveContext& context) const {
    const SolveContext quiet = context.Quiet();
    Bytes least = offloading.Floor(), found = offloading.plain_peak();
    Bytes next = least;
    while (least < found) {
      const absl::StatusOr<Plan> plan = offloading.Solve(strategy_, next, quiet);
      if (!plan.ok()) return plan.status();
      if (plan->status == PlanStatus::kFound) {
        found = next;
      } else {
        least = next + Bytes(1);
      }
      next = least + Bytes((found - least).value() / 2);
    }
    return found;
  }

  const OffloadStrategy& strategy_;
  const SolverInfo info_;
};

}  // namespace

const std::vector<const Solver*>& OffloadSolvers() {
  static const auto* const kSolvers = [] {
    auto* solvers = new std::vector<const Solver*>;
    for (const OffloadStrategy* strategy : AllOffloadStrategies()) {
      solvers->push_back(new OffloadSolver(strategy));
    }
    return solvers;
  }();
  return *kSolvers;
}

}  // namespace stowage
