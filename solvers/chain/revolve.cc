#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "solvers/chain/internal/revolve_rows.h"
#include "solvers/chain/persistent_space.h"
#include "solvers/chain/solvers.h"
#include "solvers/chain/store_all_plan.h"
#include "solvers/model/field_error.h"
#include "solvers/schedule/instance.h"

namespace stowage {
namespace {

constexpr int64_t kMaxRevolveSteps = 1000000;

// What a solve starts from.
struct Setting {
  PersistentSpace space;
  RevolveIntervals intervals;
  Bytes store_all_peak;
  Bytes least;  // budget

  // What rows may use within a budget.
  int64_t Memory(Bytes budget) const { return budget.value() - space.activation(0); }
};

absl::StatusOr<Setting> Prepare(const Instance& instance, const SolveOptions& options) {
  const Chain& chain = instance.chain();
  if (options.slots < 0 || options.slots > kMaxRevolveSteps) {
    return FieldError("options.slots", options.slots,
                      absl::StrCat("must be in [0, ", kMaxRevolveSteps, "]"));
  }
  PersistentSpace space(chain, 1);
  absl::StatusOr<RevolveIntervals> intervals = RevolveIntervals::Find(space, options);
  if (!intervals.ok()) return intervals.status();
  Setting setting = {std::move(space), *std::move(intervals), instance.store_all()->peak,
                     instance.store_all()->peak};
  SolveOptions quiet = options;
  quiet.progress = nullptr;
  absl::StatusOr<RevolveRows> rows = RevolveRows::Compute(
      setting.space, setting.intervals, setting.Memory(setting.store_all_peak), 1, quiet);
  if (!rows.ok()) return rows.status();
  if (!rows->Whole().empty()) {
    const Bytes memory(setting.space.activation(0) + rows->Whole().front().memory);
    // Beside the recurrence: delta^0 alone is left at the end.
    setting.least = std::min(setting.least, std::max(memory, chain.gradient(0)));
  }
  return setting;
}

absl::StatusOr<RevolveRows> RowsWithin(const Setting& setting, Bytes budget,
                                       const SolveOptions& options) {
  const int64_t steps = options.slots > 0
                            ? options.slots
                            : setting.intervals.AffordableSteps(sizeof(RevolveRows::Step), options);
  return RevolveRows::Compute(setting.space, setting.intervals, setting.Memory(budget), steps,
                              options);
}

class Revolve final : public Solver {
 public:
  const SolverInfo& info() const override { return info_; }

  absl::StatusOr<Plan> DoSolve(const Instance& instance, Bytes budget,
                               const SolveOptions& options) const override {
    absl::StatusOr<Setting> setting = Prepare(instance, options);
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
    absl::StatusOr<RevolveRows> rows = RowsWithin(*setting, budget, options);
    if (!rows.ok()) return rows.status();
    plan.status = PlanStatus::kFound;
    plan.schedule = rows->Backtrack(setting->Memory(budget));
    plan.bounds.proven_optimal = rows->exact();
    plan.explanation = rows->exact() ? "solved exactly, to the byte"
                                     : "to the byte, but not from all rows of the table";
    return plan;
  }

  absl::StatusOr<Frontier> DoSolveFrontier(const Instance& instance,
                                           const SolveOptions& options) const override {
    absl::StatusOr<Setting> setting = Prepare(instance, options);
    if (!setting.ok()) return setting.status();
    absl::StatusOr<RevolveRows> rows = RowsWithin(*setting, setting->store_all_peak, options);
    if (!rows.ok()) return rows.status();
    std::vector<PointCost> costs;
    for (const RevolveRows::Step& step : rows->Whole()) {
      costs.push_back({instance.ideal_time() + Nanos(step.excess)});
    }
    const std::vector<size_t> chosen = ChooseCompact(costs);
    FrontierBuilder builder(instance, options.frontier_limit());
    absl::Status status = builder.Add(instance.store_all_schedule());
    for (const size_t i : chosen) {
      if (status.ok()) status = builder.Add(rows->Backtrack(rows->Whole()[i].memory));
      if (status.ok() && options.stop != nullptr) status = options.stop->Check();
      if (!status.ok()) return status;
    }
    const bool exact = rows->exact() && chosen.size() == costs.size();
    return builder.BuildCompact({info_.name, info_.schedule_class, setting->least, exact,
                                 /*slots=*/0});
  }

  absl::StatusOr<Bytes> DoLeastBudget(const Instance& instance,
                                      const SolveOptions& options) const override {
    absl::StatusOr<Setting> setting = Prepare(instance, options);
    if (!setting.ok()) return setting.status();
    return setting->least;
  }

 private:
  const SolverInfo info_ = {
      "revolve", "least time when only checkpoints are kept (Griewank & Walther 2000)",
      "plain training, or schedules that store checkpoints alone and recompute the rest"};
};

}  // namespace

const Solver& RevolveSolver() {
  static const Revolve* const kSolver = new Revolve;
  return *kSolver;
}

}  // namespace stowage
