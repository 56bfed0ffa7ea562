// The solver over the recurrence of beyond_recurrence.h. Ideas tried and what they gained: README.md
// beside this file.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/chain/beyond_extents.h"
#include "solvers/chain/beyond_tables.h"
#include "solvers/chain/solvers.h"
#include "solvers/chain/store_all_plan.h"
#include "solvers/plan/lower_bound.h"
#include "solvers/rising_progress.h"

namespace stowage {
namespace {

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

  // More than any schedule's where none fits.
  Nanos makespan() const { return schedule_ ? makespan_ : Nanos(kNever); }

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
    absl::Status status = ValidateSolveOptions(options);
    if (!status.ok()) return status;
    Plan plan;
    plan.bounds.schedule_class = ClassFor(chain);
    if (PlanStoreAll(chain, budget, &plan)) return plan;
    absl::StatusOr<BeyondProblem> problem = MakeBeyondProblem(chain, options);
    if (!problem.ok()) return problem.status();
    plan.bounds.least_budget = problem->least_budget();
    if (budget < plan.bounds.least_budget) {
      plan.status = PlanStatus::kProvenInfeasible;
      plan.explanation = absl::StrCat("of ", plan.bounds.schedule_class, ", none needs less than ",
                                      plan.bounds.least_budget.value(), " bytes");
      return plan;
    }
    status = SolveFeasible(*problem, budget, options, &plan);
    if (!status.ok()) return status;
    return plan;
  }

  absl::StatusOr<Frontier> SolveFrontier(const Chain& chain,
                                         const SolveOptions& options) const override {
    absl::Status status = ValidateSolveOptions(options);
    if (!status.ok()) return status;
    absl::StatusOr<BeyondProblem> problem = MakeBeyondProblem(chain, options);
    if (!problem.ok()) return problem.status();
    return FrontierOf(*problem, options);
  }

  absl::StatusOr<Bytes> LeastBudget(const Chain& chain,
                                    const SolveOptions& options) const override {
    const PersistentSpace exact(chain, 1);
    absl::StatusOr<BeyondExtents> extents = ComputeExtents(exact, CheckpointsMove(chain), options);
    if (!extents.ok()) return extents.status();
    return Bytes(LeastBudgetOf(exact, *extents));
  }

 private:
  std::string ClassFor(const Chain& chain) const {
    return absl::StrCat(info_.schedule_class,
                        CheckpointsMove(chain) ? " and checkpoints that move" : "");
  }

  // A table that is too large is done without, unless it was asked for.
  static bool MayDoWithout(const absl::Status& status, const SolveOptions& options) {
    return absl::IsResourceExhausted(status) && options.slots == 0;
  }

  // Of the optimal persistent schedule, what goes beyond it and the schedule of least memory, the
  // fastest. Each of them is never slower with more budget.
  absl::Status SolveFeasible(const BeyondProblem& problem, Bytes budget,
                             const SolveOptions& options, Plan* plan) const {
    RisingProgress progress(options.progress);
    Best best(problem.chain, budget);
    absl::StatusOr<Plan> persistent =
        OptimalPersistentSolver().Solve(problem.chain, budget, progress.Part(options, 0.0, 0.3));
    if (!persistent.ok() && !MayDoWithout(persistent.status(), options)) return persistent.status();
    bool done = false;
    if (persistent.ok() && persistent->status == PlanStatus::kFound) {
      plan->provenance.slots = persistent->provenance.slots;
      absl::Status status =
          best.Offer(std::move(persistent->schedule),
                     absl::StrCat("nothing beat a persistent one: ", persistent->explanation));
      if (!status.ok()) return status;
      done = best.makespan() <= StrongMakespanLowerBound(problem.chain, budget);
      plan->bounds.proven_optimal = done;
    }
    if (!done) {
      const SolveOptions rest = progress.Part(options, 0.3, 1.0);
      absl::Status status = options.slots > 0 || LosslessIsAffordable(problem, options)
                                ? OfferOfOneTable(problem, budget, rest, &best, plan)
                                : OfferOfRounded(problem, budget, rest, &best, plan);
      if (status.ok()) {
        status = best.Offer(problem.least_schedule(),
                            "the schedule of least memory, not optimised for time");
      }
      if (!status.ok()) return status;
    }
    best.MoveTo(plan);
    progress.Report(1.0);
    return absl::OkStatus();
  }

  static absl::Status OfferOfOneTable(const BeyondProblem& problem, Bytes budget,
                                      const SolveOptions& options, Best* best, Plan* plan) {
    const absl::StatusOr<SizedTable> table =
        options.slots > 0 ? TableOfSlots(problem.chain, budget, options.slots, options)
                          : LosslessTable(problem.chain, budget, options);
    if (!table.ok()) {
      return MayDoWithout(table.status(), options) ? absl::OkStatus() : table.status();
    }
    if (table->table->Excess(table->slots) >= kNever) return absl::OkStatus();
    plan->provenance.slots = table->slots;
    plan->bounds.proven_optimal = table->lossless;
    return best->Offer(table->table->Backtrack(table->slots),
                       absl::StrCat("a table with memory rounded to ", table->slots, " slots"));
  }

  // Rounded tables depend on the chain alone, so that more budget is never slower.
  absl::Status OfferOfRounded(const BeyondProblem& problem, Bytes budget,
                              const SolveOptions& options, Best* best, Plan* plan) const {
    absl::StatusOr<RoundedSchedule> rounded =
        FastestRounded(problem, budget, best->makespan(), options);
    if (!rounded.ok()) return rounded.status();
    plan->provenance.slots = std::max(plan->provenance.slots, rounded->slots);
    if (!rounded->schedule) return absl::OkStatus();
    return best->Offer(
        *std::move(rounded->schedule),
        absl::StrCat("tables with memory rounded to up to ", rounded->slots, " slots"));
  }

  absl::StatusOr<Frontier> FrontierOf(const BeyondProblem& problem,
                                      const SolveOptions& options) const {
    RisingProgress progress(options.progress);
    absl::StatusOr<Frontier> persistent =
        OptimalPersistentSolver().SolveFrontier(problem.chain, progress.Part(options, 0.0, 0.5));
    if (!persistent.ok()) return persistent.status();
    FrontierBuilder builder(problem.chain);
    builder.Add(*persistent);
    absl::Status status = builder.Add(problem.least_schedule());
    if (!status.ok()) return status;
    FrontierInfo info = {info_.name, ClassFor(problem.chain), problem.least_budget(),
                         /*exact=*/false, /*slots=*/0};
    const SolveOptions rest = progress.Part(options, 0.5, 1.0);
    status = options.slots == 0 && LosslessIsAffordable(problem, options)
                 ? AddLossless(problem, rest, &builder, &info)
                 : AddRounded(problem, rest, &builder, &info);
    if (!status.ok()) return status;
    progress.Report(1.0);
    return builder.BuildCompact(std::move(info));
  }

  const SolverInfo info_ = {
      "beyond_persistent",
      "also drops the inputs of saved stages, and moves checkpoints on short chains; never slower "
      "than optimal_persistent",
      "schedules in which what is stored stays until its backward, except inputs of "
      "stored stages"};
};

}  // namespace

const ChainSolver& BeyondPersistentSolver() {
  static const BeyondPersistent* const kSolver = new BeyondPersistent;
  return *kSolver;
}

}  // namespace stowage
