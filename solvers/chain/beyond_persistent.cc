// The solver over the recurrence of beyond_recurrence.h. Ideas tried and what they gained: README.md
// beside this file.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/chain/beyond_extents.h"
#include "solvers/chain/beyond_table.h"
#include "solvers/chain/persistent_space.h"
#include "solvers/chain/solvers.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

constexpr int64_t kMaxSlots = 1000000;
constexpr double kMinAutoSlots = 100;
constexpr double kMaxAutoSlots = 50000;
// What a table may take of one core, and what an alternative takes of it: something for itself, and
// for every slot. Measured on random chains of 339 stages.
constexpr double kTableNanos = 7e9;
constexpr double kNanosPerAlternative = 130;
constexpr double kNanosPerSlot = 0.05;
// Stages with the loss. Moving checkpoints closed what was left of the gap to the optimum on chains
// of a few stages, and gained nothing on networks of 20 and more.
constexpr int kMaxMoving = 16;
// A frontier is made of tables for store-all's peak, half of it, ... as many as its time allows, and
// of so many budgets each;
constexpr double kFrontierNanos = 1.2e10;
constexpr int kMaxTables = 3;
constexpr int64_t kBudgetsPerTable = 100;
// or of one table for all of them, where it rounds nothing and its schedules, of O(L^2) each, are made
// in some seconds.
constexpr int64_t kBudgetsByStages = 50000000;

bool Moving(const Chain& chain) { return chain.length() + 1 <= kMaxMoving; }

// What one table was made with.
struct Table {
  std::unique_ptr<PersistentSpace> space;
  std::unique_ptr<BeyondTable> table;
  int64_t unit = 1;
  int64_t slots = 0;
  bool lossless = false;  // nothing was rounded
};

// As many as the time and the table limit allow.
int64_t AutoSlots(const BeyondExtents& extents, Bytes budget, double nanos,
                  const SolveOptions& options) {
  const double by_time =
      (nanos / extents.index.alternatives() - kNanosPerAlternative) / kNanosPerSlot;
  double widths = 0;  // of all rows, as shares of the slots
  for (const BeyondExtents::Extent& e : extents.extents) {
    const int64_t width = std::min(e.all_kept, budget.value()) - e.least;
    widths +=
        static_cast<double>(std::max<int64_t>(width, 0)) / static_cast<double>(budget.value());
  }
  const double by_memory = 0.8 * static_cast<double>(options.table_limit.value()) /
                           (BeyondTable::kMaxBytesPerValue * std::max(widths, 1.0));
  return static_cast<int64_t>(
      std::clamp<double>(std::min(by_time, by_memory), kMinAutoSlots, kMaxAutoSlots));
}

// The options of one part of a solve: its progress is the part's share of the whole.
SolveOptions Part(const SolveOptions& options, double begin, double end) {
  SolveOptions part = options;
  if (options.progress) {
    part.progress = [&options, begin, end](double share) {
      options.progress(begin + share * (end - begin));
    };
  }
  return part;
}

// A table for all budgets up to `budget`, in the sizes' common unit if that takes no more slots than
// allowed.
absl::StatusOr<Table> MakeTable(const Chain& chain, const BeyondExtents& extents, Bytes budget,
                                double nanos, const SolveOptions& options) {
  const int64_t slots =
      options.slots > 0 ? options.slots : AutoSlots(extents, budget, nanos, options);
  const int64_t common = CommonUnit(chain);
  Table result;
  result.unit = common;
  if (budget.value() / common > slots) {
    result.unit = std::max<int64_t>(budget.value() / slots, 1);
  }
  result.slots = budget.value() / result.unit;
  result.space = std::make_unique<PersistentSpace>(chain, result.unit);
  absl::StatusOr<std::unique_ptr<BeyondTable>> table =
      BeyondTable::Compute(*result.space, Moving(chain), result.slots, options);
  if (!table.ok()) return table.status();
  result.table = *std::move(table);
  result.lossless = common % result.unit == 0 && result.table->time_unit() == 1;
  return result;
}

