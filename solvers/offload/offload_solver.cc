#include "solvers/offload/offload_solver.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/offload/strategies.h"
#include "solvers/offload/trace_problem.h"
#include "solvers/plan/store_all_schedule.h"
#include "solvers/rising_progress.h"

namespace stowage {
namespace {

constexpr char kClass[] = "schedules that recompute nothing and copy whole tensors to the host";
constexpr int kFrontierBudgets = 64;

// Plain training of one chain, and what may be moved around in it.
class Offloading {
 public:
  static absl::StatusOr<Offloading> Create(const Chain& chain, const SolveOptions& options) {
    absl::Status status = ValidateSolveOptions(options);
    if (status.ok() && options.stop != nullptr) status = options.stop->Check();
    if (!status.ok()) return status;
    Schedule plain = StoreAllSchedule(chain);
    const absl::StatusOr<Simulation> run = Simulate(chain, plain);
    if (!run.ok()) return run.status();
    absl::StatusOr<ComputeTrace> trace = TraceOf(chain, plain);
    if (!trace.ok()) return trace.status();
    return Offloading(chain, std::move(plain), *run, *std::move(trace), options.transfers);
  }

  const Chain& chain() const { return chain_; }
  const std::optional<TransferModel>& transfers() const { return transfers_; }
  const Schedule& plain() const { return plain_; }
  Bytes plain_peak() const { return run_.peak; }
  Nanos plain_makespan() const { return run_.makespan; }

  // Nothing of the class fits into less.
  Bytes Floor() const {
    const std::optional<TraceProblem> traced = Traced(run_.peak);
    if (!traced) return run_.peak;
    return std::max(traced->problem.least_memory(), run_.peak - transfers_->host_memory);
  }

  // The plan for a budget; its least_budget is set where it is infeasible alone.
  absl::StatusOr<Plan> Solve(const OffloadStrategy& strategy, Bytes budget,
                             const SolveOptions& options) const {
    Plan plan;
    plan.bounds.schedule_class = kClass;
    if (run_.peak <= budget) {
      plan.status = PlanStatus::kFound;
      plan.schedule = plain_;
      plan.bounds.proven_optimal = true;
      plan.explanation = "everything fits: nothing is offloaded";
      return plan;
    }
    if (!transfers_) {
      Refuse(
          absl::StrCat("without a link to host memory, ", run_.peak.value(), " bytes are needed"),
          run_.peak, &plan);
      return plan;
    }
    const std::optional<TraceProblem> traced = Traced(budget);
    if (!traced) {
      plan.status = PlanStatus::kNotFound;
      plan.explanation = "copies over this link take longer than times can say";
      return plan;
    }
    absl::StatusOr<OffloadPlan> answer = strategy.Solve(traced->problem, options);
    if (!answer.ok()) return answer.status();
    plan.explanation = std::move(answer->explanation);
    plan.provenance.slots = answer->slots;
    plan.status = answer->status;
    if (plan.status == PlanStatus::kProvenInfeasible) {
      Refuse(std::move(plan.explanation), std::max(Floor(), budget + Bytes(1)), &plan);
    }
    if (plan.status != PlanStatus::kFound) return plan;
    plan.schedule = WithTransfers(plain_, trace_, *traced, answer->timeline);
    const absl::StatusOr<Simulation> simulation = Simulate(chain_, plan.schedule, *transfers_);
    if (!simulation.ok()) return absl::InternalError(simulation.status().message());
    plan.bounds.proven_optimal = simulation->makespan <= answer->lower_bound;
    return plan;
  }

 private:
  Offloading(const Chain& chain, Schedule plain, const Simulation& run, ComputeTrace trace,
             const std::optional<TransferModel>& transfers)
      : chain_(chain),
        plain_(std::move(plain)),
        run_(run),
        trace_(std::move(trace)),
        transfers_(transfers) {}

  // Nothing without a link, or where its copies are beyond the limits of times.
  std::optional<TraceProblem> Traced(Bytes budget) const {
    if (!transfers_) return std::nullopt;
    absl::StatusOr<TraceProblem> traced = MakeTraceProblem(trace_, *transfers_, budget);
    if (!traced.ok()) return std::nullopt;
    return *std::move(traced);
  }

  static void Refuse(std::string explanation, Bytes least, Plan* plan) {
    plan->status = PlanStatus::kProvenInfeasible;
    plan->bounds.least_budget = least;
    plan->explanation = std::move(explanation);
  }

