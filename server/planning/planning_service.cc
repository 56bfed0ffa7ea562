#include "server/planning/planning_service.h"

#include <algorithm>
#include <new>
#include <type_traits>
#include <utility>

#include "server/planning/plan_lookup.h"
#include "server/planning/plan_under.h"
#include "server/planning/planning_error.h"

namespace stowage {
namespace {

SolveOutcome OutcomeOf(const absl::StatusOr<Plan>& plan) {
  if (!plan.ok()) {
    return absl::IsCancelled(plan.status()) ? SolveOutcome::kCancelled : SolveOutcome::kError;
  }
  switch (plan->status) {
    case PlanStatus::kFound:
      return SolveOutcome::kFound;
    case PlanStatus::kProvenInfeasible:
      return SolveOutcome::kProvenInfeasible;
    case PlanStatus::kNotFound:
      return SolveOutcome::kNotFound;
  }
  return SolveOutcome::kError;
}

// The solver library reports by status; what throws is the allocator, when tables are large.
template <class Function>
std::invoke_result_t<Function> CatchingBadAlloc(const Function& function) {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return OutOfMemoryError();
  }
}

// Bytes that one solve may use for tables.
Bytes TableLimit(const PlanningOptions& options) {
  constexpr Bytes kLeast{1 << 20};
  return std::max(kLeast, Bytes(options.solver_memory.value() / options.solver_threads));
}

}  // namespace

PlanningService::PlanningService(const PlanningOptions& options, PlanStore* store,
                                 const PlanSolver* solver, ServerMetrics* metrics)
    : options_(options),
      store_(store),
      solver_(solver),
      metrics_(metrics),
      pool_(options.solver_threads, options.queue_limit, metrics) {}

PlanningService::~PlanningService() { Stop(); }

absl::StatusOr<CachedPlan> PlanningService::GetPlan(const std::vector<PlanKey>& keys,
                                                    const Budget& budget) {
  if (absl::Status valid = ValidateBudget(budget); !valid.ok()) return valid;
  PlanLookup outcome = PlanLookup::kNoEntry;
  for (const PlanKey& key : keys) {
    const std::shared_ptr<const PlanEntry> entry = store_->Get(key, Access::kLookup);
    if (!entry) continue;
    outcome = PlanLookup::kNoBudget;
    std::optional<Bytes> bytes = WithoutSolver(budget, entry->store_all.peak);
    if (!bytes) bytes = entry->least_budget;
    if (!bytes) continue;
    const auto plans = PlansServing(*entry, *bytes);
    // That there is no schedule holds under the reference costs; who asks has named none.
    if (plans.empty() || plans.front()->status != PlanStatus::kFound) continue;
    metrics_->PlanLookedUp(PlanLookup::kHit);
    metrics_->ProfilingSaved();
    return CachedPlan{plans.front(), *bytes, key};
  }
  metrics_->PlanLookedUp(outcome);
  return PlanNotCachedError();
}

std::shared_ptr<PlanCall> PlanningService::ComputePlan(const ComputeRequest& request,
                                                       ComputeCallback done) {
  auto call = std::make_shared<PlanCall>(next_call_++, request.deadline, std::move(done));
  if (absl::Status accepted = Accept(); !accepted.ok()) {
    call->answered = true;
    call->done(accepted);
    return call;
  }
  absl::StatusOr<std::shared_ptr<PlanningProblem>> problem =
      MakePlanningProblem(request.profile, request.options, options_.digest);
  const absl::Status valid = problem.ok() ? ValidateBudget(request.budget) : problem.status();
  if (valid.ok()) {
    call->problem = *std::move(problem);
    call->least = std::holds_alternative<LeastBudget>(request.budget);
    call->budget = WithoutSolver(request.budget, call->problem->store_all.peak);
    Proceed(call, Access::kLookup);
  } else {
    Answer(call, valid);
  }
  return call;
}

void PlanningService::Proceed(const std::shared_ptr<PlanCall>& call, Access access) {
  if (call->least) ResolveFromEntry(call.get());
  if (call->budget) {
    if (std::optional<Plan> plan = FindCached(*call->problem, *call->budget, access)) {
      return AnswerPlan(call, *std::move(plan), AnswerSource::kCache);
    }
  }
  if (call->deadline && access == Access::kLookup) {
    if (*call->deadline <= Clock::now()) return Answer(call, CallDeadlineError());
    timer_.Schedule(call->id, *call->deadline, [this, weak = std::weak_ptr<PlanCall>(call)] {
      if (const auto expired = weak.lock()) Leave(expired, CallDeadlineError());
    });
  }
  Start(call);
}

