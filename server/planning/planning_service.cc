#include "server/planning/planning_service.h"

#include <algorithm>
#include <utility>

#include "server/planning/plan_under.h"
#include "server/planning/planning_error.h"

namespace stowage {
namespace {

// What an answer may take from the solver's thread to the caller.
std::chrono::nanoseconds AnswerMargin(std::chrono::nanoseconds left) {
  constexpr std::chrono::nanoseconds kMost = std::chrono::milliseconds(50);
  return std::clamp<std::chrono::nanoseconds>(left / 20, std::chrono::nanoseconds(0), kMost);
}

size_t TenantLimit(const PlanningOptions& options) {
  const double places =
      static_cast<double>(options.queue_limit) + static_cast<double>(options.solver_threads);
  return std::max<size_t>(static_cast<size_t>(places * options.tenant_share), 1);
}

}  // namespace

PlanningService::PlanningService(const PlanningOptions& options, PlanStore* store,
                                 const PlanSolver* solver, ServerMetrics* metrics)
    : options_(options),
      metrics_(metrics),
      open_(options.max_open_calls),
      cache_(store, metrics),
      solving_(options, &cache_, solver, metrics),
      pool_(
          {options.solver_threads, options.queue_limit, options.queue_limit, TenantLimit(options)},
          metrics),
      intake_(options.intake_threads, options.intake_limit) {}

PlanningService::~PlanningService() { Stop(); }

absl::StatusOr<CachedPlan> PlanningService::GetPlan(const std::vector<PlanKey>& keys,
                                                    const Budget& budget) {
  size_t next = 0;
  return *cache_.FirstServing(keys, budget, MayWait::kYes, &next);
}

void PlanningService::GetPlanAsync(const std::vector<PlanKey>& keys, const Budget& budget,
                                   CachedPlanCallback done) {
  size_t next = 0;
  if (auto plan = cache_.FirstServing(keys, budget, MayWait::kNo, &next)) {
    return done(*std::move(plan));
  }
  const absl::Status deferred = Defer([this, keys, budget, next, done]() mutable {
    done(*cache_.FirstServing(keys, budget, MayWait::kYes, &next));
  });
  if (!deferred.ok()) done(deferred);
}

absl::Status PlanningService::Defer(std::function<void()> task) {
  if (intake_.TrySubmit(std::move(task))) return absl::OkStatus();
  if (stopping_) return DrainingError();
  metrics_->CallShed(Shed::kTooManyCalls);
  return TooManyCallsError(static_cast<int64_t>(intake_.queue_limit()), RetryAfter());
}

std::shared_ptr<PlanCall> PlanningService::ComputePlan(const ComputeRequest& request,
                                                       ComputeCallback done,
                                                       std::function<void()> changed) {
  auto call = std::make_shared<PlanCall>(next_call_++, request.deadline, std::move(done));
  call->changed = std::move(changed);
  const Clock::time_point now = Clock::now();
  call->limit = request.deadline.value_or(now + options_.max_solve_time);
  call->margin = AnswerMargin(call->limit - now);
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
    Proceed(call, Access::kLookup, request.may_wait);
  } else {
    Answer(call, valid);
  }
  return call;
}

void PlanningService::Proceed(const std::shared_ptr<PlanCall>& call, Access access, MayWait wait) {
  if (!AnswerFromCache(call, access, wait)) {
    if (access == Access::kLookup) WatchLimit(call);
    const absl::Status deferred =
        Defer([this, call, access] { Proceed(call, access, MayWait::kYes); });
    if (!deferred.ok()) Answer(call, deferred);
    return;
  }
  if (call->answered) return;
  if (access == Access::kLookup) WatchLimit(call);
  if (!call->answered) Start(call);
}

bool PlanningService::AnswerFromCache(const std::shared_ptr<PlanCall>& call, Access access,
                                      MayWait wait) {
  if (call->least) {
    const auto least = cache_.FindLeast(*call->problem, wait);
    if (!least) return false;
    if (*least) call->budget = *least;
  }
  if (!call->budget) return true;
  auto plan = cache_.Find(*call->problem, *call->budget, access, wait);
  if (!plan) return false;
  if (*plan) AnswerPlan(call, **std::move(plan), AnswerSource::kCache);
  return true;
}

