#include "solvers/chain/beyond_tables.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "solvers/chain/solvers.h"
#include "solvers/plan/simulate.h"
#include "solvers/rising_progress.h"

namespace stowage {
namespace {

constexpr int64_t kMostSlots = 1000000;
// What a table that rounds nothing may take of one core, and what an alternative takes of it:
// something for itself, and for every slot. Measured on random chains of 339 stages.
constexpr double kTableNanos = 2e9;
constexpr double kNanosPerAlternative = 130;
constexpr double kNanosPerSlot = 0.05;
constexpr int64_t kMaxLosslessSlots = 50000;
// Where sizes are rounded, to nearest: the referee says what each schedule really needs. So few slots
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

// As many slots for all budgets up to `budget` as the time and the table limit allow.
int64_t AffordableSlots(const BeyondProblem& problem, Bytes budget, double nanos,
                        const SolveOptions& options) {
  const double by_time =
      (nanos / problem.extents.index.alternatives() - kNanosPerAlternative) / kNanosPerSlot;
  double widths = 0;  // of all rows, as shares of the slots
  const double whole = static_cast<double>(std::max<int64_t>(budget.value(), 1));
  for (const BeyondExtents::Extent& e : problem.extents.extents) {
    const int64_t width = std::min(e.all_kept, budget.value()) - e.least;
    widths += static_cast<double>(std::max<int64_t>(width, 0)) / whole;
  }
  const int64_t beside =
      BeyondTable::BytesBesideValues(static_cast<int64_t>(problem.extents.extents.size()));
  const double by_memory = 0.8 * static_cast<double>(options.table_limit.value() - beside) /
                           (BeyondTable::kMaxBytesPerValue * std::max(widths, 1.0));
  return static_cast<int64_t>(std::clamp<double>(std::min(by_time, by_memory), 0, kMostSlots));
}

absl::StatusOr<SizedTable> MakeTable(const Chain& chain, int64_t unit, int64_t slots,
                                     Rounding rounding, const SolveOptions& options) {
  SizedTable result;
  result.unit = unit;
  result.slots = slots;
  result.space = std::make_unique<PersistentSpace>(chain, unit, rounding);
  absl::StatusOr<std::unique_ptr<BeyondTable>> table =
      BeyondTable::Compute(*result.space, CheckpointsMove(chain), slots, options);
  if (!table.ok()) return table.status();
  result.table = *std::move(table);
  result.lossless = CommonUnit(chain) % unit == 0 && result.table->time_unit() == 1;
  return result;
}

// Rising memories from `from` slots on, about so many: the first at which each value stands.
std::vector<int64_t> MemoriesOf(const SizedTable& table, int64_t from, int64_t budgets) {
  std::vector<int64_t> memories;
  const int64_t step = std::max<int64_t>((table.slots - from) / std::max<int64_t>(budgets, 1), 1);
  int64_t before = kNever;
  for (int64_t m = from + (table.slots - from) % step; m <= table.slots; m += step) {
    const int64_t excess = table.table->Excess(m);
    if (excess >= before) continue;
    before = excess;
    memories.push_back(m);
  }
  return memories;
}

// What the table has at these memories.
absl::Status AddBudgets(const SizedTable& table, const std::vector<int64_t>& memories,
                        const SolveOptions& options, FrontierBuilder* builder) {
  StopPoll poll(options.stop);
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

// Of the schedules at these memories, the fastest that fits the budget and takes less than `bound`.
absl::Status FindFastest(const BeyondProblem& problem, const SizedTable& table,
                         const std::vector<int64_t>& memories, Bytes budget, Nanos* bound,
                         const SolveOptions& options, std::optional<Schedule>* fastest) {
  StopPoll poll(options.stop);
  // Less memory is slower; times that are rounded do not say by how much.
  const bool exact = table.table->time_unit() == 1;
  const Nanos ideal = problem.chain.ideal_time();
  for (size_t i = memories.size(); i-- > 0;) {
    // What is faster than at the memory before needs more than that.
    if (i > 0 && !MayFit(table, memories[i - 1] + 1, budget)) continue;
    if (exact && ideal + Nanos(table.table->Excess(memories[i])) >= *bound) break;
    absl::Status status = poll.Spend(1 << 20);
    if (!status.ok()) return status;
    Schedule schedule = table.table->Backtrack(memories[i]);
    const absl::StatusOr<Simulation> simulation = Simulate(problem.chain, schedule);
    if (!simulation.ok()) return absl::InternalError(simulation.status().message());
    if (simulation->peak > budget || simulation->makespan >= *bound) continue;
    *bound = simulation->makespan;
    *fastest = std::move(schedule);
  }
  return absl::OkStatus();
}

// Calls use(table, memories) for each of the rounded tables of a chain, those for store-all's peak,
// half of it, and so on; returns the most slots of one.
absl::StatusOr<int64_t> VisitRounded(
    const BeyondProblem& problem, const SolveOptions& options,
    absl::FunctionRef<absl::Status(const SizedTable&, const std::vector<int64_t>&)> use) {
  const double alternatives = problem.extents.index.alternatives();
  const int tables = static_cast<int>(std::clamp<double>(
      kFrontierNanos / (2 * kNanosPerAlternative * alternatives), 1, kMaxTables));
  RisingProgress progress(options.progress);
  int64_t most_slots = 0;
  Bytes budget = problem.store_all_peak;
  for (int i = 0; i < tables && budget > problem.least_budget(); ++i) {
    const SolveOptions part =
        progress.Part(options, double{1} * i / tables, double{1} * (i + 1) / tables);
    const int64_t affordable =
        std::min(AffordableSlots(problem, budget, kFrontierNanos / tables, options), kRoundedSlots);
    if (options.slots == 0 && affordable < kLeastRoundedSlots) break;
    const absl::StatusOr<SizedTable> table =
        options.slots > 0
            ? TableOfSlots(problem.chain, budget, options.slots, part)
            : MakeTable(problem.chain, std::max<int64_t>(budget.value() / affordable, 1),
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

}  // namespace

bool CheckpointsMove(const Chain& chain) { return chain.length() + 1 <= kMaxMoving; }

absl::StatusOr<BeyondProblem> MakeBeyondProblem(const Chain& chain, const SolveOptions& options) {
  PersistentSpace exact(chain, 1);
  absl::StatusOr<BeyondExtents> extents = ComputeExtents(exact, CheckpointsMove(chain), options);
  if (!extents.ok()) return extents.status();
  const absl::StatusOr<Bytes> peak = StoreAllSolver().LeastBudget(chain, options);
  if (!peak.ok()) return peak.status();
  return BeyondProblem{chain, std::move(exact), *std::move(extents), *peak};
}

bool LosslessIsAffordable(const BeyondProblem& problem, const SolveOptions& options) {
  const int64_t slots = std::min(
      AffordableSlots(problem, problem.store_all_peak, kTableNanos, options), kMaxLosslessSlots);
  return problem.store_all_peak.value() / CommonUnit(problem.chain) <= slots;
}

absl::StatusOr<SizedTable> LosslessTable(const Chain& chain, Bytes budget,
                                         const SolveOptions& options) {
  const int64_t unit = CommonUnit(chain);
  return MakeTable(chain, unit, budget.value() / unit, Rounding::kUp, options);
}

absl::StatusOr<SizedTable> TableOfSlots(const Chain& chain, Bytes budget, int64_t slots,
                                        const SolveOptions& options) {
  const int64_t common = CommonUnit(chain);
  if (budget.value() / common <= slots) return LosslessTable(chain, budget, options);
  const int64_t unit = std::max<int64_t>(budget.value() / slots, 1);
  return MakeTable(chain, unit, budget.value() / unit, Rounding::kUp, options);
}

absl::Status AddLossless(const BeyondProblem& problem, const SolveOptions& options,
                         FrontierBuilder* builder, FrontierInfo* info) {
  const absl::StatusOr<SizedTable> table =
      LosslessTable(problem.chain, problem.store_all_peak, options);
  if (absl::IsResourceExhausted(table.status())) return absl::OkStatus();
  if (!table.ok()) return table.status();
  const int64_t stages = problem.exact.last();
  const bool all = table->slots <= kBudgetsByStages / stages / stages;
  info->slots = table->slots;
  info->exact = all && table->lossless;
  const int64_t budgets = all ? table->slots : kMaxTables * kBudgetsPerTable;
  return AddBudgets(*table, MemoriesOf(*table, 0, budgets), options, builder);
}

absl::Status AddRounded(const BeyondProblem& problem, const SolveOptions& options,
                        FrontierBuilder* builder, FrontierInfo* info) {
  absl::StatusOr<int64_t> slots = VisitRounded(
      problem, options, [&](const SizedTable& table, const std::vector<int64_t>& memories) {
        return AddBudgets(table, memories, options, builder);
      });
  if (!slots.ok()) return slots.status();
  info->slots = *slots;
  return absl::OkStatus();
}

absl::StatusOr<RoundedSchedule> FastestRounded(const BeyondProblem& problem, Bytes budget,
                                               Nanos bound, const SolveOptions& options) {
  RoundedSchedule result;
  absl::StatusOr<int64_t> slots = VisitRounded(
      problem, options, [&](const SizedTable& table, const std::vector<int64_t>& memories) {
        return FindFastest(problem, table, memories, budget, &bound, options, &result.schedule);
      });
  if (!slots.ok()) return slots.status();
  result.slots = *slots;
  return result;
}

}  // namespace stowage