void PlanningService::Start(const std::shared_ptr<PlanCall>& call) {
  const FlightTable::Joined joined = flights_.Join(call);
  if (!joined.flight) return;
  if (!call->deadline) BoundSolveTime(call, *joined.flight);
  if (!joined.created) return metrics_->FlightJoined();
  const std::shared_ptr<Flight>& flight = joined.flight;
  if (pool_.TrySubmit(flight->id, [this, flight] { Run(flight); })) return;
  if (!stopping_) metrics_->CallShed(Shed::kQueueFull);
  for (const auto& waiting : flights_.Land(flight)) Answer(waiting, Refusal());
}

void PlanningService::BoundSolveTime(const std::shared_ptr<PlanCall>& call, const Flight& flight) {
  timer_.Schedule(call->id, flight.created + options_.max_solve_time,
                  [this, weak = std::weak_ptr<PlanCall>(call)] {
                    if (const auto late = weak.lock()) {
                      Leave(late, SolveTimeError(options_.max_solve_time));
                    }
                  });
  if (call->answered) timer_.Cancel(call->id);  // the flight landed meanwhile
}

PlanOptions PlanningService::OptionsFor(const Flight& flight) const {
  PlanOptions plan_options;
  plan_options.solver = flight.problem->options.solver;
  plan_options.solve.slots = flight.problem->options.slots;
  plan_options.solve.table_limit = TableLimit(options_);
  plan_options.solve.stop = &flight.stop;
  plan_options.solve.transfers = flight.problem->costs->transfers;
  return plan_options;
}

void PlanningService::Run(const std::shared_ptr<Flight>& flight) {
  if (flight->stop.stop_requested()) return;
  AnswerSource source = AnswerSource::kSolved;
  absl::StatusOr<Plan> plan = CatchingBadAlloc([&] { return PlanFor(*flight, &source); });
  if (plan.ok()) return Distribute(flight, *plan, source);
  for (const auto& call : flights_.Land(flight)) Answer(call, plan.status());
}

absl::StatusOr<Plan> PlanningService::PlanFor(const Flight& flight, AnswerSource* source) {
  const PlanningProblem& problem = *flight.problem;
  Access access = Access::kPeek;
  std::optional<Bytes> budget = flight.budget;
  if (!budget) {
    const absl::StatusOr<Bytes> least =
        solver_->Resolve(problem.costs->problem, LeastBudget{}, OptionsFor(flight));
    if (!least.ok()) return least.status();
    budget = *least;
    access = Access::kLookup;
  }
  // Between the caller's lookup and this flight another one may have landed: one solve per
  // question.
  *source = AnswerSource::kCache;
  if (std::optional<Plan> cached = FindCached(problem, *budget, access)) return *std::move(cached);
  *source = AnswerSource::kSolved;
  absl::StatusOr<Plan> plan = Solve(flight, *budget);
  if (!plan.ok()) return plan;
  SolvedPlan solved{flight.problem, *std::move(plan), !flight.budget.has_value()};
  Store(&solved);
  return std::move(solved.plan);
}

absl::StatusOr<Plan> PlanningService::Solve(const Flight& flight, Bytes budget) {
  const PlanningProblem& problem = *flight.problem;
  const Clock::time_point start = Clock::now();
  absl::StatusOr<Plan> plan = CatchingBadAlloc(
      [&] { return solver_->Solve(problem.costs->problem, budget, OptionsFor(flight)); });
  const auto took = std::chrono::nanoseconds(Clock::now() - start);
  mean_solve_ns_ = (mean_solve_ns_ * 7 + took.count()) / 8;
  metrics_->Solved(plan.ok() ? plan->provenance.solver : problem.options.solver, OutcomeOf(plan),
                   std::chrono::duration<double>(took).count());
  const Nanos ideal = IdealTime(problem.costs->problem);
  if (plan.ok() && plan->status == PlanStatus::kFound && ideal > Nanos(0)) {
    metrics_->PlanQuality(
        static_cast<double>(plan->prediction.makespan.value()) / static_cast<double>(ideal.value()),
        plan->gap(),
        static_cast<double>(plan->prediction.peak.value()) /
            static_cast<double>(std::max<int64_t>(budget.value(), 1)));
  }
  return plan;
}

void PlanningService::Distribute(const std::shared_ptr<Flight>& flight, const Plan& plan,
                                 AnswerSource source) {
  const LinkedProblem& solved_under = *flight->problem->costs;
  for (const auto& call : flights_.Land(flight)) {
    const LinkedProblem& asked = *call->problem->costs;
    const bool leads = call->id == flight->leader;
    // "Least" means something else to a caller of other overheads or without the link, and a plan that
    // was made without times is no answer to who has some.
    const bool timeless =
        IdealTime(solved_under.problem) == Nanos(0) && IdealTime(asked.problem) > Nanos(0);
    const bool same_question = !timeless && (call->budget || SameMemory(asked, solved_under));
    std::optional<Plan> judged;
    if (same_question) {
      judged = PlanUnder(asked, call->problem->store_all, solved_under, plan,
                         call->budget.value_or(plan.budget));
      if (!judged) metrics_->PlanRefused();
    }
    if (judged) {
      const bool shared = source == AnswerSource::kSolved && !leads;
      AnswerPlan(call, *std::move(judged), shared ? AnswerSource::kShared : source);
    } else if (leads) {
      Answer(call,
             absl::InternalError("the referee refused a plan under the costs it was made for"));
    } else {
      Proceed(call, Access::kPeek);
    }
  }
}

