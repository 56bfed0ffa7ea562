#include "solvers/transfer/joint_solver.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "solvers/chain/solvers.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/lower_bound.h"
#include "solvers/transfer/internal/budget_grid.h"
#include "solvers/transfer/internal/incumbent.h"
#include "solvers/transfer/internal/joint_search.h"
#include "solvers/transfer/internal/peak_lower_bound.h"
#include "solvers/transfer/internal/segment_costs.h"

namespace stowage {
namespace {

// Whether transfers are of any use.
bool MayTransfer(const Instance& instance) {
  return instance.link() && instance.link()->host_memory > Bytes(0);
}

// Of the recurrence within each budget: coarse cells find more different states, fine ones better ones.
constexpr size_t kStates = 150;
constexpr double kFineCells = 256;
constexpr double kCoarseCells = 64;
// Outlines that are changed locally, and the schedules looked at for it.
constexpr int kChanged = 1;
constexpr int64_t kSchedules = 1000;
// DynProg takes minutes on longer chains.
constexpr int kMostThoroughStages = 1000;

// Chains too long for the chain solver; who asks for slots gets its refusal.
bool MayGoWithout(const absl::Status& status, const SolveContext& context) {
  return absl::IsResourceExhausted(status) && context.slots() == 0;
}

// Searches within single budgets. What is found within one does not depend on the others.
class Search {
 public:
  // All that is pointed to must outlive it.
  Search(const Instance& instance, const SolveContext& context)
      : instance_(instance), context_(context), quiet_(context.Quiet()) {}

  // What all budgets have in common: of a chain too long for the chain solver, or for costs of segments, less.
  absl::Status Prepare() {
    absl::StatusOr<std::optional<SegmentCosts>> costs = SegmentCosts::Compute(
        instance_.chain(), *instance_.link(), instance_.store_all()->peak, context_);
    if (!costs.ok()) return costs.status();
    costs_ = *std::move(costs);
    const Bytes held(costs_ ? costs_->bytes() : 0);
    const SolveContext beside = context_.Part(0.0, 0.2).WithMemory(context_.memory() - held);
    absl::StatusOr<Frontier> alone = ChosenChainSolver().SolveFrontier(instance_, beside);
    if (!alone.ok() && !MayGoWithout(alone.status(), context_)) return alone.status();
    if (alone.ok()) alone_ = *std::move(alone);
    return absl::OkStatus();
  }

  // What recomputing finds alone.
  const Frontier& alone() const { return alone_; }

  // Until the lower bound is met.
  absl::Status Within(Incumbent* best) const {
    const Nanos bound = MakespanLowerBound(instance_, best->memory());
    absl::Status status = OfferCheapSchedules(context_.stop(), best);
    if (!status.ok() || best->makespan() <= bound) return status;
    JointSearch search(costs_ ? &*costs_ : nullptr, quiet_, best);
    status = search.TakePoints(alone_);
    if (status.ok()) status = search.Propose(kStates, kFineCells);
    if (status.ok()) status = search.Propose(kStates, kCoarseCells);
    if (status.ok()) status = search.Improve(kChanged, kSchedules);
    if (status.ok() && instance_.chain().length() <= kMostThoroughStages) {
      status = best->OfferThoroughly(instance_.store_all_schedule(), quiet_, "offloading alone");
    }
    return status.ok() ? best->OverlapBest(context_.stop()) : status;
  }

 private:
  const Instance& instance_;
  const SolveContext context_;
  const SolveContext quiet_;
  std::optional<SegmentCosts> costs_;
  Frontier alone_;
};

class Joint final : public Solver {
 public:
  const SolverInfo& info() const override { return info_; }

  absl::StatusOr<Plan> DoSolve(const Instance& instance, Bytes budget,
                               const SolveContext& context) const override {
    if (!MayTransfer(instance)) return ChosenChainSolver().Solve(instance, budget, context);
    Plan plan;
    plan.bounds.schedule_class = info_.schedule_class;
    if (PlanStoreAll(instance, budget, &plan)) return plan;
    const Bytes proven = PeakLowerBound(instance.chain());
    const absl::StatusOr<Bytes> least = LeastBudget(instance, context.Quiet());
    if (!least.ok()) return least.status();
    if (budget < proven) return Infeasible(proven, *least, budget, std::move(plan));
    std::vector<Bytes> grid = JointGrid(proven, instance.store_all()->peak);
    if (*least > proven) grid.insert(std::upper_bound(grid.begin(), grid.end(), *least), *least);
    FastestSchedule best(budget, context.incumbent());
    const absl::Status status =
        SearchUpTo(instance, GridFor(std::move(grid), budget), budget, context, &best);
    const bool cut_short = absl::IsDeadlineExceeded(status);
    if (!status.ok() && !(best.found() && cut_short)) return status;
    if (absl::IsCancelled(context.CheckStop())) return context.CheckStop();
    if (!best.found()) return Infeasible(proven, *least, budget, std::move(plan));
    plan.status = PlanStatus::kFound;
    plan.schedule = best.schedule();
    plan.bounds.proven_optimal = best.makespan() <= MakespanLowerBound(instance, budget);
    if (*least <= proven) plan.bounds.least_budget = proven;
    plan.search_complete = !cut_short;
    plan.explanation = best.explanation();
    if (cut_short) absl::StrAppend(&plan.explanation, "; the deadline cut the search short");
    return plan;
  }

