#include "solvers/joint/joint_solver.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/chain/chain_choice.h"
#include "solvers/rising_progress.h"
#include "solvers/chain/store_all_plan.h"
#include "solvers/joint/incumbent.h"
#include "solvers/joint/joint_search.h"
#include "solvers/joint/least_on_host.h"
#include "solvers/plan/store_all_schedule.h"
#include "solvers/plan/transfer_lower_bound.h"

namespace stowage {
namespace {

// Whether transfers are of any use.
bool MayTransfer(const SolveOptions& options) {
  return options.transfers && options.transfers->host_memory > Bytes(0);
}

// All that the joint solver tries for one budget, until the bound is met.
absl::Status Search(const SolveOptions& options, Nanos bound, Incumbent* best) {
  RisingProgress progress(options.progress);
  const Chain& chain = best->chain();
  const JointEffort effort = FullEffort();
  const auto done = [&] { return best->makespan() <= bound; };
  absl::Status status = OfferCheapSchedules(best);
  if (!status.ok() || done()) return status;
  status = OfferRecurrence(effort, progress.Part(options, 0.0, 0.6), best);
  if (!status.ok() || done()) return status;
  progress.Report(0.6);
  const absl::StatusOr<Plan> alone =
      ChosenChainSolver().Solve(chain, best->memory(), progress.Part(options, 0.6, 0.7));
  if (!alone.ok()) return alone.status();
  if (alone->status == PlanStatus::kFound) {
    status = best->Offer(alone->schedule, "recomputing alone");
    if (!status.ok() || done()) return status;
  }
  const absl::StatusOr<Frontier> frontier =
      ChosenChainSolver().SolveFrontier(chain, progress.Part(options, 0.7, 0.8));
  if (!frontier.ok()) return frontier.status();
  status = OfferFrontier(*frontier, effort, options, best);
  if (!status.ok() || done()) return status;
  progress.Report(0.9);
  return best->OfferThoroughly(StoreAllSchedule(chain), options, "offloading alone");
}

class Joint final : public ChainSolver {
 public:
  const SolverInfo& info() const override { return info_; }

  absl::StatusOr<Plan> Solve(const Chain& chain, Bytes budget,
                             const SolveOptions& options) const override {
    absl::Status status = ValidateSolveOptions(options);
    if (!status.ok()) return status;
    if (!MayTransfer(options)) return ChosenChainSolver().Solve(chain, budget, options);
    Plan plan;
    plan.bounds.schedule_class = info_.schedule_class;
    if (PlanStoreAll(chain, budget, &plan)) return plan;
    const Bytes least = LeastMemoryOnHost(chain);
    if (budget < least) return Infeasible(chain, options, std::move(plan));
    Incumbent best(chain, *options.transfers, budget);
    const Nanos bound = MakespanLowerBound(chain, *options.transfers, budget);
    status = Search(options, bound, &best);
    const bool cut_short = absl::IsDeadlineExceeded(status);
    const bool too_large = absl::IsResourceExhausted(status);
    if (!status.ok() && !(best.found() && (cut_short || too_large))) return status;
    if (!best.found()) return Infeasible(chain, options, std::move(plan));
    plan.status = PlanStatus::kFound;
    plan.schedule = best.schedule();
    plan.bounds.proven_optimal = best.makespan() <= bound;
    plan.bounds.least_budget = least;
    plan.explanation = best.explanation();
    if (cut_short) absl::StrAppend(&plan.explanation, "; the deadline cut the search short");
    if (options.progress) options.progress(1.0);
    return plan;
  }

  absl::StatusOr<Frontier> SolveFrontier(const Chain& chain,
                                         const SolveOptions& options) const override {
    absl::Status status = ValidateSolveOptions(options);
    if (!status.ok()) return status;
    if (!MayTransfer(options)) return ChosenChainSolver().SolveFrontier(chain, options);
    RisingProgress progress(options.progress);
    const absl::StatusOr<Frontier> alone =
        ChosenChainSolver().SolveFrontier(chain, progress.Part(options, 0.0, 0.1));
    if (!alone.ok()) return alone.status();
    FrontierBuilder builder(chain, *options.transfers);
    builder.Add(*alone);
    const absl::StatusOr<Bytes> least = LeastBudget(chain, options);
    if (!least.ok()) return least.status();
    const absl::StatusOr<Simulation> all = Simulate(chain, StoreAllSchedule(chain));
    if (!all.ok()) return all.status();
    constexpr int kBudgets = 40;
    const int64_t range = std::max(all->peak - *least, Bytes(0)).value();
    for (int b = 0; b < kBudgets; ++b) {
      const Bytes budget = *least + Bytes(range / kBudgets * b);
      status = AddBudget(chain, budget, *alone, options, &builder);
      if (!status.ok()) return status;
      progress.Report(0.1 + 0.9 * (b + 1) / kBudgets);
    }
    return builder.BuildCompact(
        {info_.name, info_.schedule_class, LeastMemoryOnHost(chain), /*exact=*/false, /*slots=*/0});
  }

  absl::StatusOr<Bytes> LeastBudget(const Chain& chain,
                                    const SolveOptions& options) const override {
    absl::Status status = ValidateSolveOptions(options);
    if (!status.ok()) return status;
    if (!MayTransfer(options)) return ChosenChainSolver().LeastBudget(chain, options);
    const absl::StatusOr<Bytes> cheap = CheapLeastMemory(chain, *options.transfers);
    if (!cheap.ok() || *cheap <= LeastMemoryOnHost(chain)) return cheap;
    const absl::StatusOr<Bytes> alone = ChosenChainSolver().LeastBudget(chain, options);
    if (absl::IsResourceExhausted(alone.status())) return cheap;
    if (!alone.ok()) return alone.status();
    return std::min(*cheap, *alone);
  }

 private:
  static absl::Status AddBudget(const Chain& chain, Bytes budget, const Frontier& alone,
                                const SolveOptions& options, FrontierBuilder* builder) {
    SolveOptions quiet = options;
    quiet.progress = nullptr;
    Incumbent best(chain, *options.transfers, budget);
    const Nanos bound = MakespanLowerBound(chain, *options.transfers, budget);
    absl::Status status = OfferCheapSchedules(&best);
    if (status.ok() && best.makespan() > bound) {
      status = OfferRecurrence(LightEffort(), quiet, &best);
    }
    if (status.ok() && best.makespan() > bound) {
      status = OfferFrontier(alone, LightEffort(), quiet, &best);
    }
    if (!status.ok() || !best.found()) return status;
    return builder->Add(best.schedule());
  }

  // No schedule fits, or none was found.
  absl::StatusOr<Plan> Infeasible(const Chain& chain, const SolveOptions& options,
                                  Plan plan) const {
    const Bytes proven = LeastMemoryOnHost(chain);
    const absl::StatusOr<Bytes> least = LeastBudget(chain, options);
    if (!least.ok()) return least.status();
    plan.bounds.least_budget = *least;
    if (*least == proven) {
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
                            "schedules that recompute and offload"};
};

}  // namespace

const ChainSolver& JointSolver() {
  static const auto* const kSolver = new Joint;
  return *kSolver;
}

}  // namespace stowage