void PlanningService::Cancel(const std::shared_ptr<PlanCall>& call) {
  Leave(call, CallCancelledError());
}

void PlanningService::Leave(const std::shared_ptr<PlanCall>& call, const absl::Status& status) {
  if (const std::shared_ptr<Flight> abandoned = flights_.Leave(call)) {
    pool_.Withdraw(abandoned->id);
  }
  Answer(call, status);
}

void PlanningService::ResolveFromEntry(PlanCall* call) {
  const auto entry = store_->Get(call->problem->key, Access::kPeek);
  if (!entry || !entry->least_budget || entry->canonical != *call->problem->canonical) return;
  if (SameMemory(*entry->reference, *call->problem->costs)) call->budget = entry->least_budget;
}

std::optional<Plan> PlanningService::FindCached(const PlanningProblem& problem, Bytes budget,
                                                Access access) {
  Found found;
  if (const auto entry = store_->Get(problem.key, access)) {
    found = BestAccepted(problem, *entry, budget);
  }
  if (access == Access::kLookup) {
    metrics_->PlanLookedUp(found.outcome);
    for (int i = 0; i < found.refused; ++i) metrics_->PlanRefused();
  }
  return std::move(found.plan);
}

void PlanningService::Store(SolvedPlan* solved) {
  const PlanKey& key = solved->problem->key;
  std::lock_guard<std::mutex> lock(record_mutex_);
  std::shared_ptr<const PlanEntry> old = store_->Get(key, Access::kUpdate);
  const int64_t generation = old ? old->generation : 0;
  if (old && old->canonical != *solved->problem->canonical) old = nullptr;
  std::optional<PlanEntry> entry = Record(old.get(), solved);
  if (!entry) return;
  entry->generation = generation + 1;
  // An entry that the store cannot hold costs later hits, not this answer.
  store_->Put(key, std::make_shared<const PlanEntry>(*std::move(entry))).IgnoreError();
}

absl::Status PlanningService::Accept() {
  std::lock_guard<std::mutex> lock(open_mutex_);
  if (!accepting_) return DrainingError();
  if (open_calls_ >= options_.max_open_calls) {
    metrics_->CallShed(Shed::kTooManyCalls);
    return TooManyCallsError(options_.max_open_calls, RetryAfter());
  }
  ++open_calls_;
  return absl::OkStatus();
}

void PlanningService::AnswerPlan(const std::shared_ptr<PlanCall>& call, Plan plan,
                                 AnswerSource source) {
  plan.stage_vertices = call->problem->stage_vertices;
  Answer(call, ComputeAnswer{std::move(plan), call->problem->key, source});
}

void PlanningService::Answer(const std::shared_ptr<PlanCall>& call,
                             absl::StatusOr<ComputeAnswer> answer) {
  if (call->answered.exchange(true)) return;
  timer_.Cancel(call->id);
  const ComputeCallback done = std::move(call->done);
  done(std::move(answer));
  std::lock_guard<std::mutex> lock(open_mutex_);
  if (--open_calls_ == 0) all_answered_.notify_all();
}

absl::Status PlanningService::Refusal() const {
  return stopping_ ? DrainingError() : QueueFullError(options_.queue_limit, RetryAfter());
}

std::chrono::nanoseconds PlanningService::RetryAfter() const {
  using std::chrono::nanoseconds;
  const nanoseconds drained(mean_solve_ns_ * static_cast<int64_t>(options_.queue_limit) /
                            options_.solver_threads);
  return std::clamp<nanoseconds>(drained, std::chrono::milliseconds(100), std::chrono::seconds(30));
}

DrainResult PlanningService::Drain(Clock::time_point deadline) {
  DrainResult result;
  {
    std::unique_lock<std::mutex> lock(open_mutex_);
    accepting_ = false;
    result.finished = open_calls_;
    all_answered_.wait_until(lock, deadline, [this] { return open_calls_ == 0; });
    result.abandoned = open_calls_;
    result.finished -= result.abandoned;
  }
  Stop();
  return result;
}

void PlanningService::Stop() {
  {
    std::lock_guard<std::mutex> lock(open_mutex_);
    accepting_ = false;
  }
  stopping_ = true;
  for (const auto& call : flights_.LandAll()) Answer(call, DrainingError());
  pool_.Stop();
  // A call that was handed back while the pool stopped may have opened one more flight.
  for (const auto& call : flights_.LandAll()) Answer(call, DrainingError());
}

}  // namespace stowage