// The fastest of the schedules offered that fit; the first among equals.
class Best {
 public:
  Best(const Chain& chain, Bytes budget) : chain_(chain), budget_(budget) {}

  absl::Status Offer(Schedule schedule, std::string explanation) {
    const absl::StatusOr<Simulation> simulation = Simulate(chain_, schedule);
    if (!simulation.ok()) return absl::InternalError(simulation.status().message());
    if (simulation->peak > budget_) return absl::OkStatus();
    if (schedule_ && simulation->makespan >= makespan_) return absl::OkStatus();
    makespan_ = simulation->makespan;
    schedule_ = std::move(schedule);
    explanation_ = std::move(explanation);
    return absl::OkStatus();
  }

  void MoveTo(Plan* plan) {
    plan->status = PlanStatus::kFound;
    plan->schedule = *std::move(schedule_);
    plan->explanation = std::move(explanation_);
  }

 private:
  const Chain& chain_;
  const Bytes budget_;
  std::optional<Schedule> schedule_;
  Nanos makespan_;
  std::string explanation_;
};

class BeyondPersistent final : public ChainSolver {
 public:
  const SolverInfo& info() const override { return info_; }

  absl::StatusOr<Plan> Solve(const Chain& chain, Bytes budget,
                             const SolveOptions& options) const override {
    absl::Status status = CheckOptions(options);
    if (!status.ok()) return status;
    absl::StatusOr<Plan> store_all = StoreAllSolver().Solve(chain, budget, options);
    if (!store_all.ok()) return store_all.status();
    Plan plan;
    if (store_all->status == PlanStatus::kFound) plan = *std::move(store_all);
    plan.bounds.schedule_class = ClassFor(chain);
    plan.bounds.least_budget = Bytes(0);
    if (plan.status == PlanStatus::kFound) return plan;
    const PersistentSpace exact(chain, 1);
    absl::StatusOr<BeyondExtents> extents = ComputeExtents(exact, Moving(chain), options);
    if (!extents.ok()) return extents.status();
    plan.bounds.least_budget = Bytes(LeastBudgetOf(exact, *extents));
    if (budget < plan.bounds.least_budget) {
      plan.status = PlanStatus::kProvenInfeasible;
      plan.explanation =
          absl::StrCat("none of the ", plan.bounds.schedule_class, " needs less than ",
                       plan.bounds.least_budget.value(), " bytes");
      return plan;
    }
    status = SolveFeasible(chain, exact, *extents, budget, options, &plan);
    if (!status.ok()) return status;
    return plan;
  }

  absl::StatusOr<Frontier> SolveFrontier(const Chain& chain,
                                         const SolveOptions& options) const override {
    absl::Status status = CheckOptions(options);
    if (!status.ok()) return status;
    const PersistentSpace exact(chain, 1);
    absl::StatusOr<BeyondExtents> extents = ComputeExtents(exact, Moving(chain), options);
    if (!extents.ok()) return extents.status();
    absl::StatusOr<Frontier> persistent =
        OptimalPersistentSolver().SolveFrontier(chain, Part(options, 0, 0.5));
    if (!persistent.ok()) return persistent.status();
    FrontierBuilder builder(chain);
    builder.Add(*persistent);
    status = builder.Add(LeastSchedule(exact, *extents));
    if (!status.ok()) return status;
    FrontierInfo info = {info_.name, ClassFor(chain), Bytes(LeastBudgetOf(exact, *extents)),
                         /*exact=*/false, /*slots=*/0};
    const int64_t stages = exact.last();
    const double least_nanos = 2 * kNanosPerAlternative * extents->index.alternatives();
    const int tables =
        static_cast<int>(std::clamp<double>(kFrontierNanos / least_nanos, 1, kMaxTables));
    Bytes budget = persistent->points().back().peak;
    for (int i = 0; i < tables && budget > info.least_budget; ++i) {
      const absl::StatusOr<Table> table =
          MakeTable(chain, *extents, budget, std::min(kTableNanos, kFrontierNanos / tables),
                    Part(options, 0.5 + 0.5 * i / tables, 0.5 + 0.5 * (i + 1) / tables));
      if (absl::IsResourceExhausted(table.status())) break;
      if (!table.ok()) return table.status();
      info.slots = std::max(info.slots, table->slots);
      const bool every = table->lossless && table->slots <= kBudgetsByStages / stages / stages;
      status = AddAll(*table, every ? table->slots : kBudgetsPerTable, options, &builder);
      if (!status.ok()) return status;
      info.exact = every;
      if (every) break;
      budget = Bytes(budget.value() / 2);
    }
    return builder.Build(std::move(info));
  }

