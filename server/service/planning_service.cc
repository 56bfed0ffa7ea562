#include "server/service/planning_service.h"

#include <algorithm>
#include <utility>

#include "server/entries/planning_error.h"
#include "server/entries/reference_costs.h"
#include "server/service/solve_outcome.h"

namespace stowage {
namespace {

// What an answer may take from the solver's thread to the caller.
std::chrono::nanoseconds AnswerMargin(std::chrono::nanoseconds left) {
  constexpr std::chrono::nanoseconds kMost = std::chrono::milliseconds(50);
  return std::clamp<std::chrono::nanoseconds>(left / 20, std::chrono::nanoseconds(0), kMost);
}

IntakeOptions LanesOf(const PlanningOptions& options) {
  IntakeOptions lanes = options.intake;
  lanes.share = options.limits.share;
  return lanes;
}

// What is kept of a request for as long as its call is open.
size_t KeptBytes(const PlanningProblem& problem, const std::optional<BatchRequest>& batches) {
  Bytes kept = MemoryOf(problem);
  if (batches) {
    for (const BatchProfile& measured : batches->model->profiles()) {
      kept += ChargeOf(Instance(measured.profile.problem));
    }
  }
  return static_cast<size_t>(kept.value()) / kMemoryPerRequestByte;
}

}  // namespace

PlanningService::PlanningService(const PlanningOptions& options, PlanStore* store,
                                 const PlanSolver* solver, ServerMetrics* metrics)
    : options_(options),
      metrics_(metrics),
      open_(options.limits.max_open_calls, options.limits.share),
      request_bytes_(static_cast<size_t>(options.request_bytes.value()),
                     static_cast<size_t>(options.request_reserve.value()), options.limits.share,
                     metrics),
      cache_(
          store, metrics,
          [this](const PlanningProblem& problem, const PlanEntry& entry, Bytes budget,
                 const Found& found) {
            refresher_.NoteAnswer(problem, problem.job, entry, budget, found);
          },
          [this](const PlanKey& key, const PlanEntry& entry, const Plan& plan) {
            refresher_.NotePlan(key, entry, plan);
          }),
      solving_(options, &cache_, solver, metrics),
      flights_(options.max_deadline),
      pool_({options.solver_threads, options.limits.queue_limit, options.limits.queue_limit,
             options.limits.share},
            metrics),
      refresher_(
          {options.background, TableLimit(options), options.solver_version, options.lease,
           options.audit, options.tracer, options.trace_share},
          store, solver, metrics,
          [this](uint64_t id, Refresher::Job job) { return SubmitBackground(id, std::move(job)); }),
      intake_(LanesOf(options), metrics) {}

PlanningService::~PlanningService() { Stop(); }

void PlanningService::SetLimits(const PlanningLimits& limits) {
  open_.SetLimit(limits.max_open_calls, limits.share);
  request_bytes_.SetShare(limits.share);
  pool_.SetLimits(limits.queue_limit, limits.share);
  intake_.SetShare(limits.share);
}

absl::StatusOr<CachedPlan> PlanningService::GetPlan(const std::vector<PlanKey>& keys,
                                                    const Budget& budget,
                                                    const TenantScope& scope) {
  size_t next = 0;
  return CatchingBadAlloc(
      [&] { return *cache_.FirstServing(keys, budget, scope, MayWait::kYes, &next); });
}

void PlanningService::GetPlanAsync(const std::vector<PlanKey>& keys, const Budget& budget,
                                   CachedPlanCallback done, const TenantScope& scope,
                                   const Account& account, const TraceScope& trace) {
  size_t next = 0;
  Span looking = trace.Start("store.look");
  if (auto plan = cache_.FirstServing(keys, budget, scope, MayWait::kNo, &next)) {
    looking.End();
    return done(*std::move(plan));
  }
  looking.End();
  const absl::Status deferred =
      Defer(Lane::kLookups, account,
            [this, keys, budget, scope, next, done, trace,
             waiting = trace.StartShared("lane.lookups")](const absl::Status& admitted) mutable {
              if (waiting) waiting->End();
              if (!admitted.ok()) return done(admitted);
              Span look = trace.Start("store.look");
              absl::StatusOr<CachedPlan> plan = CatchingBadAlloc(
                  [&] { return *cache_.FirstServing(keys, budget, scope, MayWait::kYes, &next); });
              look.End();
              done(std::move(plan));
            });
  if (!deferred.ok()) done(deferred);
}

absl::Status PlanningService::Defer(Lane lane, const Account& account, IntakeTask task) {
  // News that are not judged are no call that is turned away.
  const auto shed = [this, lane](Shed why) {
    if (lane != Lane::kJudging) metrics_->CallShed(why);
  };
  switch (intake_.TrySubmit(lane, account, std::move(task))) {
    case FairLane::Taken::kYes:
      return absl::OkStatus();
    case FairLane::Taken::kStopped:
      return DrainingError();
    case FairLane::Taken::kFullOfAccount:
      shed(Shed::kQuota);
      return TenantCallsError(static_cast<int64_t>(intake_.LimitOf(lane, account)), RetryAfter());
    case FairLane::Taken::kFull:
      break;
  }
  shed(Shed::kTooManyCalls);
  return TooManyCallsError(static_cast<int64_t>(options_.intake.queue_limit), RetryAfter());
}

absl::StatusOr<ByteBudget::Hold> PlanningService::HoldRequest(const Account& account,
                                                              RequestUse use, size_t bytes) {
  ByteBudget::Hold hold;
  absl::Status held = BytesStatus(account, request_bytes_.TryHold(account, use, bytes, &hold));
  if (!held.ok()) return held;
  return hold;
}

absl::Status PlanningService::BytesStatus(const Account& account, ByteBudget::Admitted admitted) {
  switch (admitted) {
    case ByteBudget::Admitted::kYes:
      return absl::OkStatus();
    case ByteBudget::Admitted::kTooManyOfAccount:
      metrics_->CallShed(Shed::kQuota);
      return TenantBytesError(request_bytes_.LimitOf(account), RetryAfter());
    case ByteBudget::Admitted::kTooMany:
      break;
  }
  metrics_->CallShed(Shed::kRequestBytes);
  return RequestBytesError(request_bytes_.limit(), RetryAfter());
}

std::shared_ptr<PlanCall> PlanningService::ComputePlan(const ComputeRequest& request,
                                                       ComputeCallback done,
                                                       std::function<void()> changed) {
  return Ask(request, Asked::kPlan, std::move(done), std::move(changed));
}

std::shared_ptr<PlanCall> PlanningService::GetFrontier(const ComputeRequest& request,
                                                       ComputeCallback done) {
  return Ask(request, Asked::kFrontier, std::move(done), nullptr);
}

std::shared_ptr<PlanCall> PlanningService::FitBatches(const ComputeRequest& request,
                                                      const BatchRequest& batches,
                                                      ComputeCallback done) {
  return Ask(request, Asked::kBatches, std::move(done), nullptr, batches);
}

std::shared_ptr<PlanCall> PlanningService::Ask(const ComputeRequest& request, Asked asked,
                                               ComputeCallback done, std::function<void()> changed,
                                               std::optional<BatchRequest> batches) {
  auto call = std::make_shared<PlanCall>(next_call_++,
                                         Account::Of(request.options.tenant, request.identity),
                                         request.deadline, std::move(done));
  call->changed = std::move(changed);
  call->trace = request.trace;
  const Clock::time_point now = Clock::now();
  call->limit = std::min(request.deadline.value_or(now + options_.max_solve_time),
                         now + options_.max_deadline);
  call->margin = AnswerMargin(call->limit - now);
  if (absl::Status accepted = Accept(call->account); !accepted.ok()) {
    call->answered = true;
    call->done(accepted);
    return call;
  }
  For(call, [&] { Open(request, asked, std::move(batches), call); });
  return call;
}

void PlanningService::Open(const ComputeRequest& request, Asked asked,
                           std::optional<BatchRequest> batches,
                           const std::shared_ptr<PlanCall>& call) {
  absl::StatusOr<std::shared_ptr<PlanningProblem>> problem =
      MakePlanningProblem(request.profile, request.options, options_.digest);
  const absl::Status valid = problem.ok() ? ValidateBudget(request.budget) : problem.status();
  if (!valid.ok()) return Answer(call, valid);
  if (request.held) {
    const absl::Status kept =
        BytesStatus(call->account, request.held->TryResize(KeptBytes(**problem, batches)));
    if (!kept.ok()) return Answer(call, kept);
    (*problem)->charge = request.held;
  }
  call->problem = *std::move(problem);
  call->problem->job = JobHash(request.job, request.identity);
  call->problem->identity = IdentityHash(request.identity);
  call->asked = asked;
  call->batches = std::move(batches);
  if (asked == Asked::kPlan) {
    call->least = std::holds_alternative<LeastBudget>(request.budget);
    call->budget = WithoutSolver(request.budget, call->problem->store_all.peak);
  }
  Proceed(call, Access::kLookup, MayWait::kNo);
}

void PlanningService::Proceed(const std::shared_ptr<PlanCall>& call, Access access, MayWait wait) {
  if (!AnswerFromCache(call, access, wait)) {
    if (access == Access::kLookup) WatchLimit(call);
    const absl::Status deferred =
        Defer(Lane::kLookups, call->account,
              [this, call, access,
               waiting = call->trace.StartShared("lane.lookups")](const absl::Status& admitted) {
                if (waiting) waiting->End();
                if (!admitted.ok()) return Answer(call, admitted);
                For(call, [&] { Proceed(call, access, MayWait::kYes); });
              });
    if (!deferred.ok()) Answer(call, deferred);
    return;
  }
  if (call->answered) return;
  if (access == Access::kLookup) WatchLimit(call);
  if (!call->answered) Start(call);
}

bool PlanningService::AnswerFromCache(const std::shared_ptr<PlanCall>& call, Access access,
                                      MayWait wait) {
  if (call->asked == Asked::kBatches) return true;
  Span look = call->trace.Start("store.look");
  if (call->asked == Asked::kFrontier) {
    auto frontier = cache_.FindFrontier(*call->problem, access, wait);
    look.End();
    if (!frontier) return false;
    if (*frontier) {
      Answer(call,
             ComputeAnswer{Plan(), call->problem->key, AnswerSource::kCache, *frontier, nullptr});
    }
    return true;
  }
  if (call->least) {
    const auto least = cache_.FindLeast(*call->problem, wait);
    if (!least) return false;
    if (*least) call->budget = *least;
  }
  const std::optional<Bytes> budget = call->budget.get();
  if (!budget) return true;
  auto plan = cache_.Find(*call->problem, *budget, access, wait);
  if (!plan) return false;
  look.Add("stowage.found", *plan ? "yes" : "no");
  look.End();
  if (!*plan && !flights_.Flies(*call)) {
    *plan = solving_.CutShort(*call->problem, *budget, call->search_until() - Clock::now());
  }
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
                    Defer(Lane::kConversions, late->account,
                          [this, late, flight](const absl::Status& admitted) {
                            if (admitted.ok()) For(late, [&] { AnswerBestSoFar(late, *flight); });
                          })
                        .IgnoreError();
                  });
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
  if (!call.deadline) {
    return SolveTimeError(std::min(options_.max_solve_time, options_.max_deadline));
  }
  return call.limit < *call.deadline ? SolveTimeError(options_.max_deadline) : CallDeadlineError();
}

