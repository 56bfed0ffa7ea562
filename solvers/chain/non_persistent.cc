// The solver over the tables of non_persistent_table.h. Ideas tried and what they gained: README.md
// beside this file.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "solvers/chain/internal/non_persistent_table.h"
#include "solvers/chain/persistent_space.h"
#include "solvers/chain/solvers.h"
#include "solvers/model/canonical.h"
#include "solvers/model/chain.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/frontier.h"
#include "solvers/schedule/lower_bound.h"
#include "solvers/schedule/schedule.h"
#include "solvers/solver.h"

namespace stowage {
namespace {

// What one table was made with.
struct SizedTable {
  std::unique_ptr<PersistentSpace> space;
  std::unique_ptr<NonPersistentTable> table;
  int64_t unit = 1;  // bytes of a slot
  int64_t slots = 0;
  bool lossless = false;  // nothing was rounded
};

// A chain with what every table of it starts from.
struct NonPersistentProblem {
  Instance instance;
  PersistentSpace exact;
  NonPersistentExtents extents;
  Bytes store_all_peak;

  const Chain& chain() const { return instance.chain(); }
  Bytes least_budget() const { return Bytes(LeastBudgetOf(exact, extents)); }
  Schedule least_schedule() const { return LeastSchedule(exact, extents); }
};

// What a table that rounds nothing may take of one core, and what an alternative takes of it:
// something for itself, and for every slot. Measured on random chains of 339 stages.
constexpr double kTableNanos = 2e9;
constexpr double kNanosPerAlternative = 130;
constexpr double kNanosPerSlot = 0.05;
constexpr int64_t kMaxLosslessSlots = 50000;
// Where sizes are rounded, to nearest: the evaluator says what each schedule really needs. So few slots
// that a table of a long chain takes hardly more than its alternatives' own time.
constexpr int64_t kRoundedSlots = 4000;
constexpr int64_t kLeastRoundedSlots = 100;
// Stages with the loss. Moving checkpoints closed what was left of the gap to the optimum on chains
// of a few stages, and gained nothing on networks of 20 and more.
constexpr int kMaxMoving = 16;
// Rounded tables are for store-all's peak, half of it, ... as many as their time allows; each gives
// schedules for about so many budgets.
constexpr double kFrontierNanos = 1e10;
constexpr int kMaxTables = 4;
constexpr int64_t kBudgetsPerTable = 200;
// A table that rounds nothing gives them for all budgets where these, of O(L^2) each, take seconds.
constexpr int64_t kBudgetsByStages = 50000000;

// Whether checkpoints may move: on short chains.
bool CheckpointsMove(const Chain& chain) { return chain.length() + 1 <= kMaxMoving; }

// As many slots for all budgets up to `budget` as the time and the table limit allow.
int64_t AffordableSlots(const NonPersistentProblem& problem, Bytes budget, double nanos,
                        const SolveContext& context) {
  const double by_time =
      (nanos / problem.extents.index.alternatives() - kNanosPerAlternative) / kNanosPerSlot;
  double widths = 0;  // of all rows, as shares of the slots
  const double whole = static_cast<double>(std::max<int64_t>(budget.value(), 1));
  for (const NonPersistentExtents::Extent& e : problem.extents.extents) {
    const int64_t width = std::min(e.all_kept, budget.value()) - e.least;
    widths += static_cast<double>(std::max<int64_t>(width, 0)) / whole;
  }
  const int64_t beside =
      NonPersistentTable::BytesBesideValues(static_cast<int64_t>(problem.extents.extents.size()));
  const double by_memory = 0.8 * static_cast<double>(context.memory().value() - beside) /
                           (NonPersistentTable::kMaxBytesPerValue * std::max(widths, 1.0));
  return static_cast<int64_t>(std::clamp<double>(std::min(by_time, by_memory), 0, kSlotLimit));
}

absl::StatusOr<SizedTable> MakeTable(const Chain& chain, int64_t unit, int64_t slots,
                                     Rounding rounding, const SolveContext& context) {
  SizedTable result;
  result.unit = unit;
  result.slots = slots;
  result.space = std::make_unique<PersistentSpace>(chain, unit, rounding);
  absl::StatusOr<std::unique_ptr<NonPersistentTable>> table =
      NonPersistentTable::Compute(*result.space, CheckpointsMove(chain), slots, context);
  if (!table.ok()) return table.status();
  result.table = *std::move(table);
  result.lossless = CommonUnit(chain) % unit == 0 && result.table->time_unit() == 1;
  return result;
}

// In the sizes' common unit.
absl::StatusOr<SizedTable> LosslessTable(const Chain& chain, Bytes budget,
                                         const SolveContext& context) {
  const int64_t unit = CommonUnit(chain);
  return MakeTable(chain, unit, budget.value() / unit, Rounding::kUp, context);
}

// Of so many slots or, where the budget is no multiple, up to twice as many: none of it is left out.
absl::StatusOr<SizedTable> TableOfSlots(const Chain& chain, Bytes budget, int64_t slots,
                                        const SolveContext& context) {
  const int64_t common = CommonUnit(chain);
  if (budget.value() / common <= slots) return LosslessTable(chain, budget, context);
  const int64_t unit = std::max<int64_t>(budget.value() / slots, 1);
  return MakeTable(chain, unit, budget.value() / unit, Rounding::kUp, context);
}

// Rising memories from `from` slots on, about so many: the first at which each value stands.
std::vector<int64_t> MemoriesOf(const SizedTable& table, int64_t from, int64_t budgets) {
  std::vector<int64_t> memories;
  const int64_t step = std::max<int64_t>((table.slots - from) / std::max<int64_t>(budgets, 1), 1);
  int64_t before = kInfinity;
  for (int64_t m = from + (table.slots - from) % step; m <= table.slots; m += step) {
    const int64_t overhead = table.table->Overhead(m);
    if (overhead >= before) continue;
    before = overhead;
    memories.push_back(m);
  }
  return memories;
}

// What the table has at these memories.
absl::Status AddBudgets(const SizedTable& table, const std::vector<int64_t>& memories,
                        const SolveContext& context, FrontierBuilder* builder) {
  StopPoll poll(context.stop());
  for (const int64_t m : memories) {
    absl::Status status = poll.Spend(1 << 20);
    if (status.ok()) status = builder->Add(table.table->Backtrack(m));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Whether a schedule of `slots` slots may need no more than `budget`, sizes rounded to
// nearest: every size of a stage may be half a unit less than its slots.
bool MayFit(const SizedTable& table, int64_t slots, Bytes budget) {
  const int64_t sizes = 3 * (int64_t{table.space->last()} + 1);
  return slots - sizes / 2 <= budget.value() / table.unit;
}

// Calls use(table, memories) for each of the rounded tables of a chain, those for store-all's peak,
// half of it, and so on; returns the most slots of one.
absl::StatusOr<int64_t> VisitRounded(
    const NonPersistentProblem& problem, const SolveContext& context,
    absl::FunctionRef<absl::Status(const SizedTable&, const std::vector<int64_t>&)> use) {
  const double alternatives = problem.extents.index.alternatives();
  const int tables = static_cast<int>(std::clamp<double>(
      kFrontierNanos / (2 * kNanosPerAlternative * alternatives), 1, kMaxTables));
  int64_t most_slots = 0;
  Bytes budget = problem.store_all_peak;
  for (int i = 0; i < tables && budget > problem.least_budget(); ++i) {
    const SolveContext part = context.Part(double{1} * i / tables, double{1} * (i + 1) / tables);
    const int64_t affordable =
        std::min(AffordableSlots(problem, budget, kFrontierNanos / tables, context), kRoundedSlots);
    if (context.slots() == 0 && affordable < kLeastRoundedSlots) break;
    const absl::StatusOr<SizedTable> table =
        context.slots() > 0
            ? TableOfSlots(problem.chain(), budget, context.slots(), part)
            : MakeTable(problem.chain(), std::max<int64_t>(budget.value() / affordable, 1),
                        affordable, Rounding::kNearest, part);
    if (absl::IsResourceExhausted(table.status())) break;
    if (!table.ok()) return table.status();
    most_slots = std::max(most_slots, table->slots);
    // A little below half too: what a schedule really needs may be more than its slots.
    const int64_t from = i + 1 == tables ? 0 : table->slots * 2 / 5;
    absl::Status status = use(*table, MemoriesOf(*table, from, kBudgetsPerTable));
    if (!status.ok()) return status;
    budget = Bytes(budget.value() / 2);
  }
  return most_slots;
}

absl::StatusOr<NonPersistentProblem> MakeNonPersistentProblem(const Instance& instance,
                                                              const SolveContext& context) {
  const Chain& chain = instance.chain();
  PersistentSpace exact(chain, 1);
  absl::StatusOr<NonPersistentExtents> extents =
      ComputeExtents(exact, CheckpointsMove(chain), context);
  if (!extents.ok()) return extents.status();
  return NonPersistentProblem{instance, std::move(exact), *std::move(extents),
                              instance.store_all()->peak};
}

// Whether one table in the sizes' common unit serves all budgets. It depends on none of them: more
// budget must not make an exact answer a rounded one.
bool LosslessIsAffordable(const NonPersistentProblem& problem, const SolveContext& context) {
  const int64_t slots = std::min(
      AffordableSlots(problem, problem.store_all_peak, kTableNanos, context), kMaxLosslessSlots);
  return problem.store_all_peak.value() / CommonUnit(problem.chain()) <= slots;
}

// Adds what one lossless table has, or several rounded ones, and notes it in `info`. CANCELLED,
// DEADLINE_EXCEEDED; what is too large for the table limit adds nothing.
absl::Status AddLossless(const NonPersistentProblem& problem, const SolveContext& context,
                         FrontierBuilder* builder, FrontierInfo* info) {
  const absl::StatusOr<SizedTable> table =
      LosslessTable(problem.chain(), problem.store_all_peak, context);
  if (absl::IsResourceExhausted(table.status())) return absl::OkStatus();
  if (!table.ok()) return table.status();
  const int64_t stages = problem.exact.last();
  const bool all = table->slots <= kBudgetsByStages / stages / stages;
  info->slots = table->slots;
  info->exact = all && table->lossless;
  const int64_t budgets = all ? table->slots : kMaxTables * kBudgetsPerTable;
  return AddBudgets(*table, MemoriesOf(*table, 0, budgets), context, builder);
}

absl::Status AddRounded(const NonPersistentProblem& problem, const SolveContext& context,
                        FrontierBuilder* builder, FrontierInfo* info) {
  absl::StatusOr<int64_t> slots = VisitRounded(
      problem, context, [&](const SizedTable& table, const std::vector<int64_t>& memories) {
        return AddBudgets(table, memories, context, builder);
      });
  if (!slots.ok()) return slots.status();
  info->slots = *slots;
  return absl::OkStatus();
}

// The fastest of the schedules offered that fit; the first among equals.
class Best {
 public:
  Best(const Instance& instance, Bytes budget) : evaluator_(instance), budget_(budget) {}

  absl::Status Offer(Schedule schedule, std::string explanation) {
    const absl::StatusOr<Simulation> simulation = evaluator_.Run(schedule);
    if (!simulation.ok()) return absl::InternalError(simulation.status().message());
    if (simulation->peak > budget_) return absl::OkStatus();
    if (schedule_ && simulation->makespan >= makespan_) return absl::OkStatus();
    makespan_ = simulation->makespan;
    schedule_ = std::move(schedule);
    explanation_ = std::move(explanation);
    return absl::OkStatus();
  }

  // Of the best schedule so far.
  void Explain(std::string explanation) { explanation_ = std::move(explanation); }

  // More than any schedule's where none fits.
  Nanos makespan() const { return schedule_ ? makespan_ : Nanos(kInfinity); }

  void MoveTo(Plan* plan) {
    plan->status = PlanStatus::kFound;
    plan->schedule = *std::move(schedule_);
    plan->explanation = std::move(explanation_);
  }

 private:
  const Evaluator evaluator_;
  const Bytes budget_;
  std::optional<Schedule> schedule_;
  Nanos makespan_;
  std::string explanation_;
};

// Offers the fastest of the schedules that AddRounded adds and that fit `budget`: of the same tables,
// but few schedules are made instead of hundreds. Rounded tables depend on the chain alone, so that
// more budget is never slower. Errors as of AddRounded.
absl::Status OfferOfRounded(const NonPersistentProblem& problem, Bytes budget,
                            const SolveContext& context, Best* best, Plan* plan) {
  const Nanos ideal = problem.instance.ideal_time(), before = best->makespan();
  StopPoll poll(context.stop());
  const auto offer = [&](const SizedTable& table, const std::vector<int64_t>& memories) {
    // Less memory is slower; times that are rounded do not say by how much.
    const bool exact = table.table->time_unit() == 1;
    for (size_t i = memories.size(); i-- > 0;) {
      // What is faster than at the memory before needs more than that.
      if (i > 0 && !MayFit(table, memories[i - 1] + 1, budget)) continue;
      if (exact && ideal + Nanos(table.table->Overhead(memories[i])) >= best->makespan()) break;
      absl::Status status = poll.Spend(1 << 20);
      if (status.ok()) status = best->Offer(table.table->Backtrack(memories[i]), "");
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  };
  const absl::StatusOr<int64_t> slots = VisitRounded(problem, context, offer);
  if (!slots.ok()) return slots.status();
  plan->provenance.slots = std::max(plan->provenance.slots, *slots);
  if (best->makespan() < before) {
    best->Explain(absl::StrCat("tables with memory rounded to up to ", *slots, " slots"));
  }
  return absl::OkStatus();
}

class NonPersistent final : public Solver {
 public:
  const SolverInfo& info() const override { return info_; }

  absl::StatusOr<Plan> DoSolve(const Instance& instance, Bytes budget,
                               const SolveContext& context) const override {
    const Chain& chain = instance.chain();
    Plan plan;
    plan.bounds.schedule_class = ClassFor(chain);
    if (PlanStoreAll(instance, budget, &plan)) return plan;
    absl::StatusOr<NonPersistentProblem> problem = MakeNonPersistentProblem(instance, context);
    if (!problem.ok()) return problem.status();
    plan.bounds.least_budget = problem->least_budget();
    if (budget < plan.bounds.least_budget) {
      plan.status = PlanStatus::kProvenInfeasible;
      plan.explanation = absl::StrCat("of ", plan.bounds.schedule_class, ", none needs less than ",
                                      plan.bounds.least_budget.value(), " bytes");
      return plan;
    }
    absl::Status status = SolveFeasible(*problem, budget, context, &plan);
    if (!status.ok()) return status;
    return plan;
  }

  absl::StatusOr<Frontier> DoSolveFrontier(const Instance& instance,
                                           const SolveContext& context) const override {
    absl::StatusOr<NonPersistentProblem> problem = MakeNonPersistentProblem(instance, context);
    if (!problem.ok()) return problem.status();
    return FrontierOf(*problem, context);
  }

  absl::StatusOr<Bytes> DoLeastBudget(const Instance& instance,
                                      const SolveContext& context) const override {
    const Chain& chain = instance.chain();
    const PersistentSpace exact(chain, 1);
    absl::StatusOr<NonPersistentExtents> extents =
        ComputeExtents(exact, CheckpointsMove(chain), context);
    if (!extents.ok()) return extents.status();
    return Bytes(LeastBudgetOf(exact, *extents));
  }

 private:
  std::string ClassFor(const Chain& chain) const {
    return absl::StrCat(info_.schedule_class,
                        CheckpointsMove(chain) ? " and checkpoints that move" : "");
  }

  // A table that is too large is done without, unless it was asked for.
  static bool MayDoWithout(const absl::Status& status, const SolveContext& context) {
    return absl::IsResourceExhausted(status) && context.slots() == 0;
  }

  // Of the optimal persistent schedule, what goes beyond it and the schedule of least memory, the
  // fastest. Each of them is never slower with more budget.
  absl::Status SolveFeasible(const NonPersistentProblem& problem, Bytes budget,
                             const SolveContext& context, Plan* plan) const {
    Best best(problem.instance, budget);
    absl::StatusOr<Plan> persistent =
        OptimalPersistentSolver().Solve(problem.instance, budget, context.Part(0.0, 0.3));
    if (!persistent.ok() && !MayDoWithout(persistent.status(), context)) return persistent.status();
    bool done = false;
    if (persistent.ok() && persistent->status == PlanStatus::kFound) {
      plan->provenance.slots = persistent->provenance.slots;
      absl::Status status =
          best.Offer(std::move(persistent->schedule),
                     absl::StrCat("nothing beat a persistent one: ", persistent->explanation));
      if (!status.ok()) return status;
      done = best.makespan() <= StrongestMakespanLowerBound(problem.instance, budget);
      plan->bounds.proven_optimal = done;
    }
    if (!done) {
      const SolveContext rest = context.Part(0.3, 1.0);
      absl::Status status = context.slots() > 0 || LosslessIsAffordable(problem, context)
                                ? OfferOfOneTable(problem, budget, rest, &best, plan)
                                : OfferOfRounded(problem, budget, rest, &best, plan);
      if (status.ok()) {
        status = best.Offer(problem.least_schedule(),
                            "the schedule of least memory, not optimised for time");
      }
      if (!status.ok()) return status;
    }
    best.MoveTo(plan);
    return absl::OkStatus();
  }

  static absl::Status OfferOfOneTable(const NonPersistentProblem& problem, Bytes budget,
                                      const SolveContext& context, Best* best, Plan* plan) {
    const absl::StatusOr<SizedTable> table =
        context.slots() > 0 ? TableOfSlots(problem.chain(), budget, context.slots(), context)
                            : LosslessTable(problem.chain(), budget, context);
    if (!table.ok()) {
      return MayDoWithout(table.status(), context) ? absl::OkStatus() : table.status();
    }
    if (table->table->Overhead(table->slots) >= kInfinity) return absl::OkStatus();
    plan->provenance.slots = table->slots;
    plan->bounds.proven_optimal = table->lossless;
    return best->Offer(table->table->Backtrack(table->slots),
                       absl::StrCat("a table with memory rounded to ", table->slots, " slots"));
  }

  absl::StatusOr<Frontier> FrontierOf(const NonPersistentProblem& problem,
                                      const SolveContext& context) const {
    absl::StatusOr<Frontier> persistent =
        OptimalPersistentSolver().SolveFrontier(problem.instance, context.Part(0.0, 0.5));
    if (!persistent.ok()) return persistent.status();
    FrontierBuilder builder(problem.instance, context.frontier_limit());
    builder.Add(*persistent);
    absl::Status status = builder.Add(problem.least_schedule());
    if (!status.ok()) return status;
    FrontierInfo info = {info_.name, ClassFor(problem.chain()), problem.least_budget(),
                         /*exact=*/false, /*slots=*/0};
    const SolveContext rest = context.Part(0.5, 1.0);
    status = context.slots() == 0 && LosslessIsAffordable(problem, context)
                 ? AddLossless(problem, rest, &builder, &info)
                 : AddRounded(problem, rest, &builder, &info);
    if (!status.ok()) return status;
    return builder.BuildCompact(std::move(info));
  }

  const SolverInfo info_ = {
      "non_persistent",
      "also drops the inputs of saved stages, and moves checkpoints on short chains; never slower "
      "than optimal_persistent",
      "schedules in which what is stored stays until its backward, except inputs of "
      "stored stages",
      ScheduleClass::kNonPersistent};
};

}  // namespace

const Solver& NonPersistentSolver() {
  static const NonPersistent* const kSolver = new NonPersistent;
  return *kSolver;
}

}  // namespace stowage