void PlanningService::WatchLimit(const std::shared_ptr<PlanCall>& call) {
  if (call->limit <= Clock::now()) return Answer(call, LimitError(*call));
  timer_.Schedule(call->id, call->limit - call->margin,
                  [this, weak = std::weak_ptr<PlanCall>(call)] {
                    const auto late = weak.lock();
                    if (!late || late->answered) return;
                    FailAtLimit(late);
                    const auto flight = flights_.FlightOf(*late);
                    if (!flight || !flight->news.latest().best) return;
                    // Judging a plan may take milliseconds, and others are late, too.
                    Defer([this, late, flight] { AnswerBestSoFar(late, *flight); }).IgnoreError();
                  });
}

void PlanningService::AnswerBestSoFar(const std::shared_ptr<PlanCall>& call, const Flight& flight) {
  if (call->answered) return;
  std::optional<Plan> plan = AsAnswer(*call, flight, *flight.news.latest().best);
  if (!plan) return;
  LeaveFlight(call);
  const bool leads = call->id == flight.leader;
  AnswerPlan(call, *std::move(plan), leads ? AnswerSource::kSolved : AnswerSource::kShared);
}

void PlanningService::FailAtLimit(const std::shared_ptr<PlanCall>& call) {
  timer_.Schedule(call->id, call->limit, [this, weak = std::weak_ptr<PlanCall>(call)] {
    const auto late = weak.lock();
    if (!late) return;
    LeaveFlight(late);
    Answer(late, LimitError(*late));
  });
  if (call->answered) timer_.Cancel(call->id);  // meanwhile
}

absl::Status PlanningService::LimitError(const PlanCall& call) const {
  return call.deadline ? CallDeadlineError() : SolveTimeError(options_.max_solve_time);
}

void PlanningService::Start(const std::shared_ptr<PlanCall>& call) {
  if (stopping_) return Answer(call, DrainingError());
  const FlightTable::Joined joined = flights_.Join(call);
  if (!joined.flight) return;
  if (!joined.created) return metrics_->FlightJoined();
  const absl::Status submitted = Submit(*call, joined.flight);
  if (submitted.ok()) return;
  for (const auto& waiting : flights_.Land(joined.flight)) {
    if (waiting == call || !absl::IsResourceExhausted(submitted)) {
      Answer(waiting, submitted);
    } else {
      Proceed(waiting, Access::kPeek, MayWait::kNo);  // its deadline may be longer
    }
  }
}

absl::Status PlanningService::Submit(const PlanCall& call, const std::shared_ptr<Flight>& flight) {
  const SolveEstimate estimate = solving_.Estimate(*call.problem, call.budget);
  if (call.deadline && estimate.measured) {
    const std::chrono::nanoseconds left = call.limit - Clock::now();
    std::chrono::nanoseconds expected = pool_.WaitFor(estimate.time);
    if (!IsAnytime(*call.problem)) expected += estimate.time;
    if (expected > left) {
      metrics_->CallShed(Shed::kDeadline);
      return DeadlineTooShortError(expected, RetryAfter());
    }
  }
  SolveJob job{flight->id, [this, flight] { Run(flight); }, estimate.time, estimate.measured,
               call.problem->options.tenant};
  switch (pool_.Submit(std::move(job))) {
    case Admission::kAccepted:
      return absl::OkStatus();
    case Admission::kStopped:
      return DrainingError();
    case Admission::kOverQuota:
      metrics_->CallShed(Shed::kQuota);
      return TenantQuotaError(TenantLimit(options_), RetryAfter());
    case Admission::kQueueFull:
      break;
  }
  metrics_->CallShed(Shed::kQueueFull);
  return QueueFullError(options_.queue_limit, RetryAfter());
}

void PlanningService::Run(const std::shared_ptr<Flight>& flight) {
  if (flight->stop.stop_requested()) return;
  AnswerSource source = AnswerSource::kSolved;
  const auto tell = [&] {
    for (const auto& watcher : flights_.Watchers(*flight)) watcher->changed();
  };
  const absl::StatusOr<Plan> plan = solving_.PlanFor(flight.get(), tell, &source);
  if (plan.ok()) return Distribute(flight, *plan, source);
  if (absl::IsDeadlineExceeded(plan.status())) {
    // Some joined when the solve had just stopped; the others have their errors at their limits.
    for (const auto& call : flights_.LandLate(flight)) Proceed(call, Access::kPeek, MayWait::kYes);
    return;
  }
  for (const auto& call : flights_.Land(flight)) Answer(call, plan.status());
}