  const Chain& chain_;
  Schedule plain_;
  Simulation run_;
  ComputeTrace trace_;
  std::optional<TransferModel> transfers_;
};

class OffloadSolver final : public ChainSolver {
 public:
  explicit OffloadSolver(const OffloadStrategy* strategy)
      : strategy_(*strategy),
        info_{strategy->info().name,
              "offloads, without recomputing: " + strategy->info().description, kClass} {}

  const SolverInfo& info() const override { return info_; }

  absl::StatusOr<Plan> Solve(const Chain& chain, Bytes budget,
                             const SolveOptions& options) const override {
    const absl::StatusOr<Offloading> offloading = Offloading::Create(chain, options);
    if (!offloading.ok()) return offloading.status();
    RisingProgress progress(options.progress);
    absl::StatusOr<Plan> plan =
        offloading->Solve(strategy_, budget, progress.Part(options, 0.0, 1.0));
    if (plan.ok()) progress.Report(1.0);
    return plan;
  }

  absl::StatusOr<Frontier> SolveFrontier(const Chain& chain,
                                         const SolveOptions& options) const override {
    const absl::StatusOr<Offloading> offloading = Offloading::Create(chain, options);
    if (!offloading.ok()) return offloading.status();
    const absl::StatusOr<Bytes> least = LeastOf(*offloading, options);
    if (!least.ok()) return least.status();
    FrontierBuilder builder = offloading->transfers()
                                  ? FrontierBuilder(chain, *offloading->transfers())
                                  : FrontierBuilder(chain);
    RisingProgress progress(options.progress);
    const int64_t range = (offloading->plain_peak() - *least).value();
    // What takes no longer than plain training is not bettered by more memory.
    for (int i = 0; i < kFrontierBudgets &&
                    builder.MakespanAt(offloading->plain_peak()) > offloading->plain_makespan();
         ++i) {
      const Bytes budget = *least + Bytes(range / kFrontierBudgets * i +
                                          range % kFrontierBudgets * i / kFrontierBudgets);
      const double share = static_cast<double>(i) / kFrontierBudgets;
      absl::StatusOr<Plan> plan = offloading->Solve(
          strategy_, budget, progress.Part(options, share, share + 1.0 / kFrontierBudgets));
      if (!plan.ok()) return plan.status();
      if (plan->status != PlanStatus::kFound) continue;
      absl::Status status = builder.Add(plan->schedule);
      if (!status.ok()) return status;
    }
    absl::Status status = builder.Add(offloading->plain());
    if (!status.ok()) return status;
    progress.Report(1.0);
    return builder.BuildCompact({info_.name, info_.schedule_class, offloading->Floor(),
                                 /*exact=*/!offloading->transfers(), /*slots=*/0});
  }

  absl::StatusOr<Bytes> LeastBudget(const Chain& chain,
                                    const SolveOptions& options) const override {
    const absl::StatusOr<Offloading> offloading = Offloading::Create(chain, options);
    if (!offloading.ok()) return offloading.status();
    return LeastOf(*offloading, options);
  }

 private:
  // Where the strategy does not find all that fits: a budget at which it finds something, and at one
  // byte less does not.
  absl::StatusOr<Bytes> LeastOf(const Offloading& offloading, SolveOptions options) const {
    options.progress = nullptr;
    Bytes least = offloading.Floor(), found = offloading.plain_peak();
    Bytes next = least;
    while (least < found) {
      const absl::StatusOr<Plan> plan = offloading.Solve(strategy_, next, options);
      if (!plan.ok()) return plan.status();
      if (plan->status == PlanStatus::kFound) {
        found = next;
      } else {
        least = next + Bytes(1);
      }
      next = least + Bytes((found - least).value() / 2);
    }
    return found;
  }

  const OffloadStrategy& strategy_;
  const SolverInfo info_;
};

}  // namespace

const std::vector<const ChainSolver*>& OffloadSolvers() {
  static const auto* const kSolvers = [] {
    auto* solvers = new std::vector<const ChainSolver*>;
    for (const OffloadStrategy* strategy : AllOffloadStrategies()) {
      solvers->push_back(new OffloadSolver(strategy));
    }
    return solvers;
  }();
  return *kSolvers;
}

}  // namespace stowage
