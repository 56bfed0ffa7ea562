#include "solvers/transfer/joint_solver.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/chain/solvers.h"
#include "solvers/rising_progress.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/lower_bound.h"
#include "solvers/transfer/incumbent.h"
#include "solvers/transfer/joint_search.h"
#include "solvers/transfer/peak_lower_bound.h"
#include "solvers/transfer/segment_costs.h"

namespace stowage {
namespace {

// Whether transfers are of any use.
bool MayTransfer(const Instance& instance) {
  return instance.link() && instance.link()->host_memory > Bytes(0);
}

// Outlines that are changed locally, and the schedules looked at for it.
constexpr int kChanged = 4;
constexpr int64_t kSchedules = 12000;
constexpr int64_t kFewSchedules = 1000;
// Of the recurrence: what gives a good plan soon, and all.
constexpr size_t kFewStates = 150;
constexpr size_t kStates = 1500;
constexpr int64_t kQuickSlots = 100;
constexpr double kCoarseCells = 64;
constexpr double kFineCells = 256;

// DynProg takes minutes on longer chains.
constexpr int kMostThoroughStages = 1000;

// All that the joint solver tries for one budget, until the bound is met. What soon gives a good plan
// comes first.
class Search {
 public:
  Search(const SolveOptions& options, Nanos bound, Incumbent* best)
      : options_(options), bound_(bound), best_(*best), progress_(options.progress) {}

  absl::Status Run() {
    absl::Status status = StopPoll(options_.stop).Spend(1);
    if (status.ok()) status = OfferCheapSchedules(options_.stop, &best_);
    if (status.ok()) status = OfferQuickFrontier();
    if (!status.ok() || Done(0.05)) return status;
    status = SearchOutlines();
    return !status.ok() || Done(0.8) ? status : OfferEachAlone();
  }

 private:
  absl::Status SearchOutlines() {
    const Chain& chain = best_.chain();
    const absl::StatusOr<std::optional<SegmentCosts>> costs =
        SegmentCosts::Compute(chain, best_.link(), best_.memory(), options_);
    if (!costs.ok()) return costs.status();
    JointSearch search(costs->has_value() ? &**costs : nullptr, options_, &best_);
    absl::Status status = search.Propose(kFewStates, kFineCells);
    if (status.ok()) status = search.Improve(1, kFewSchedules, /*thoroughly=*/false);
    if (!status.ok() || Done(0.2)) return status;
    status = OfferFrontier(&search);
    if (!status.ok() || Done(0.4)) return status;
    status = search.Propose(kStates, kCoarseCells);
    if (!status.ok() || Done(0.5)) return status;
    status = search.Propose(kStates, kFineCells);
    if (!status.ok() || Done(0.6)) return status;
    return search.Improve(kChanged, kSchedules, Thoroughly());
  }

  // Of the chain solver's choice.
  absl::Status OfferFrontier(JointSearch* search) {
    const absl::StatusOr<Frontier> alone = ChosenChainSolver().SolveFrontier(
        best_.instance(), search->Beside(progress_.Part(options_, 0.2, 0.3)));
    if (alone.ok()) return search->TakePoints(*alone, Thoroughly());
    return MayGoWithout(alone.status()) ? absl::OkStatus() : alone.status();
  }

  // Frontiers leave out a little, and what is held beside them takes of their memory.
  absl::Status OfferEachAlone() {
    const absl::StatusOr<Plan> plan = ChosenChainSolver().Solve(best_.instance(), best_.memory(),
                                                                progress_.Part(options_, 0.8, 0.9));
    if (!plan.ok() && !MayGoWithout(plan.status())) return plan.status();
    absl::Status status;
    if (plan.ok() && plan->status == PlanStatus::kFound) {
      status = best_.Offer(plan->schedule, "recomputing alone");
    }
    if (!status.ok() || Done(0.9) || !Thoroughly()) return status;
    return best_.OfferThoroughly(best_.instance().store_all_schedule(), options_,
                                 "offloading alone");
  }

  bool Thoroughly() const { return best_.chain().length() <= kMostThoroughStages; }

  // What a coarse table has at once: hardly worse than the chain solver's choice, which may take
  // seconds.
  absl::Status OfferQuickFrontier() {
    SolveOptions quick = options_;
    quick.slots = kQuickSlots;
    quick.progress = nullptr;
    const absl::StatusOr<Frontier> frontier =
        OptimalPersistentSolver().SolveFrontier(best_.instance(), quick);
    if (absl::IsResourceExhausted(frontier.status())) return absl::OkStatus();
    if (!frontier.ok()) return frontier.status();
    StopPoll poll(options_.stop);
    return OfferPoints(*frontier, &poll, &best_).status();
  }

  // Chains too long for the chain solver; who asks for slots gets its refusal.
  bool MayGoWithout(const absl::Status& status) const {
    return absl::IsResourceExhausted(status) && options_.slots == 0;
  }

  bool Done(double share) {
    progress_.Report(share);
    return best_.makespan() <= bound_;
  }

  const SolveOptions& options_;
  const Nanos bound_;
  Incumbent& best_;
  RisingProgress progress_;
};

class Joint final : public Solver {
 public:
  const SolverInfo& info() const override { return info_; }

