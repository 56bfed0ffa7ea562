#include "solvers/transfer/offload_solver.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/rising_progress.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "solvers/transfer/compute_trace.h"
#include "solvers/transfer/strategies.h"
#include "solvers/transfer/trace_problem.h"

namespace stowage {

absl::StatusOr<std::optional<TransferSchedule>> OffloadFrom(const Instance& instance,
                                                            const Schedule& compute,
                                                            const ComputeTrace& trace, Bytes memory,
                                                            const OffloadStrategy& strategy,
                                                            const SolveOptions& options) {
  const absl::StatusOr<TraceProblem> problem = MakeTraceProblem(trace, *instance.link(), memory);
  if (!problem.ok()) return problem.status();
  const absl::StatusOr<OffloadPlan> plan = strategy.Solve(problem->problem, options);
  if (!plan.ok()) return plan.status();
  if (plan->status != PlanStatus::kFound) return std::nullopt;
  TransferSchedule found;
  found.schedule = WithTransfers(compute, trace, *problem, plan->timeline);
  absl::StatusOr<Simulation> simulation = Evaluator(instance).Run(found.schedule);
  if (!simulation.ok() || simulation->peak > memory) {
    return absl::InternalError(absl::StrCat(
        "the evaluator refused a schedule with transfers: ",
        simulation.ok() ? "its peak is beyond the memory" : simulation.status().message()));
  }
  found.prediction = *simulation;
  return std::optional<TransferSchedule>(std::move(found));
}

absl::StatusOr<std::optional<TransferSchedule>> OffloadFrom(const Instance& instance,
                                                            const Schedule& compute, Bytes memory,
                                                            const OffloadStrategy& strategy,
                                                            const SolveOptions& options) {
  if (instance.is_graph()) {
    const absl::StatusOr<ComputeTrace> trace = TraceOf(instance, compute);
    if (!trace.ok()) return trace.status();
    return OffloadFrom(instance, compute, *trace, memory, strategy, options);
  }
  const Chain& chain = instance.chain();
  std::optional<TransferSchedule> best;
  for (const Granularity granularity : {Granularity::kWhole, Granularity::kParts}) {
    if (granularity == Granularity::kParts && !HasParts(chain)) break;
    const absl::StatusOr<ComputeTrace> trace = TraceOf(instance, compute, granularity);
    if (!trace.ok()) return trace.status();
    absl::StatusOr<std::optional<TransferSchedule>> found =
        OffloadFrom(instance, compute, *trace, memory, strategy, options);
    if (!found.ok()) return found.status();
    if (!found->has_value()) continue;
    if (!best || (*found)->prediction.makespan < best->prediction.makespan)
      best = *std::move(found);
  }
  return best;
}

namespace {

constexpr char kClass[] = "schedules that recompute nothing and copy whole tensors to the host";
constexpr int kFrontierBudgets = 64;

// Plain training of one chain, and what may be moved around in it.
class Offloading {
 public:
  static absl::StatusOr<Offloading> Create(const Instance& instance, const SolveOptions& options) {
    if (options.stop != nullptr) {
      absl::Status status = options.stop->Check();
      if (!status.ok()) return status;
    }
    absl::StatusOr<ComputeTrace> trace = TraceOf(instance, instance.store_all_schedule());
    if (!trace.ok()) return trace.status();
    return Offloading(instance, *std::move(trace));
  }

  const Instance& instance() const { return instance_; }
  Bytes plain_peak() const { return instance_.store_all()->peak; }

  // Nothing of the class fits into less.
  Bytes Floor() const {
    const std::optional<TraceProblem> traced = Traced(plain_peak());
    if (!traced) return plain_peak();
    return std::max(traced->problem.least_memory(), plain_peak() - instance_.link()->host_memory);
  }