void PlanningService::Cancel(const std::shared_ptr<PlanCall>& call) {
  if (!DesertFlight(call)) LeaveFlight(call);
  Answer(call, CallCancelledError());
}

absl::Status PlanningService::Accept(const Account& account) {
  switch (open_.TryEnter(account)) {
    case OpenCalls::Accepted::kYes:
      return absl::OkStatus();
    case OpenCalls::Accepted::kClosed:
      return DrainingError();
    case OpenCalls::Accepted::kTooManyOfAccount:
      metrics_->CallShed(Shed::kQuota);
      return TenantCallsError(open_.LimitOf(account), RetryAfter());
    case OpenCalls::Accepted::kTooMany:
      break;
  }
  metrics_->CallShed(Shed::kTooManyCalls);
  return TooManyCallsError(open_.limit(), RetryAfter());
}

void PlanningService::AnswerPlan(const std::shared_ptr<PlanCall>& call, Plan plan,
                                 AnswerSource source) {
  plan.stage_vertices = call->problem->stage_vertices;
  Answer(call, ComputeAnswer{std::move(plan), call->problem->key, source, nullptr, nullptr});
}

void PlanningService::Answer(const std::shared_ptr<PlanCall>& call,
                             absl::StatusOr<ComputeAnswer> answer) {
  if (call->answered.exchange(true)) return;
  call->joined.End();
  timer_.Cancel(call->id);
  const ComputeCallback done = std::move(call->done);
  try {
    done(std::move(answer));
  } catch (const std::bad_alloc&) {
    CatchingBadAlloc([&] {
      done(OutOfMemoryError());
      return absl::OkStatus();
    }).IgnoreError();
  }
  open_.Left(call->account);
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
  return pool_.SubmitBackground(id, [this, job = std::move(job)] {
    try {
      job(background_stop_);
    } catch (const std::bad_alloc&) {
      // Nobody waits for it, and what is done in the background is wanted again.
    }
  });
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
