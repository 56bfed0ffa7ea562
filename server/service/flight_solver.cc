#include "server/service/flight_solver.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "server/service/solve_outcome.h"
#include "solvers/registry.h"

namespace stowage {
namespace {

// From what a solver tells to the news of its flight. Plans that come faster than they can be validated
// wait for the next time it tells anything.
class SearchNews {
 public:
  SearchNews(Flight* flight, const std::function<void()>& tell, Bytes budget, SolveOptions* options)
      : flight_(*flight), tell_(tell), budget_(budget) {
    options->progress = [this](double share) { OnProgress(share); };
    options->incumbent = [this](const Schedule& schedule) { OnSchedule(schedule); };
  }
  SearchNews(const SearchNews&) = delete;
  SearchNews& operator=(const SearchNews&) = delete;

 private:
  void OnProgress(double share) {
    if (flight_.news.Progressed(share)) tell_();
    Publish();
  }

  void OnSchedule(const Schedule& schedule) {
    waiting_ = schedule;
    Publish();
  }

  void Publish() {
    if (!waiting_ || !flight_.news.WantsPlan()) return;
    Plan plan;
    plan.status = PlanStatus::kFound;
    plan.budget = budget_;
    plan.schedule = *std::exchange(waiting_, std::nullopt);
    plan.search_complete = false;
    plan.explanation = "the best so far";
    // One that the evaluator refuses is no news.
    if (!ValidatePlan(*flight_.problem->costs, &plan).ok()) return;
    if (flight_.news.Found(std::make_shared<const Plan>(std::move(plan)))) tell_();
  }