  absl::StatusOr<Frontier> DoSolveFrontier(const Instance& instance,
                                           const SolveContext& context) const override {
    if (!MayTransfer(instance)) return ChosenChainSolver().SolveFrontier(instance, context);
    Search search(instance, context);
    absl::Status status = search.Prepare();
    if (!status.ok()) return status;
    const absl::StatusOr<Bytes> least = LeastBudget(instance, context.Quiet());
    if (!least.ok()) return least.status();
    FrontierBuilder builder(instance, context.frontier_limit());
    builder.Add(search.alone());
    const std::vector<Bytes> grid = JointGrid(*least, instance.store_all()->peak);
    for (size_t b = 0; b < grid.size(); ++b) {
      Incumbent best(instance, grid[b]);
      status = search.Within(&best);
      if (status.ok() && best.found()) status = builder.Add(best.schedule());
      if (!status.ok()) return status;
      context.Report(0.2 + 0.8 * (static_cast<double>(b + 1) / static_cast<double>(grid.size())));
    }
    return builder.BuildCompact({info_.name, info_.schedule_class, PeakLowerBound(instance.chain()),
                                 /*exact=*/false, /*slots=*/0});
  }

  absl::StatusOr<Bytes> DoLeastBudget(const Instance& instance,
                                      const SolveContext& context) const override {
    const Chain& chain = instance.chain();
    if (!MayTransfer(instance)) return ChosenChainSolver().LeastBudget(instance, context);
    const Bytes cheap = CheapLeastMemory(instance);
    if (cheap <= PeakLowerBound(chain)) return cheap;
    const absl::StatusOr<Bytes> alone = ChosenChainSolver().LeastBudget(instance, context);
    if (absl::IsResourceExhausted(alone.status())) return cheap;
    if (!alone.ok()) return alone.status();
    return std::min(cheap, *alone);
  }

 private:
  // The fastest schedule of the grid's budgets up to `budget`, and of the chain solver's choice at the budget itself,
  // which is monotone: "more budget is never slower" in algorithms.md. The largest budget first: it soon has a good
  // plan. A smaller one is left out where its bound says that it is of no use.
  static absl::Status SearchUpTo(const Instance& instance, const std::vector<Bytes>& grid,
                                 Bytes budget, const SolveContext& context, FastestSchedule* best) {
    absl::Status status = StopPoll(context.stop()).Spend(1);
    if (status.ok()) status = SearchGrid(instance, grid, context, best);
    if (!status.ok() || best->makespan() <= MakespanLowerBound(instance, budget)) return status;
    const absl::StatusOr<Plan> alone =
        ChosenChainSolver().Solve(instance, budget, context.Part(0.9, 0.99));
    if (!alone.ok())
      return MayGoWithout(alone.status(), context) ? absl::OkStatus() : alone.status();
    if (alone->status == PlanStatus::kFound) {
      best->Offer(alone->schedule, alone->prediction.peak, alone->prediction.makespan,
                  "recomputing alone");
    }
    return absl::OkStatus();
  }

  static absl::Status SearchGrid(const Instance& instance, const std::vector<Bytes>& grid,
                                 const SolveContext& context, FastestSchedule* best) {
    const Bytes budget = best->memory();
    Incumbent first(instance, *std::prev(std::upper_bound(grid.begin(), grid.end(), budget)), best);
    absl::Status status = OfferCheapSchedules(context.stop(), &first);
    if (!status.ok() || best->makespan() <= MakespanLowerBound(instance, budget)) return status;
    Search search(instance, context);
    status = search.Prepare();
    for (size_t left = grid.size(); status.ok() && left > 0; --left) {
      context.Report(0.9 - 0.7 * static_cast<double>(left) / static_cast<double>(grid.size()));
      const Bytes within = std::min(budget, grid[left - 1]);
      if (best->makespan() <= MakespanLowerBound(instance, within)) break;
      Incumbent at(instance, grid[left - 1], best);
      status = search.Within(&at);
    }
    return status;
  }

  // No schedule fits, or none is found.
  static Plan Infeasible(Bytes proven, Bytes least, Bytes budget, Plan plan) {
    plan.bounds.least_budget = least;
    if (budget < proven) {
      plan.bounds.least_budget = proven;
      plan.status = PlanStatus::kProvenInfeasible;
      plan.explanation = absl::StrCat("no schedule needs less than ", proven.value(), " bytes");
    } else {
      plan.status = PlanStatus::kNotFound;
      plan.explanation = absl::StrCat("the host's memory is too small to offload all; with ",
                                      least.value(), " bytes a schedule is found");
    }
    return plan;
  }

  const SolverInfo info_ = {"joint",
                            "keeps, recomputes or offloads, stage by stage (the default where a "
                            "link to the host is known)",
                            "schedules that recompute and copy to the host",
                            /*chains=*/true,
                            /*graphs=*/false,
                            /*copies=*/true,
                            Anytime::kWithLink};
};

}  // namespace

const Solver& JointSolver() {
  static const auto* const kSolver = new Joint;
  return *kSolver;
}

}  // namespace stowage
