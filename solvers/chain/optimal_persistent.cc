#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/chain/persistent_exact.h"
#include "solvers/chain/persistent_space.h"
#include "solvers/chain/persistent_table.h"
#include "solvers/chain/solvers.h"
#include "solvers/model/field_error.h"
#include "solvers/plan/store_all_schedule.h"

namespace stowage {
namespace {

constexpr int64_t kMaxSlots = 1000000;
// Some seconds of one core.
constexpr int64_t kTableSteps = 4000000000;
// Fewer slots than this round too much away to be of use on a long chain.
constexpr int64_t kMinAutoSlots = 500;
constexpr int64_t kMaxAutoSlots = 50000;
// The exact recurrence is tried for about a second, and once more, for longer, where every table
// rounded the budget away.
constexpr ExactLimits kFirstTry = {1000000, 20000000};
constexpr ExactLimits kLastTry = {8000000, 200000000};
constexpr int64_t kBytesPerState = 100;
// Budgets that a frontier is made of, from the least to store-all's.
constexpr int kGrid = 32;

struct Outcome {
  std::optional<Schedule> schedule;
  bool proven_optimal = false;
  int64_t slots = 0;
  std::string explanation;
};

// 0 where a table of any use is too large.
int64_t AutoSlots(const Chain& chain, const SolveOptions& options) {
  const double stages = chain.length() + 1;
  const double rows_by_splits = std::max(stages * stages * stages / 6.0, 1.0);
  const int64_t by_work = static_cast<int64_t>(static_cast<double>(kTableSteps) / rows_by_splits);
  const int64_t by_memory =
      options.table_limit.value() / (int64_t{4} * (chain.length() + 1) * (chain.length() + 2));
  const int64_t slots = std::min({by_work, by_memory, kMaxAutoSlots});
  return slots < kMinAutoSlots ? 0 : slots;
}

// One table. `lossless` says that the unit divides all sizes and no memory is left out.
absl::StatusOr<Outcome> SolveByTable(const Chain& chain, int64_t unit, int64_t slots, bool lossless,
                                     const SolveOptions& options) {
  const PersistentSpace space(chain, unit);
  absl::StatusOr<PersistentTable> table = PersistentTable::Compute(space, slots, options);
  if (!table.ok()) return table.status();
  Outcome outcome;
  outcome.slots = slots;
  outcome.explanation = absl::StrCat("a table of ", slots, " memory slots");
  if (table->Excess(slots) >= kNever) return outcome;
  outcome.schedule = table->Backtrack(slots);
  outcome.proven_optimal = lossless;
  return outcome;
}

// `slots` or, where the budget is no multiple, up to twice as many: no memory is left out.
absl::StatusOr<Outcome> SolveWithSlots(const Chain& chain, Bytes budget, int64_t slots,
                                       const SolveOptions& options) {
  const int64_t unit = std::max<int64_t>(budget.value() / slots, 1);
  return SolveByTable(chain, unit, budget.value() / unit, CommonUnit(chain) % unit == 0, options);
}

absl::StatusOr<Outcome> SolveExactly(const PersistentSpace& exact, const LeastMemory& least,
                                     Bytes budget, ExactLimits limits,
                                     const SolveOptions& options) {
  limits.states = std::min(limits.states, options.table_limit.value() / kBytesPerState);
  absl::StatusOr<std::optional<Schedule>> schedule =
      SolvePersistentExactly(exact, least, budget.value() - exact.activation(0), limits, options);
  if (!schedule.ok()) return schedule.status();
  Outcome outcome;
  outcome.proven_optimal = schedule->has_value();
  outcome.schedule = std::move(*schedule);
  outcome.explanation = "exact in bytes";
  return outcome;
}

// Tables of more and more slots until one of them finds a schedule or is refused for its size.
absl::StatusOr<Outcome> SolveByGrowingTables(const Chain& chain, Bytes budget,
                                             const SolveOptions& options) {
  const int64_t slots_at_first = AutoSlots(chain, options);
  if (slots_at_first == 0) return Outcome();
  const int64_t common = CommonUnit(chain);
  if (budget.value() / common <= slots_at_first) {
    return SolveByTable(chain, common, budget.value() / common, true, options);
  }
  Outcome outcome;
  for (const int64_t slots : {slots_at_first, 2 * slots_at_first}) {
    absl::StatusOr<Outcome> next = SolveWithSlots(chain, budget, slots, options);
    if (absl::IsResourceExhausted(next.status())) break;
    if (!next.ok()) return next.status();
    outcome = std::move(*next);
    if (outcome.schedule) break;
  }
  return outcome;
}

// Two schedules that cost next to nothing to find: the one of least memory, and the best periodic
// one, which is persistent too. The faster that fits.
absl::StatusOr<Outcome> SolveCheaply(const Chain& chain, const PersistentSpace& exact,
                                     const LeastMemory& least, Bytes budget,
                                     const SolveOptions& options) {
  Outcome outcome;
  outcome.schedule =
      PersistentBacktrack::Run(exact, budget.value() - exact.activation(0),
                               [&least](int s, int t, int64_t) { return least.table(s, t).split; });
  outcome.explanation = "the schedule of least memory, not optimised for time";
  absl::StatusOr<Plan> periodic = CheckpointSequentialSolver().Solve(chain, budget, options);
  if (!periodic.ok()) return periodic.status();
  if (periodic->status != PlanStatus::kFound) return outcome;
  const absl::StatusOr<Simulation> a = Simulate(chain, *outcome.schedule);
  const absl::StatusOr<Simulation> b = Simulate(chain, periodic->schedule);
  if (a.ok() && b.ok() && b->makespan < a->makespan) {
    outcome.schedule = std::move(periodic->schedule);
    outcome.explanation = absl::StrCat("the best periodic schedule: ", periodic->explanation);
  }
  return outcome;
}

// What is feasible is found: by the exact recurrence, by a table, or at last cheaply.
absl::StatusOr<Outcome> SolveAutomatically(const Chain& chain, const PersistentSpace& exact,
                                           const LeastMemory& least, Bytes budget,
                                           const SolveOptions& options) {
  absl::StatusOr<Outcome> outcome = SolveExactly(exact, least, budget, kFirstTry, options);
  if (!outcome.ok() || outcome->schedule) return outcome;
  outcome = SolveByGrowingTables(chain, budget, options);
  if (!outcome.ok() || outcome->schedule) return outcome;
  if (outcome->slots > 0) outcome = SolveExactly(exact, least, budget, kLastTry, options);
  if (!outcome.ok() || outcome->schedule) return outcome;
  return SolveCheaply(chain, exact, least, budget, options);
}

class OptimalPersistent final : public ChainSolver {
 public:
  const SolverInfo& info() const override { return info_; }

