#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "solvers/chain/internal/persistent_frontier.h"
#include "solvers/chain/persistent_space.h"
#include "solvers/chain/solvers.h"
#include "solvers/model/field_error.h"
#include "solvers/schedule/instance.h"

namespace stowage {
namespace {

constexpr int64_t kMaxRevolveSteps = 1000000;
// What a split takes of one core: something for itself, and for every step of its rows.
constexpr double kNanosPerSplit = 20;
constexpr double kNanosPerStep = 25;
// What the solver aims at, what it takes where that is not enough for kMinSteps, and what it does
// when a caller asks for so many steps.
constexpr double kAimNanos = 3e9;
constexpr double kMostNanos = 8e9;
constexpr double kMostAskedNanos = 4e10;
constexpr int64_t kMinSteps = 4;
constexpr int64_t kMaxSteps = 4096;
// What a row takes without its steps.
constexpr int64_t kRowBytes = 64;

// What the rows of a chain cost: known before anything large is made.
struct RowCosts {
  int64_t rows = 0;    // of intervals that differ
  int64_t splits = 0;  // of all of them

  double Nanos(int64_t steps) const {
    return static_cast<double>(splits) *
           (kNanosPerSplit + kNanosPerStep * static_cast<double>(steps));
  }

  // As many steps for each row as some seconds and the context's memory allow.
  int64_t AffordableSteps(const SolveContext& context) const {
    const double by_time =
        (kAimNanos / static_cast<double>(std::max<int64_t>(splits, 1)) - kNanosPerSplit) /
        kNanosPerStep;
    const int64_t bytes = context.memory().value() - rows * kRowBytes;
    const auto row_bytes =
        static_cast<double>(sizeof(PersistentSteps::Step)) * static_cast<double>(rows);
    const double by_memory = static_cast<double>(std::max<int64_t>(bytes, 0)) / 2 / row_bytes;
    return static_cast<int64_t>(
        std::min(std::clamp<double>(by_time, kMinSteps, kMaxSteps), std::max(by_memory, 1.0)));
  }
};

// RESOURCE_EXHAUSTED where even rows of a few steps would take more than some seconds, or more than
// the context's memory. O(L^2).
absl::StatusOr<RowCosts> CostsOf(const PersistentSpace& space, const SolveContext& context) {
  const int64_t last = space.last();
  const absl::Status too_long = absl::ResourceExhaustedError(
      absl::StrCat("rows for all intervals of ", last, " stages would take minutes"));
  // At the least there is an interval of every length.
  if (last > kMaxIntervalStages + 1 ||
      RowCosts{last, last * last / 2}.Nanos(kMinSteps) > kMostNanos) {
    return too_long;
  }
  const std::vector<StageRepeat> repeats = FindStageRepeats(space);
  RowCosts costs;
  costs.rows = DistinctIntervals(repeats);
  for (int64_t s = 1; s <= last; ++s) {
    const int64_t shared = repeats[static_cast<size_t>(s)].length;
    const int64_t all = last - s + 1;  // lengths of intervals from s
    costs.splits += (all * (all - 1) - shared * (shared - 1)) / 2;
  }
  if (costs.Nanos(kMinSteps) > kMostNanos) return too_long;
  if (costs.rows <= context.memory().value() / kRowBytes) return costs;
  return absl::ResourceExhaustedError(absl::StrCat(
      "rows for ", last, " stages are over the limit of ", context.memory().value(), " bytes"));
}

// What a solve starts from.
struct Setting {
  PersistentSpace space;
  RowCosts costs;
  Bytes store_all_peak;
  Bytes least;  // budget