  absl::StatusOr<Bytes> LeastBudget(const Chain& chain,
                                    const SolveOptions& options) const override {
    const PersistentSpace exact(chain, 1);
    absl::StatusOr<BeyondExtents> extents = ComputeExtents(exact, Moving(chain), options);
    if (!extents.ok()) return extents.status();
    return Bytes(LeastBudgetOf(exact, *extents));
  }

 private:
  static absl::Status CheckOptions(const SolveOptions& options) {
    if (options.slots >= 0 && options.slots <= kMaxSlots) return absl::OkStatus();
    return FieldError("options.slots", options.slots,
                      absl::StrCat("must be in [0, ", kMaxSlots, "]"));
  }

  std::string ClassFor(const Chain& chain) const {
    return absl::StrCat(info_.schedule_class, Moving(chain) ? ", moving checkpoints" : "");
  }

  // Of a table's schedule, the optimal persistent one and the one of least memory, the fastest.
  static absl::Status SolveFeasible(const Chain& chain, const PersistentSpace& exact,
                                    const BeyondExtents& extents, Bytes budget,
                                    const SolveOptions& options, Plan* plan) {
    Best best(chain, budget);
    absl::StatusOr<Plan> persistent =
        OptimalPersistentSolver().Solve(chain, budget, Part(options, 0, 0.5));
    if (!persistent.ok() && !absl::IsResourceExhausted(persistent.status()))
      return persistent.status();
    absl::Status status;
    if (persistent.ok() && persistent->status == PlanStatus::kFound) {
      status = best.Offer(std::move(persistent->schedule),
                          absl::StrCat("nothing beat a persistent one: ", persistent->explanation));
      if (!status.ok()) return status;
    }
    const absl::StatusOr<Table> table =
        MakeTable(chain, extents, budget, kTableNanos, Part(options, 0.5, 1));
    if (!table.ok() && !absl::IsResourceExhausted(table.status())) return table.status();
    if (table.ok() && table->table->Excess(table->slots) < kNever) {
      plan->provenance.slots = table->slots;
      plan->bounds.proven_optimal = table->lossless;
      status = best.Offer(table->table->Backtrack(table->slots),
                          absl::StrCat("a table of ", table->slots, " memory slots"));
      if (!status.ok()) return status;
    }
    status = best.Offer(LeastSchedule(exact, extents),
                        "the schedule of least memory, not optimised for time");
    if (!status.ok()) return status;
    best.MoveTo(plan);
    return absl::OkStatus();
  }

  // What the table has at about so many budgets.
  static absl::Status AddAll(const Table& table, int64_t budgets, const SolveOptions& options,
                             FrontierBuilder* builder) {
    StopPoll poll(options.stop);
    const int64_t step = std::max<int64_t>(table.slots / std::max<int64_t>(budgets, 1), 1);
    int64_t before = kNever;
    for (int64_t m = table.slots % step; m <= table.slots; m += step) {
      absl::Status status = poll.Spend(1 << 20);
      if (!status.ok()) return status;
      const int64_t excess = table.table->Excess(m);
      if (excess >= before) continue;
      before = excess;
      status = builder->Add(table.table->Backtrack(m));
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  const SolverInfo info_ = {
      "beyond_persistent",
      "also drops the inputs of saved stages, and moves checkpoints on short chains; never slower "
      "than optimal_persistent",
      "memory-persistent schedules, recomputing on demand, that may drop inputs of saved stages"};
};

}  // namespace

const ChainSolver& BeyondPersistentSolver() {
  static const BeyondPersistent* const kSolver = new BeyondPersistent;
  return *kSolver;
}

}  // namespace stowage