PlanUpdate PlanningService::Latest(const std::shared_ptr<PlanCall>& call) {
  PlanUpdate update;
  const std::shared_ptr<Flight> flight = flights_.FlightOf(*call);
  if (!flight) return update;
  const FlightNews::Latest latest = flight->news.latest();
  update.progress = latest.progress;
  if (!latest.best || std::exchange(call->shown, latest.best) == latest.best) return update;
  update.plan = AsAnswer(*call, *flight, *latest.best);
  if (!update.plan) return update;
  const Nanos makespan = update.plan->prediction.makespan;
  if (call->shown_makespan && makespan >= *call->shown_makespan) {
    update.plan.reset();
    return update;
  }
  call->shown_makespan = makespan;
  update.plan->stage_vertices = call->problem->stage_vertices;
  return update;
}

std::optional<Plan> PlanningService::AsAnswer(const PlanCall& call, const Flight& flight,
                                              const Plan& plan) {
  const LinkedProblem& solved_under = *flight.problem->costs;
  const LinkedProblem& asked = *call.problem->costs;
  // "Least" means something else to a caller of other overheads or without the link, and a plan that
  // was made without times is no answer to who has some.
  const bool timeless =
      IdealTime(solved_under.problem) == Nanos(0) && IdealTime(asked.problem) > Nanos(0);
  const bool same_question = !timeless && (call.budget || SameMemory(asked, solved_under));
  if (!same_question) return std::nullopt;
  std::optional<Plan> judged = PlanUnder(asked, call.problem->store_all, solved_under, plan,
                                         call.budget.value_or(plan.budget));
  if (!judged) metrics_->PlanRefused();
  return judged;
}

void PlanningService::Distribute(const std::shared_ptr<Flight>& flight, const Plan& plan,
                                 AnswerSource source) {
  for (const auto& call : flights_.Land(flight)) {
    const bool leads = call->id == flight->leader;
    const bool has_time = !plan.search_complete && Clock::now() < call->search_until();
    std::optional<Plan> judged;
    if (!has_time) judged = AsAnswer(*call, *flight, plan);
    if (judged) {
      const bool shared = source == AnswerSource::kSolved && !leads;
      AnswerPlan(call, *std::move(judged), shared ? AnswerSource::kShared : source);
    } else if (leads && !has_time) {
      Answer(call,
             absl::InternalError("the referee refused a plan under the costs it was made for"));
    } else {
      Proceed(call, Access::kPeek, MayWait::kYes);
    }
  }
}

void PlanningService::Cancel(const std::shared_ptr<PlanCall>& call) {
  LeaveFlight(call);
  Answer(call, CallCancelledError());
}

void PlanningService::LeaveFlight(const std::shared_ptr<PlanCall>& call) {
  if (const std::shared_ptr<Flight> abandoned = flights_.Leave(call)) {
    pool_.Withdraw(abandoned->id);
  }
}

absl::Status PlanningService::Accept() {
  switch (open_.TryEnter()) {
    case OpenCalls::Accepted::kYes:
      return absl::OkStatus();
    case OpenCalls::Accepted::kClosed:
      return DrainingError();
    case OpenCalls::Accepted::kTooMany:
      break;
  }
  metrics_->CallShed(Shed::kTooManyCalls);
  return TooManyCallsError(options_.max_open_calls, RetryAfter());
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
  open_.Left();
}

std::chrono::nanoseconds PlanningService::RetryAfter() {
  using std::chrono::nanoseconds;
  const auto drained = std::clamp<nanoseconds>(pool_.Backlog(), std::chrono::milliseconds(100),
                                               std::chrono::seconds(30));
  // Up to half of it more, evenly spread.
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;
  const auto spread = static_cast<int64_t>((++refused_ * kGolden) >> 54);  // of 1024
  return drained + drained / 2048 * spread;
}

bool PlanningService::SubmitBackground(uint64_t id, std::function<void(const StopToken&)> job) {
  return pool_.SubmitBackground(id, [this, job = std::move(job)] { job(background_stop_); });
}

DrainResult PlanningService::Drain(Clock::time_point deadline) {
  const DrainResult result = open_.Drain(deadline);
  Stop();
  return result;
}

void PlanningService::Stop() {
  open_.Close();
  stopping_ = true;
  background_stop_.RequestStop();
  for (const auto& call : flights_.LandAll()) Answer(call, DrainingError());
  intake_.Stop();
  pool_.Stop();
  // A call that was handed back while the pool stopped may have opened one more flight.
  for (const auto& call : flights_.LandAll()) Answer(call, DrainingError());
}

}  // namespace stowage
