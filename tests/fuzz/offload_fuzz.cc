// Arbitrary chains, links to host memory and budgets for every strategy of offloading, and through
// the facade with that link: an answer is a plan that two evaluators accept and that no bound
// contradicts, a proof that holds, or an error of the documented kinds.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "solvers/model/field_error.h"
#include "solvers/planner.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/lower_bound.h"
#include "solvers/schedule/text.h"
#include "solvers/transfer/strategies.h"
#include "tests/fuzz/byte_source.h"
#include "tests/fuzz/draw_chain.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/require.h"
#include "tests/solvers/naive_replay.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/transfer/offload_from.h"
#include "tests/solvers/transfer_search.h"

namespace stowage {
namespace {

using testing::ByteSource;
using testing::Require;

constexpr int kMaxStages = 12;
constexpr int kMostSearched = 2;    // stages, by the exhaustive search
constexpr int kMostSetsOf = 8;      // activations of which all sets are tried
constexpr int64_t kSmall = 100000;  // quantities that the naive replay and the search can add up

struct Case {
  const Chain& chain;
  const TransferModel& link;
  Bytes budget;
  std::string detail;
  bool small = false;  // all quantities are
  // If few stages and small: the least makespan there is; nothing if nothing fits.
  std::optional<std::optional<testing::FoundSchedule>> fastest = std::nullopt;
};

std::string Describe(const Chain& chain, const TransferModel& link, Bytes budget) {
  return absl::StrCat(testing::Describe(chain), "\nbudget ", budget.value(), ", to host ",
                      link.to_host.bytes_per_second, " B/s after ", link.to_host.latency.value(),
                      " ns, back ", link.to_device.bytes_per_second, " B/s after ",
                      link.to_device.latency.value(), " ns, ", link.full_duplex ? "full" : "half",
                      " duplex, host ", link.host_memory.value());
}

bool IsSmall(const Chain& chain, const TransferModel& link) {
  const Simulation all = *Evaluator(chain).Run(StoreAllSchedule(chain));
  const bool slow = std::min(link.to_host.bytes_per_second, link.to_device.bytes_per_second) < 1000;
  return std::max({all.peak.value(), all.makespan.value(), link.to_host.latency.value(),
                   link.to_device.latency.value()}) < kSmall &&
         !slow;
}

void CheckSchedule(const Case& c, const Schedule& schedule, Nanos makespan) {
  const std::string detail = c.detail + "\n" + ScheduleText(schedule);
  const absl::StatusOr<Simulation> run = Evaluator(Instance(c.chain, c.link)).Run(schedule);
  Require(run.ok(), "the schedule is valid", run.status().ToString() + "\n" + detail);
  Require(run->peak <= c.budget, "the peak is within the budget", detail);
  Require(run->host_peak <= c.link.host_memory, "the host has the memory", detail);
  Require(run->makespan == makespan, "the makespan is exact", detail);
  Require(StrongestMakespanLowerBound(Instance(c.chain, c.link), c.budget) <= makespan,
          "the bound is one", detail);
  if (!c.small) return;
  const testing::NaiveResult naive = testing::NaiveReplay(c.chain, schedule, &c.link);
  Require(naive.valid && naive.peak == run->peak.value(), "both evaluators see one peak", detail);
  Require(naive.makespan == makespan.value(), "both see one makespan", detail);
  if (!c.fastest) return;
  Require(c.fastest->has_value(), "nothing fits where nothing can", detail);
  Require((*c.fastest)->makespan <= makespan.value(), "nothing is faster than all", detail);
}

bool SomeSetFits(const OffloadProblem& problem) {
  for (int bits = 0; bits < 1 << problem.size(); ++bits) {
    OffloadSet set;
    for (int i = 0; i < problem.size(); ++i) {
      if ((bits >> i & 1) != 0) set.push_back(i);
    }
    if (problem.Admits(set)) return true;
  }
  return false;
}

void CheckStrategy(const Case& c, const OffloadProblem& problem, const OffloadStrategy& strategy,
                   const SolveOptions& options) {
  const std::string detail = strategy.info().name + "\n" + c.detail;
  const absl::StatusOr<OffloadPlan> plan = strategy.Solve(problem, options);
  Require(plan.ok() || absl::IsResourceExhausted(plan.status()), "errors are documented", detail);
  if (!plan.ok()) return;
  Require(!plan->explanation.empty(), "it explains itself", detail);
  if (plan->status == PlanStatus::kProvenInfeasible && problem.size() <= kMostSetsOf) {
    Require(!SomeSetFits(problem), "what is proven infeasible does not fit", detail);
  }
  const bool found = plan->status == PlanStatus::kFound;
  if (found) {
    const OffloadTimeline& timeline = plan->timeline;
    Require(problem.Admits(plan->set), "its set fits", detail);
    Require(timeline.peak == PeakOf(problem, timeline), "the peak is exact", detail);
    Require(timeline.peak <= c.budget, "the peak is within the budget", detail);
    Require(timeline.host_peak <= c.link.host_memory, "the host has the memory", detail);
    Require(plan->lower_bound <= timeline.makespan, "the bound of offloading is one", detail);
  }
  Require(found || problem.memory() < problem.peak(), "what fits is found", detail);
  const auto schedule = testing::OffloadFrom(Instance(c.chain, c.link), StoreAllSchedule(c.chain),
                                             c.budget, strategy, options);
  Require(schedule.ok(), "strategies have schedules", schedule.status().ToString() + detail);
  if (schedule->has_value()) {
    CheckSchedule(c, (*schedule)->schedule, (*schedule)->prediction.makespan);
  }
}

void CheckStrategies(const Case& c, const SolveOptions& options) {
  const absl::StatusOr<OffloadProblem> problem =
      testing::MakeOffloadProblem(c.chain, c.link, c.budget);
  Require(problem.ok() || absl::IsInvalidArgument(problem.status()), "bad problems are refused",
          c.detail);
  if (!problem.ok()) return;
  for (const OffloadStrategy* strategy : AllOffloadStrategies()) {
    CheckStrategy(c, *problem, *strategy, options);
  }
}

bool Documented(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsResourceExhausted(status);
}

// Whether the host may not take all that could leave, or the link not in a time that can be said.
bool LinkIsShort(const Case& c, const PlanOptions& options) {
  if (options.recompute_only) return false;
  const TransferModel& link = c.link;
  const absl::StatusOr<Simulation> all = Evaluator(c.chain).Run(StoreAllSchedule(c.chain));
  if (!all.ok()) return false;
  constexpr Nanos kLong(kMaxTimeTotal / 256);  // tensors may move several times
  return link.host_memory < all->peak || CopyTime(link.to_host, all->peak) > kLong ||
         CopyTime(link.to_device, all->peak) > kLong;
}

// One of the facade's solvers; how fast its plan is.
std::optional<Nanos> CheckFacade(const Case& c, const PlanOptions& options) {
  const std::string detail = options.solver + "\n" + c.detail;
  const absl::StatusOr<Plan> plan = MakePlan(Instance(c.chain, c.link), c.budget, options);
  Require(plan.ok() || Documented(plan.status()), "errors are documented",
          plan.status().ToString() + "\n" + detail);
  if (!plan.ok()) return std::nullopt;
  if (plan->status == PlanStatus::kProvenInfeasible) {
    Require(c.budget < plan->bounds.least_budget, "infeasible below the least budget", detail);
    // Beside little host memory, or a link too slow for words, it is a bound: nothing may fit in it.
    const absl::StatusOr<const Solver*> solver =
        FindSolver(Instance(c.chain, c.link), plan->provenance.solver);
    Require(solver.ok(), "the plan names its solver", detail);
    const bool alone = (*solver)->info().exact_class == ScheduleClass::kOffloading;
    const bool bound_alone = alone || LinkIsShort(c, options);
    const absl::StatusOr<Plan> least =
        MakePlan(Instance(c.chain, c.link), plan->bounds.least_budget, options);
    Require(least.ok(), "the least budget is one", detail);
    Require(alone || least->status != PlanStatus::kProvenInfeasible,
            "the least budget is not infeasible", detail);
    // Slots may be too coarse for it.
    const bool fits = least->status == PlanStatus::kFound;
    Require(bound_alone || fits || options.solve.slots > 0, "it fits", detail);
  }
  if (plan->status != PlanStatus::kFound) return std::nullopt;
  Require(plan->bounds.lower_bound <= plan->prediction.makespan, "the bound is one", detail);
  CheckSchedule(c, plan->schedule, plan->prediction.makespan);
  return plan->prediction.makespan;
}

// Joint is the choice where there is a link.
void CheckJoint(const Case& c, const PlanOptions& options) {
  PlanOptions both = options, recompute = options;
  both.solver.clear();
  recompute.solver.clear();
  recompute.recompute_only = true;
  const std::optional<Nanos> fastest = CheckFacade(c, both);
  const std::optional<Nanos> alone = CheckFacade(c, recompute);
  Require(!alone || (fastest && *fastest <= *alone), "joint is not behind recomputing", c.detail);
  Case more = c;
  const int64_t positive = std::max<int64_t>(c.budget.value(), 0);  // a budget may be none
  more.budget += Bytes(std::min(positive / 8 + 1, INT64_MAX - positive));
  more.fastest.reset();
  const std::optional<Nanos> with_more = CheckFacade(more, both);
  Require(!fastest || (with_more && *with_more <= *fastest), "more budget is not slower", c.detail);
}

void CheckFrontier(const Case& c, const PlanOptions& options) {
  const absl::StatusOr<Frontier> frontier = MakeFrontier(Instance(c.chain, c.link), options);
  Require(frontier.ok() || Documented(frontier.status()), "errors are documented",
          frontier.status().ToString() + "\n" + c.detail);
  if (!frontier.ok()) return;
  for (const Frontier::Point& point : frontier->points()) {
    const absl::StatusOr<Plan> plan = frontier->PlanAt(point.peak);
    Require(plan.ok(), "every point is a plan", c.detail);
    Case at{c.chain, c.link, point.peak, c.detail, c.small};
    CheckSchedule(at, plan->schedule, point.makespan);
  }
}

PlanOptions DrawOptions(ByteSource* in) {
  PlanOptions options;
  // Else the exact search of a few stages may take half a minute under sanitizers.
  options.solve.table_limit = Bytes(8 << 20);
  if (in->OneIn(3)) {
    const std::vector<const Solver*> solvers = SolversOf(ProblemKind::kChain);
    options.solver = solvers[in->Byte() % solvers.size()]->info().name;
  }
  if (in->OneIn(3)) options.solve.slots = in->Below(200);
  return options;
}

}  // namespace

void Fuzz(ByteSource* in) {
  const absl::StatusOr<Chain> chain = Chain::Create(testing::DrawChain(kMaxStages, in));
  if (!chain.ok()) return;
  const TransferModel link = testing::DrawLink(in);
  const Bytes budget = testing::DrawBudget(*chain, in);
  const PlanOptions options = DrawOptions(in);
  Case c{*chain, link, budget, Describe(*chain, link, budget)};
  if (!ValidateTransferModel(link).ok()) {
    const absl::StatusOr<Plan> plan = MakePlan(Instance(*chain, link), budget, options);
    Require(absl::IsInvalidArgument(plan.status()), "bad links are bad arguments", c.detail);
    return;
  }
  c.small = IsSmall(*chain, link) && budget < Bytes(kSmall);
  if (c.small && chain->length() <= kMostSearched) {
    c.fastest = testing::SearchTransfers(*chain, link, budget.value());
  }
  CheckStrategies(c, options.solve);
  if (!options.solver.empty()) CheckFacade(c, options);
  CheckJoint(c, options);
  if (in->OneIn(4)) CheckFrontier(c, options);
}

}  // namespace stowage