  // The plan for a budget; its least_budget is set where it is infeasible alone.
  absl::StatusOr<Plan> Solve(const OffloadStrategy& strategy, Bytes budget,
                             const SolveOptions& options) const {
    Plan plan;
    plan.bounds.schedule_class = kClass;
    if (plain_peak() <= budget) {
      plan.status = PlanStatus::kFound;
      plan.schedule = instance_.store_all_schedule();
      plan.bounds.proven_optimal = true;
      plan.explanation = "everything fits: nothing is offloaded";
      return plan;
    }
    if (!instance_.link()) {
      Refuse(absl::StrCat("without a link to host memory, ", plain_peak().value(),
                          " bytes are needed"),
             plain_peak(), &plan);
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
    plan.schedule =
        WithTransfers(instance_.store_all_schedule(), trace_, *traced, answer->timeline);
    const absl::StatusOr<Simulation> simulation = Evaluator(instance_).Run(plan.schedule);
    if (!simulation.ok()) return absl::InternalError(simulation.status().message());
    plan.bounds.proven_optimal = simulation->makespan <= answer->lower_bound;
    return plan;
  }

 private:
  Offloading(const Instance& instance, ComputeTrace trace)
      : instance_(instance), trace_(std::move(trace)) {}

  // Nothing without a link, or where its copies are beyond the limits of times.
  std::optional<TraceProblem> Traced(Bytes budget) const {
    if (!instance_.link()) return std::nullopt;
    absl::StatusOr<TraceProblem> traced = MakeTraceProblem(trace_, *instance_.link(), budget);
    if (!traced.ok()) return std::nullopt;
    return *std::move(traced);
  }

  static void Refuse(std::string explanation, Bytes least, Plan* plan) {
    plan->status = PlanStatus::kProvenInfeasible;
    plan->bounds.least_budget = least;
    plan->explanation = std::move(explanation);
  }

  Instance instance_;
  ComputeTrace trace_;
};

class OffloadSolver final : public Solver {
 public:
  explicit OffloadSolver(const OffloadStrategy* strategy)
      : strategy_(*strategy),
        info_{strategy->info().name,
              "offloads, without recomputing: " + strategy->info().description,
              kClass,
              /*chains=*/true,
              /*graphs=*/false,
              /*copies=*/true,
              /*monotone=*/false} {}

  const SolverInfo& info() const override { return info_; }

  absl::StatusOr<Plan> DoSolve(const Instance& instance, Bytes budget,
                               const SolveOptions& options) const override {
    const absl::StatusOr<Offloading> offloading = Offloading::Create(instance, options);
    if (!offloading.ok()) return offloading.status();
    RisingProgress progress(options.progress);
    absl::StatusOr<Plan> plan =
        offloading->Solve(strategy_, budget, progress.Part(options, 0.0, 1.0));
    if (plan.ok()) progress.Report(1.0);
    return plan;
  }

  absl::StatusOr<Frontier> DoSolveFrontier(const Instance& instance,
                                           const SolveOptions& options) const override {
    const absl::StatusOr<Offloading> offloading = Offloading::Create(instance, options);
    if (!offloading.ok()) return offloading.status();
    const absl::StatusOr<Bytes> least = LeastOf(*offloading, options);
    if (!least.ok()) return least.status();
    FrontierBuilder builder(instance, options.frontier_limit());
    RisingProgress progress(options.progress);
    const int64_t range = (offloading->plain_peak() - *least).value();
    // What takes no longer than plain training is not bettered by more memory.
    for (int i = 0; i < kFrontierBudgets &&
                    builder.MakespanAt(offloading->plain_peak()) > instance.store_all()->makespan;
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
    absl::Status status = builder.Add(instance.store_all_schedule());
    if (!status.ok()) return status;
    progress.Report(1.0);
    return builder.BuildCompact({info_.name, info_.schedule_class, offloading->Floor(),
                                 /*exact=*/!instance.link(), /*slots=*/0});
  }

  absl::StatusOr<Bytes> DoLeastBudget(const Instance& instance,
                                      const SolveOptions& options) const override {
    const absl::StatusOr<Offloading> offloading = Offloading::Create(instance, options);
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

const std::vector<const Solver*>& OffloadSolvers() {
  static const auto* const kSolvers = [] {
    auto* solvers = new std::vector<const Solver*>;
    for (const OffloadStrategy* strategy : AllOffloadStrategies()) {
      solvers->push_back(new OffloadSolver(strategy));
    }
    return solvers;
  }();
  return *kSolvers;
}

}  // namespace stowage