  // What rows may use within a budget.
  int64_t Memory(Bytes budget) const { return budget.value() - space.activation(0); }
  // Of each row.
  int64_t Steps(const SolveContext& context) const {
    return context.slots() > 0 ? context.slots() : costs.AffordableSteps(context);
  }
};

absl::StatusOr<PersistentSteps> RowsOf(const Setting& setting, Bytes budget, int64_t steps,
                                       const SolveContext& context) {
  const int stages = setting.space.last();
  if (steps > kMinSteps && setting.costs.Nanos(steps) > kMostAskedNanos) {
    return absl::ResourceExhaustedError(
        absl::StrCat("rows of ", steps, " steps for ", stages, " stages would take minutes"));
  }
  absl::StatusOr<std::optional<PersistentSteps>> rows =
      PersistentSteps::Compute(setting.space, setting.Memory(budget),
                               {kInfinity, context.memory().value(), static_cast<size_t>(steps)},
                               context, PersistentSteps::Saving::kJustInTime);
  if (!rows.ok()) return rows.status();
  if (rows->has_value()) return **std::move(rows);
  return absl::ResourceExhaustedError(absl::StrCat("rows of ", steps, " steps for ", stages,
                                                   " stages are over the limit of ",
                                                   context.memory().value(), " bytes"));
}

absl::StatusOr<Setting> Prepare(const Instance& instance, const SolveContext& context) {
  const Chain& chain = instance.chain();
  if (context.slots() < 0 || context.slots() > kMaxRevolveSteps) {
    return FieldError("options.slots", context.slots(),
                      absl::StrCat("must be in [0, ", kMaxRevolveSteps, "]"));
  }
  PersistentSpace space(chain, 1);
  absl::StatusOr<RowCosts> costs = CostsOf(space, context);
  if (!costs.ok()) return costs.status();
  const Bytes store_all = instance.store_all()->peak;
  Setting setting = {std::move(space), *costs, store_all, store_all};
  const SolveContext quiet = context.Quiet();
  // With one step a row has the minimum memory alone.
  absl::StatusOr<PersistentSteps> rows = RowsOf(setting, store_all, 1, quiet);
  if (!rows.ok()) return rows.status();
  if (!rows->Whole().empty()) {
    const Bytes memory(setting.space.activation(0) + rows->Whole().front().memory);
    // Beside the recurrence: delta^0 alone is left at the end.
    setting.least = std::min(setting.least, std::max(memory, chain.gradient(0)));
  }
  return setting;
}

class Revolve final : public Solver {
 public:
  const SolverInfo& info() const override { return info_; }

  absl::StatusOr<Plan> DoSolve(const Instance& instance, Bytes budget,
                               const SolveContext& context) const override {
    absl::StatusOr<Setting> setting = Prepare(instance, context);
    if (!setting.ok()) return setting.status();
    Plan plan;
    plan.bounds.schedule_class = info_.schedule_class;
    plan.bounds.least_budget = setting->least;
    if (budget < setting->least) {
      plan.status = PlanStatus::kProvenInfeasible;
      plan.explanation =
          absl::StrCat("saving nothing ahead needs ", setting->least.value(), " bytes");
      return plan;
    }
    if (PlanStoreAll(instance, budget, &plan)) return plan;
    absl::StatusOr<PersistentSteps> rows =
        RowsOf(*setting, budget, setting->Steps(context), context);
    if (!rows.ok()) return rows.status();
    plan.status = PlanStatus::kFound;
    plan.schedule = rows->Backtrack(setting->Memory(budget));
    plan.bounds.proven_optimal = rows->exact();
    plan.explanation = rows->exact() ? "solved exactly, to the byte"
                                     : "to the byte, but not from all rows of the table";
    return plan;
  }

  absl::StatusOr<Frontier> DoSolveFrontier(const Instance& instance,
                                           const SolveContext& context) const override {
    absl::StatusOr<Setting> setting = Prepare(instance, context);
    if (!setting.ok()) return setting.status();
    absl::StatusOr<PersistentSteps> rows =
        RowsOf(*setting, setting->store_all_peak, setting->Steps(context), context);
    if (!rows.ok()) return rows.status();
    std::vector<PointCost> costs;
    for (const PersistentSteps::Step& step : rows->Whole()) {
      costs.push_back({instance.ideal_time() + Nanos(step.overhead)});
    }
    const std::vector<size_t> chosen = ChooseCompact(costs);
    FrontierBuilder builder(instance, context.frontier_limit());
    absl::Status status = builder.Add(instance.store_all_schedule());
    for (const size_t i : chosen) {
      if (status.ok()) status = builder.Add(rows->Backtrack(rows->Whole()[i].memory));
      if (status.ok()) status = context.CheckStop();
      if (!status.ok()) return status;
    }
    const bool exact = rows->exact() && chosen.size() == costs.size();
    return builder.BuildCompact({info_.name, info_.schedule_class, setting->least, exact,
                                 /*slots=*/0});
  }

  absl::StatusOr<Bytes> DoLeastBudget(const Instance& instance,
                                      const SolveContext& context) const override {
    absl::StatusOr<Setting> setting = Prepare(instance, context);
    if (!setting.ok()) return setting.status();
    return setting->least;
  }

 private:
  const SolverInfo info_ = {
      "revolve", "least time when only checkpoints are kept (Griewank & Walther 2000)",
      "plain training, or schedules that store checkpoints alone and recompute the rest",
      ScheduleClass::kCheckpoints};
};

}  // namespace

const Solver& RevolveSolver() {
  static const Revolve* const kSolver = new Revolve;
  return *kSolver;
}

}  // namespace stowage
