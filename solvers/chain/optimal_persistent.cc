#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/chain/internal/persistent_frontier.h"
#include "solvers/chain/persistent_space.h"
#include "solvers/chain/persistent_table.h"
#include "solvers/chain/solvers.h"
#include "solvers/schedule/lower_bound.h"

namespace stowage {
namespace {

struct Outcome {
  std::optional<Schedule> schedule;
  bool proven_optimal = false;
  int64_t slots = 0;
  std::string explanation;
};

// One table of `slots` or, where the budget is no multiple, up to twice as many: no memory is left out.
absl::StatusOr<Outcome> SolveWithSlots(const Chain& chain, Bytes budget, int64_t slots,
                                       const SolveContext& context) {
  const int64_t unit = std::max<int64_t>(budget.value() / slots, 1);
  slots = budget.value() / unit;
  absl::StatusOr<PersistentTable> table =
      PersistentTable::Compute(PersistentSpace(chain, unit), slots, context);
  if (!table.ok()) return table.status();
  Outcome outcome;
  outcome.slots = slots;
  outcome.explanation = absl::StrCat("a table with memory rounded to ", slots, " slots");
  if (table->Overhead(slots) >= kInfinity) return outcome;
  outcome.schedule = table->Backtrack(slots);
  outcome.proven_optimal = CommonUnit(chain) % unit == 0;
  return outcome;
}

// What is feasible is found: exactly in bytes, or the best of all that tables and cheap schedules
// have for this budget and smaller ones.
absl::StatusOr<Outcome> SolveAutomatically(const PersistentProblem& problem, Bytes budget,
                                           const SolveContext& context) {
  Outcome outcome;
  absl::StatusOr<std::optional<PersistentSteps>> steps = ExactSteps(problem, context);
  if (!steps.ok()) return steps.status();
  if (steps->has_value()) {
    outcome.schedule = (*steps)->Backtrack((budget - problem.chain().activation(0)).value());
    outcome.proven_optimal = true;
    outcome.explanation = "solved exactly, to the byte";
    return outcome;
  }
  FrontierBuilder builder(problem.instance, context.frontier_limit());
  absl::StatusOr<TableSummary> summary = AddSchedules(problem, budget, context, &builder);
  if (!summary.ok()) return summary.status();
  Plan plan = builder.Build(FrontierInfo()).PlanAt(budget);
  outcome.schedule = std::move(plan.schedule);
  outcome.slots = summary->slots;
  outcome.proven_optimal = summary->lossless || builder.MakespanAt(budget) <=
                                                    MakespanLowerBound(problem.instance, budget);
  outcome.explanation =
      summary->slots > 0
          ? absl::StrCat("tables with memory rounded to up to ", summary->slots, " slots")
          : "the best of a few schedules that cost next to nothing to find";
  if (summary->left_out) {
    absl::StrAppend(&outcome.explanation, summary->slots > 0 ? "; for some budgets" : ":",
                    " no table within ", context.memory().value(),
                    " bytes and the work that the solver allows itself");
  }
  return outcome;
}

// Every point of the exact steps.
absl::Status AddSteps(const PersistentSteps& steps, const SolveContext& context,
                      FrontierBuilder* builder) {
  constexpr int64_t kWorkPerSchedule = 100000;
  StopPoll poll(context.stop());
  for (const PersistentSteps::Step& step : steps.Whole()) {
    absl::Status status = poll.Spend(kWorkPerSchedule);
    if (status.ok()) status = builder->Add(steps.Backtrack(step.memory));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

class OptimalPersistent final : public Solver {
 public:
  const SolverInfo& info() const override { return info_; }

  absl::StatusOr<Plan> DoSolve(const Instance& instance, Bytes budget,
                               const SolveContext& context) const override {
    return SolveBudget(instance, budget, context);
  }

  absl::StatusOr<Frontier> DoSolveFrontier(const Instance& instance,
                                           const SolveContext& context) const override {
    return SolveAll(instance, context);
  }

  absl::StatusOr<Bytes> DoLeastBudget(const Instance& instance,
                                      const SolveContext& context) const override {
    const absl::StatusOr<PersistentProblem> problem = MakePersistentProblem(instance, context);
    if (!problem.ok()) return problem.status();
    // What Solve has no schedule for is no budget either.
    const absl::Status status = CheckScheduleSize(*problem);
    if (!status.ok()) return status;
    return problem->least_budget;
  }

 private:
  absl::StatusOr<Plan> SolveBudget(const Instance& instance, Bytes budget,
                                   const SolveContext& context) const {
    const Chain& chain = instance.chain();
    Plan plan;
    plan.bounds.schedule_class = info_.schedule_class;
    if (PlanStoreAll(instance, budget, &plan)) return plan;

    absl::StatusOr<PersistentProblem> problem = MakePersistentProblem(instance, context);
    if (!problem.ok()) return problem.status();
    plan.bounds.least_budget = problem->least_budget;
    if (budget < plan.bounds.least_budget) {
      plan.status = PlanStatus::kProvenInfeasible;
      plan.explanation =
          absl::StrCat("where what is stored stays until its backward, none needs less than ",
                       plan.bounds.least_budget.value(), " bytes");
      return plan;
    }
    absl::Status status = CheckScheduleSize(*problem);
    if (!status.ok()) return status;
    const SolveContext rest = WithoutLeastMemory(chain, context);
    absl::StatusOr<Outcome> outcome = context.slots() > 0
                                          ? SolveWithSlots(chain, budget, context.slots(), rest)
                                          : SolveAutomatically(*problem, budget, rest);
    if (!outcome.ok()) return outcome.status();
    return Finish(*std::move(outcome), std::move(plan));
  }

  absl::StatusOr<Frontier> SolveAll(const Instance& instance, const SolveContext& context) const {
    const Chain& chain = instance.chain();
    absl::StatusOr<PersistentProblem> problem = MakePersistentProblem(instance, context);
    if (!problem.ok()) return problem.status();
    absl::Status status = CheckScheduleSize(*problem);
    if (!status.ok()) return status;
    const SolveContext rest = WithoutLeastMemory(chain, context);
    FrontierInfo frontier;
    frontier.solver = info_.name;
    frontier.schedule_class = info_.schedule_class;
    frontier.least_budget = problem->least_budget;
    FrontierBuilder builder(instance, context.frontier_limit());
    absl::StatusOr<std::optional<PersistentSteps>> steps = std::optional<PersistentSteps>();
    if (context.slots() == 0) steps = ExactSteps(*problem, rest);
    if (!steps.ok()) return steps.status();
    if (steps->has_value()) {
      frontier.exact = true;
      status = AddSteps(**steps, rest, &builder);
      if (!status.ok()) return status;
    } else {
      absl::StatusOr<TableSummary> summary =
          AddSchedules(*problem, problem->store_all_peak, rest, &builder);
      if (!summary.ok()) return summary.status();
      frontier.exact = summary->lossless;
      frontier.slots = summary->slots;
    }
    return builder.BuildCompact(std::move(frontier));
  }

  static SolveContext WithoutLeastMemory(const Chain& chain, const SolveContext& context) {
    return context.WithMemory(
        context.memory() -
        Bytes(IntervalTable<MinimumMemory::Entry>::SizeBytes(chain.length() + 1)));
  }

  static Plan Finish(Outcome outcome, Plan plan) {
    plan.provenance.slots = outcome.slots;
    if (!outcome.schedule) {
      plan.status = PlanStatus::kNotFound;
      plan.explanation =
          absl::StrCat("rounding to ", outcome.slots, " slots leaves no schedule; in exact bytes ",
                       plan.bounds.least_budget.value(), " are enough: ask for more slots, or 0");
      return plan;
    }
    plan.status = PlanStatus::kFound;
    plan.schedule = *std::move(outcome.schedule);
    plan.bounds.proven_optimal = outcome.proven_optimal;
    plan.explanation = std::move(outcome.explanation);
    return plan;
  }

  const SolverInfo info_ = {
      "optimal_persistent",
      "least time when everything kept stays until its backward (Beaumont et al. 2019)",
      "schedules in which what is stored stays until its backward (memory-persistent)",
      ScheduleClass::kPersistent};
};

}  // namespace

const Solver& OptimalPersistentSolver() {
  static const OptimalPersistent* const kSolver = new OptimalPersistent;
  return *kSolver;
}

}  // namespace stowage