  absl::StatusOr<Plan> DoSolve(const Instance& instance, Bytes budget,
                               const SolveOptions& options) const override {
    const Chain& chain = instance.chain();
    if (!MayTransfer(instance)) return ChosenChainSolver().Solve(instance, budget, options);
    Plan plan;
    plan.bounds.schedule_class = info_.schedule_class;
    if (PlanStoreAll(instance, budget, &plan)) return plan;
    const Bytes least = PeakLowerBound(chain);
    if (budget < least) return Infeasible(instance, budget, options, std::move(plan));
    Incumbent best(instance, budget, options.incumbent);
    const Nanos bound = MakespanLowerBound(instance, budget);
    absl::Status status = Search(options, bound, &best).Run();
    const bool cut_short = absl::IsDeadlineExceeded(status);
    if (!status.ok() && !(best.found() && cut_short)) return status;
    if (!best.found()) return Infeasible(instance, budget, options, std::move(plan));
    status = best.OverlapBest(options.stop);
    if (!status.ok()) return status;
    if (options.stop != nullptr && options.stop->stop_requested()) return options.stop->Check();
    plan.status = PlanStatus::kFound;
    plan.schedule = best.schedule();
    plan.bounds.proven_optimal = best.makespan() <= bound;
    if (CheapLeastMemory(instance) <= least) plan.bounds.least_budget = least;
    plan.search_complete = !cut_short;
    plan.explanation = best.explanation();
    if (cut_short) absl::StrAppend(&plan.explanation, "; the deadline cut the search short");
    if (options.progress) options.progress(1.0);
    return plan;
  }

  absl::StatusOr<Frontier> DoSolveFrontier(const Instance& instance,
                                           const SolveOptions& options) const override {
    const Chain& chain = instance.chain();
    if (!MayTransfer(instance)) return ChosenChainSolver().SolveFrontier(instance, options);
    RisingProgress progress(options.progress);
    const absl::StatusOr<Frontier> alone =
        ChosenChainSolver().SolveFrontier(instance, progress.Part(options, 0.0, 0.1));
    if (!alone.ok()) return alone.status();
    FrontierBuilder builder(instance, options.frontier_limit());
    builder.Add(*alone);
    const absl::StatusOr<Bytes> least = LeastBudget(instance, options);
    if (!least.ok()) return least.status();
    const Bytes most = instance.store_all()->peak;
    // Those of the largest budget are of use for all.
    const absl::StatusOr<std::optional<SegmentCosts>> costs =
        SegmentCosts::Compute(chain, *instance.link(), most, options);
    if (!costs.ok()) return costs.status();
    const SegmentCosts* search_costs = costs->has_value() ? &**costs : nullptr;
    constexpr int kBudgets = 40;
    const int64_t range = std::max(most - *least, Bytes(0)).value();
    for (int b = 0; b < kBudgets; ++b) {
      const Bytes budget = *least + Bytes(range / kBudgets * b + range % kBudgets * b / kBudgets);
      absl::Status status = AddBudget(instance, budget, *alone, search_costs, options, &builder);
      if (!status.ok()) return status;
      progress.Report(0.1 + 0.9 * (b + 1) / kBudgets);
    }
    return builder.BuildCompact(
        {info_.name, info_.schedule_class, PeakLowerBound(chain), /*exact=*/false, /*slots=*/0});
  }

  absl::StatusOr<Bytes> DoLeastBudget(const Instance& instance,
                                      const SolveOptions& options) const override {
    const Chain& chain = instance.chain();
    if (!MayTransfer(instance)) return ChosenChainSolver().LeastBudget(instance, options);
    const Bytes cheap = CheapLeastMemory(instance);
    if (cheap <= PeakLowerBound(chain)) return cheap;
    const absl::StatusOr<Bytes> alone = ChosenChainSolver().LeastBudget(instance, options);
    if (absl::IsResourceExhausted(alone.status())) return cheap;
    if (!alone.ok()) return alone.status();
    return std::min(cheap, *alone);
  }

 private:
  static absl::Status AddBudget(const Instance& instance, Bytes budget, const Frontier& alone,
                                const SegmentCosts* costs, const SolveOptions& options,
                                FrontierBuilder* builder) {
    SolveOptions quiet = options;
    quiet.progress = nullptr;
    Incumbent best(instance, budget);
    const Nanos bound = MakespanLowerBound(instance, budget);
    absl::Status status = OfferCheapSchedules(options.stop, &best);
    if (status.ok() && best.makespan() > bound) {
      JointSearch search(costs, quiet, &best);
      status = search.TakePoints(alone, /*thoroughly=*/false);
      if (status.ok()) status = search.Propose(kFewStates, kFineCells);
      if (status.ok()) status = search.Improve(1, kFewSchedules, /*thoroughly=*/false);
    }
    if (!status.ok() || !best.found()) return status;
    status = best.OverlapBest(options.stop);
    if (!status.ok()) return status;
    return builder->Add(best.schedule());
  }

  // No schedule fits, or none was found.
  absl::StatusOr<Plan> Infeasible(const Instance& instance, Bytes budget,
                                  const SolveOptions& options, Plan plan) const {
    const Bytes proven = PeakLowerBound(instance.chain());
    const absl::StatusOr<Bytes> least = LeastBudget(instance, options);
    if (!least.ok()) return least.status();
    plan.bounds.least_budget = *least;
    if (budget < proven) {
      plan.bounds.least_budget = proven;
      plan.status = PlanStatus::kProvenInfeasible;
      plan.explanation = absl::StrCat("no schedule needs less than ", proven.value(), " bytes");
    } else {
      plan.status = PlanStatus::kNotFound;
      plan.explanation = absl::StrCat("the host's memory is too small to offload all; with ",
                                      least->value(), " bytes a schedule is found");
    }
    return plan;
  }

  const SolverInfo info_ = {"joint",
                            "keeps, recomputes or offloads, stage by stage (the default where a "
                            "link to the host is known)",
                            "schedules that recompute and copy to the host",
                            /*chains=*/true,
                            /*graphs=*/false,
                            /*copies=*/true};
};

}  // namespace

const Solver& JointSolver() {
  static const auto* const kSolver = new Joint;
  return *kSolver;
}

}  // namespace stowage