  absl::StatusOr<Plan> Solve(const Chain& chain, Bytes budget,
                             const SolveOptions& options) const override {
    if (options.slots < 0 || options.slots > kMaxSlots) {
      return FieldError("options.slots", options.slots,
                        absl::StrCat("must be in [0, ", kMaxSlots, "]"));
    }
    Plan plan;
    plan.bounds.schedule_class = info_.schedule_class;
    if (StoreAllFits(chain, budget)) return StoreAllPlan(chain, std::move(plan));

    const PersistentSpace exact(chain, 1);
    absl::StatusOr<LeastMemory> least = ComputeLeastMemory(exact, options);
    if (!least.ok()) return least.status();
    plan.bounds.least_budget = Bytes(LeastBudgetOf(exact, *least));
    if (budget < plan.bounds.least_budget) {
      plan.status = PlanStatus::kProvenInfeasible;
      plan.explanation = absl::StrCat("no memory-persistent schedule needs less than ",
                                      plan.bounds.least_budget.value(), " bytes");
      return plan;
    }
    SolveOptions rest = options;
    rest.table_limit -= Bytes(IntervalTable<LeastMemory::Entry>::SizeBytes(exact.last()));
    absl::StatusOr<Outcome> outcome = options.slots > 0
                                          ? SolveWithSlots(chain, budget, options.slots, rest)
                                          : SolveAutomatically(chain, exact, *least, budget, rest);
    if (!outcome.ok()) return outcome.status();
    return Finish(*std::move(outcome), std::move(plan));
  }

  absl::StatusOr<Frontier> SolveFrontier(const Chain& chain,
                                         const SolveOptions& options) const override {
    absl::StatusOr<Bytes> least = LeastBudget(chain, options);
    if (!least.ok()) return least.status();
    FrontierBuilder builder(chain);
    absl::Status status = builder.Add(StoreAllSchedule(chain));
    if (!status.ok()) return status;
    absl::StatusOr<Frontier> periodic = CheckpointSequentialSolver().SolveFrontier(chain, options);
    if (!periodic.ok()) return periodic.status();
    builder.Add(*periodic);
    const double all = static_cast<double>(periodic->points().back().peak.value());
    const double first = std::max(static_cast<double>(least->value()), 1.0);
    FrontierInfo frontier = {info_.name, info_.schedule_class, *least, /*exact=*/false,
                             /*slots=*/0};
    for (int i = 0; i < kGrid; ++i) {
      const Bytes budget(
          i == 0 ? least->value()
                 : static_cast<int64_t>(first * std::pow(all / first, double{1} * i / kGrid)));
      absl::StatusOr<Plan> plan = Solve(chain, std::max(budget, *least), options);
      if (!plan.ok()) return plan.status();
      frontier.slots = std::max(frontier.slots, plan->provenance.slots);
      if (plan->status == PlanStatus::kFound) status = builder.Add(plan->schedule);
      if (!status.ok()) return status;
    }
    return builder.Build(std::move(frontier));
  }

  absl::StatusOr<Bytes> LeastBudget(const Chain& chain,
                                    const SolveOptions& options) const override {
    const PersistentSpace exact(chain, 1);
    absl::StatusOr<LeastMemory> least = ComputeLeastMemory(exact, options);
    if (!least.ok()) return least.status();
    return Bytes(LeastBudgetOf(exact, *least));
  }

 private:
  static bool StoreAllFits(const Chain& chain, Bytes budget) {
    const absl::StatusOr<Simulation> simulation = Simulate(chain, StoreAllSchedule(chain));
    return simulation.ok() && simulation->peak <= budget;
  }

  static Plan StoreAllPlan(const Chain& chain, Plan plan) {
    plan.status = PlanStatus::kFound;
    plan.schedule = StoreAllSchedule(chain);
    plan.bounds.proven_optimal = true;
    plan.explanation = "everything fits: nothing is recomputed";
    return plan;
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
      "memory-persistent schedules, recomputing on demand"};
};

}  // namespace

const ChainSolver& OptimalPersistentSolver() {
  static const OptimalPersistent* const kSolver = new OptimalPersistent;
  return *kSolver;
}

}  // namespace stowage