  Flight& flight_;
  const std::function<void()>& tell_;
  const Bytes budget_;
  std::optional<Schedule> waiting_;
};

// Whether a later search's plan takes the place of the one before it.
bool Replaces(const Plan& plan, const Plan& before) {
  if (plan.prediction.makespan != before.prediction.makespan) {
    return plan.prediction.makespan < before.prediction.makespan;
  }
  return plan.bounds.lower_bound >= before.bounds.lower_bound;
}

// A search that has come to its end may know less than one before it that was cut short, under other costs say: then
// its plan gets that one's schedule. What it has proven of its own does not hold.
void KeepFaster(const Instance& costs, const Plan& before, Plan* plan) {
  const bool slower =
      plan->status != PlanStatus::kFound || plan->prediction.makespan > before.prediction.makespan;
  if (!slower) return;
  Plan faster = *plan;
  faster.status = PlanStatus::kFound;
  faster.schedule = before.schedule;
  faster.bounds.proven_optimal = false;
  faster.bounds.least_budget = Bytes(0);
  faster.explanation = "found by a search before, which was cut short";
  if (ValidatePlan(costs, &faster).ok()) *plan = std::move(faster);
}

// Hundreds of plans of networks of usual sizes.
constexpr Bytes kUnfinishedBytes{int64_t{16} << 20};

Span StartSolve(const Flight& flight, std::optional<Bytes> budget) {
  Span span = flight.trace.Start("solve");
  if (budget) span.Add("stowage.budget_bytes", budget->value());
  return span;
}

void EndSolve(SolveOutcome outcome, const absl::Status& status, Span* span) {
  span->Add("stowage.outcome", ToString(outcome));
  if (!status.ok() && span->recording()) span->Fail(std::string(status.message()));
  span->End();
}

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Bytes TableLimit(const PlanningOptions& options) {
  constexpr Bytes kLeast{1 << 20};
  return std::max(kLeast, Bytes(options.solver_memory.value() / options.solver_threads));
}

bool IsAnytime(const PlanningProblem& problem) {
  const absl::StatusOr<const Solver*> solver = FindSolver(*problem.costs, problem.options.solver);
  return solver.ok() && (*solver)->info().IsAnytimeFor(*problem.costs);
}

SolveEstimate FlightSolver::Estimate(const PlanningProblem& problem,
                                     std::optional<Bytes> budget) const {
  if (budget && problem.store_all.peak <= *budget) return {std::chrono::nanoseconds(0), true};
  return costs_.Estimate(problem);
}

FlightSolver::FlightSolver(const PlanningOptions& options, PlanCache* cache,
                           const PlanSolver* solver, ServerMetrics* metrics)
    : table_limit_(TableLimit(options)),
      cache_(cache),
      solver_(solver),
      metrics_(metrics),
      shares_(options.lease != nullptr),
      leased_(options.lease_wait, options.lease != nullptr ? options.lease : &alone_, metrics),
      unfinished_(kUnfinishedBytes) {}

PlanOptions FlightSolver::OptionsFor(const Flight& flight) const {
  PlanOptions plan_options;
  plan_options.solver = flight.problem->options.solver;
  plan_options.solve.slots = flight.problem->options.slots;
  plan_options.solve.table_limit = table_limit_;
  plan_options.solve.stop = &flight.stop;
  return plan_options;
}

SolveTurn FlightSolver::TakeTurn(Flight* flight, const SolveQuestion& question,
                                 const std::function<bool()>& look) {
  if (shares_ && !flight->leasing.recording()) flight->leasing = flight->trace.Start("lease");
  Turn turn = leased_.Take(question, look, &flight->wait);
  const SolveTurn whose = turn.turn;
  if (whose != SolveTurn::kWait) {
    flight->leasing.Add("stowage.found", whose == SolveTurn::kFound ? "yes" : "no");
    flight->leasing.End();
  }
  if (whose == SolveTurn::kSolve) flight->turn = std::move(turn);
  return whose;
}

void FlightSolver::Found(Flight* flight) {
  if (!leased_.Found(&flight->wait)) return;
  flight->leasing.Add("stowage.found", "yes");
  flight->leasing.End();
}

absl::StatusOr<FlightLook<Plan>> FlightSolver::LookForPlan(Flight* flight) {
  return CatchingBadAlloc([&] { return FindPlan(flight); });
}

absl::StatusOr<FlightLook<Plan>> FlightSolver::FindPlan(Flight* flight) {
  const PlanningProblem& problem = *flight->problem;
  Access access = Access::kPeek;
  if (flight->budget) flight->resolved = flight->budget;
  if (!flight->resolved) {
    const absl::StatusOr<Bytes> least =
        solver_->Resolve(*problem.costs, LeastBudget{}, OptionsFor(*flight));
    if (!least.ok()) return least.status();
    flight->resolved = *least;
    access = Access::kLookup;
  }
  const Bytes budget = *flight->resolved;
  // Between the caller's lookup and this flight another one may have landed: one solve per
  // question.
  Span looking = flight->trace.Start("store.look");
  auto cached = cache_->Find(problem, budget, access, MayWait::kYes);
  looking.End();
  if (cached && *cached) {
    Found(flight);
    return FlightLook<Plan>{**std::move(cached)};
  }
  // Of several servers one solves; its lease is held until the plan is kept.
  const auto look = [&] {
    cached = cache_->Find(problem, budget, Access::kUpdate, MayWait::kYes);
    return cached && cached->has_value();
  };
  const SolveTurn turn = TakeTurn(flight, {problem.key, budget}, look);
  if (turn == SolveTurn::kFound) return FlightLook<Plan>{**std::move(cached)};
  return FlightLook<Plan>{std::nullopt, turn == SolveTurn::kWait};
}

absl::StatusOr<Plan> FlightSolver::SolvePlan(Flight* flight, const std::function<void()>& tell) {
  const std::optional<Turn> turn = std::exchange(flight->turn, std::nullopt);
  return CatchingBadAlloc([&]() -> absl::StatusOr<Plan> {
    const int64_t begun = cache_->Begin(flight->problem->key);
    const std::optional<UnfinishedPlan> before = Before(*flight->problem, *flight->resolved);
    if (before && flight->news.Found(std::make_shared<const Plan>(before->plan))) tell();
    const auto start = std::chrono::steady_clock::now();
    absl::StatusOr<Plan> plan = Solve(flight, tell, *flight->resolved);
    if (!plan.ok() || !plan->search_complete) {
      std::chrono::nanoseconds searched = std::chrono::steady_clock::now() - start;
      if (before && before->fresh) searched = std::max(searched, before->searched);
      return Unfinished(*flight, UnfinishedPlan{Plan(), searched, begun}, std::move(plan));
    }
    if (before) KeepFaster(*flight->problem->costs, before->plan, &*plan);
    unfinished_.Drop(*flight->problem, *flight->resolved);
    SolvedPlan solved{flight->problem, *std::move(plan), !flight->budget.has_value(),
                      flight->problem->job};
    const Span writing = flight->trace.Start("store.write");
    cache_->Keep(&solved, begun);
    return std::move(solved.plan);
  });
}

std::optional<UnfinishedPlan> FlightSolver::Before(const PlanningProblem& problem,
                                                   Bytes budget) const {
  std::optional<UnfinishedPlan> before = unfinished_.Find(problem, budget);
  if (before && cache_->DeletedSince(problem.key, before->begun)) return std::nullopt;
  return before;
}

std::optional<Plan> FlightSolver::CutShort(const PlanningProblem& problem, Bytes budget,
                                           std::chrono::nanoseconds time) const {
  std::optional<UnfinishedPlan> before = Before(problem, budget);
  if (!before || !before->fresh) return std::nullopt;
  // Equal deadlines leave searches of slightly different lengths, and the same search does not find more in those.
  constexpr int kHardlyMore = 10;
  if (time - before->searched > before->searched / kHardlyMore) return std::nullopt;
  return std::move(before->plan);
}

absl::StatusOr<Plan> FlightSolver::Unfinished(const Flight& flight, UnfinishedPlan so_far,
                                              absl::StatusOr<Plan> plan) {
  const std::shared_ptr<const Plan> best = flight.news.latest().best;
  const bool found = plan.ok() && plan->status == PlanStatus::kFound;
  if (found && (!best || Replaces(*plan, *best))) {
    so_far.plan = *plan;
  } else if (best) {
    so_far.plan = *best;
  } else {
    return plan;
  }
  unfinished_.Keep(*flight.problem, *flight.resolved, so_far);
  if (!plan.ok()) return plan;
  return std::move(so_far.plan);
}

absl::StatusOr<Plan> FlightSolver::Solve(Flight* flight, const std::function<void()>& tell,
                                         Bytes budget) {
  PlanOptions plan_options = OptionsFor(*flight);
  SearchNews search(flight, tell, budget, &plan_options.solve);
  Span solving = StartSolve(*flight, budget);
  const auto start = std::chrono::steady_clock::now();
  absl::StatusOr<Plan> plan = CatchingBadAlloc(
      [&] { return solver_->Solve(*flight->problem->costs, budget, plan_options); });
  const auto took = std::chrono::nanoseconds(std::chrono::steady_clock::now() - start);
  if (plan.ok()) solving.Add("stowage.solver", plan->provenance.solver);
  EndSolve(OutcomeOf(plan), plan.status(), &solving);
  const bool trivial = flight->problem->store_all.peak <= budget;
  if (!trivial && !absl::IsCancelled(plan.status())) costs_.Measured(*flight->problem, took);
  Count(*flight, plan, took);
  return plan;
}

absl::StatusOr<FlightLook<std::shared_ptr<const Frontier>>> FlightSolver::LookForFrontier(
    Flight* flight) {
  using Look = FlightLook<std::shared_ptr<const Frontier>>;
  return CatchingBadAlloc([&]() -> absl::StatusOr<Look> {
    const PlanningProblem& problem = *flight->problem;
    Span looking = flight->trace.Start("store.look");
    auto cached = cache_->FindFrontier(problem, Access::kPeek, MayWait::kYes);
    looking.End();
    if (cached && *cached) {
      Found(flight);
      return Look{*cached};
    }
    const auto look = [&] {
      cached = cache_->FindFrontier(problem, Access::kUpdate, MayWait::kYes);
      return cached && *cached;
    };
    const SolveTurn turn = TakeTurn(flight, {problem.key, std::nullopt}, look);
    if (turn == SolveTurn::kFound) return Look{*cached};
    return Look{std::nullopt, turn == SolveTurn::kWait};
  });
}

absl::StatusOr<std::shared_ptr<const Frontier>> FlightSolver::SolveFrontier(
    Flight* flight, const std::function<void()>& tell) {
  const std::optional<Turn> turn = std::exchange(flight->turn, std::nullopt);
  return CatchingBadAlloc([&] { return SolveAndKeepFrontier(flight, tell); });
}

absl::StatusOr<std::shared_ptr<const Frontier>> FlightSolver::SolveAndKeepFrontier(
    Flight* flight, const std::function<void()>& tell) {
  const PlanningProblem& problem = *flight->problem;
  PlanOptions plan_options = OptionsFor(*flight);
  plan_options.solve.progress = [&](double share) {
    if (flight->news.Progressed(share)) tell();
  };
  const int64_t begun = cache_->Begin(problem.key);
  Span solving = StartSolve(*flight, std::nullopt);
  const auto start = std::chrono::steady_clock::now();
  absl::StatusOr<Frontier> frontier =
      CatchingBadAlloc([&] { return solver_->SolveFrontier(*problem.costs, plan_options); });
  const SolveOutcome outcome = frontier.ok() ? SolveOutcome::kFound : OutcomeOf(frontier.status());
  metrics_->Solved(frontier.ok() ? frontier->info().solver : problem.options.solver, outcome,
                   SecondsSince(start));
  EndSolve(outcome, frontier.status(), &solving);
  if (!frontier.ok()) return frontier.status();
  const auto shared = std::make_shared<const Frontier>(*std::move(frontier));
  // Who asks with more time is to get more.
  if (!shared->info().search_complete) return shared;
  const Span writing = flight->trace.Start("store.write");
  cache_->KeepFrontier(problem, shared, begun);
  return shared;
}

absl::StatusOr<BatchFit> FlightSolver::BatchesFor(const Flight& flight) const {
  const BatchRequest& asked = *flight.batches;
  const PlanOptions plan_options = OptionsFor(flight);
  const auto solve = [&](const Profile& profile) {
    Span solving = StartSolve(flight, asked.budget);
    const auto start = std::chrono::steady_clock::now();
    absl::StatusOr<Plan> plan = CatchingBadAlloc([&] {
      const Instance instance(profile.problem, flight.problem->costs->link());
      return solver_->Solve(instance, asked.budget, plan_options);
    });
    metrics_->Solved(plan.ok() ? plan->provenance.solver : plan_options.solver, OutcomeOf(plan),
                     SecondsSince(start));
    EndSolve(OutcomeOf(plan), plan.status(), &solving);
    return plan;
  };
  return CatchingBadAlloc([&] { return FitBatch(*asked.model, asked.max_batch, solve); });
}

void FlightSolver::Count(const Flight& flight, const absl::StatusOr<Plan>& plan,
                         std::chrono::nanoseconds took) {
  const PlanningProblem& problem = *flight.problem;
  metrics_->Solved(plan.ok() ? plan->provenance.solver : problem.options.solver, OutcomeOf(plan),
                   std::chrono::duration<double>(took).count());
  const Nanos ideal = IdealTime(problem.costs->problem());
  if (!plan.ok() || plan->status != PlanStatus::kFound || ideal == Nanos(0)) return;
  metrics_->PlanQuality(
      static_cast<double>(plan->prediction.makespan.value()) / static_cast<double>(ideal.value()),
      plan->gap(),
      static_cast<double>(plan->prediction.peak.value()) /
          static_cast<double>(std::max<int64_t>(plan->budget.value(), 1)));
}

}  // namespace stowage
