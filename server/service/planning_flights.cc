// PlanningService, from the opening of a flight to its landing.
#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "server/entries/frontier_under.h"
#include "server/entries/plan_under.h"
#include "server/entries/planning_error.h"
#include "server/service/planning_service.h"
#include "server/service/solve_outcome.h"

namespace stowage {
namespace {

// Ids of calls and of flights are counted apart.
uint64_t TimerIdOf(const Flight& flight) { return (uint64_t{1} << 63) | flight.id; }

// Where other servers share the lease: their callers wait for a solve that nobody here may come back to.
constexpr std::chrono::seconds kLongestSharedGrace{5};

}  // namespace

void PlanningService::AnswerBestSoFar(const std::shared_ptr<PlanCall>& call, const Flight& flight) {
  if (call->answered) return;
  std::optional<Plan> plan = AsAnswer(*call, flight, *flight.news.latest().best);
  if (!plan) return;
  LeaveFlight(call);
  const bool leads = call->id == flight.leader;
  AnswerPlan(call, *std::move(plan), leads ? AnswerSource::kSolved : AnswerSource::kShared);
}

void PlanningService::Start(const std::shared_ptr<PlanCall>& call) {
  if (stopping_) return Answer(call, DrainingError());
  const FlightTable::Joined joined = flights_.Join(call);
  if (!joined.flight) return;
  if (!joined.created) {
    metrics_->FlightJoined();
    // Who comes late, or back, is shown at once what there is.
    const FlightNews::Latest news = joined.flight->news.latest();
    if (call->changed && (news.best || news.progress > 0)) call->changed();
    return;
  }
  const absl::Status submitted = CatchingBadAlloc([&] { return Submit(*call, joined.flight); });
  if (submitted.ok()) return;
  for (const auto& waiting : flights_.Land(joined.flight)) {
    if (waiting == call || !absl::IsResourceExhausted(submitted)) {
      Answer(waiting, submitted);
    } else {
      // Its deadline may be longer.
      For(waiting, [&] { Proceed(waiting, Access::kPeek, MayWait::kNo); });
    }
  }
}

absl::Status PlanningService::Submit(const PlanCall& call, const std::shared_ptr<Flight>& flight) {
  SolveEstimate estimate = solving_.Estimate(*call.problem, call.budget.get());
  // All budgets or batches take longer than one; how much is not measured.
  if (call.asked != Asked::kPlan) estimate.measured = false;
  if (call.deadline && estimate.measured) {
    const std::chrono::nanoseconds left = call.limit - Clock::now();
    std::chrono::nanoseconds expected = pool_.WaitFor(estimate.time);
    if (!IsAnytime(*call.problem)) expected += estimate.time;
    if (expected > left) {
      flights_.EndAllDeserted();  // for those who try again
      metrics_->CallShed(Shed::kDeadline);
      return DeadlineTooShortError(expected, RetryAfter());
    }
  }
  flight->job = SolveJob{flight->id, nullptr, estimate.time, estimate.measured, call.account};
  switch (Enqueue(flight)) {
    case Admission::kAccepted:
      return absl::OkStatus();
    case Admission::kStopped:
      return DrainingError();
    case Admission::kOverQuota:
      metrics_->CallShed(Shed::kQuota);
      return TenantQuotaError(pool_.LimitOf(call.account), RetryAfter());
    case Admission::kQueueFull:
      break;
  }
  metrics_->CallShed(Shed::kQueueFull);
  return QueueFullError(pool_.queue_limit(), RetryAfter());
}

Admission PlanningService::Enqueue(const std::shared_ptr<Flight>& flight) {
  SolveJob job = flight->job;
  job.run = [this, flight, waiting = flight->trace.StartShared("queue")] {
    if (waiting) waiting->End();
    const absl::Status ran = CatchingBadAlloc([&] {
      Run(flight);
      return absl::OkStatus();
    });
    if (!ran.ok()) Fail(flight, ran);
  };
  const Admission admitted = pool_.Submit(std::move(job));
  // The last of its calls may have left before it was in the queue, where it would keep others from its place.
  if (admitted == Admission::kAccepted && flight->stop.stop_requested()) {
    pool_.Withdraw(flight->id);
  }
  if (pool_.HasWaiting()) flights_.EndAllDeserted();
  return admitted;
}

void PlanningService::Run(const std::shared_ptr<Flight>& flight) {
  if (flight->stop.stop_requested()) return;
  if (flight->asked == Asked::kFrontier) return RunFrontier(flight);
  if (flight->asked == Asked::kBatches) return RunBatches(flight);
  RunPlan(flight);
}

void PlanningService::RunPlan(const std::shared_ptr<Flight>& flight) {
  if (!flight->turn && !LookForPlan(flight)) return;
  const auto tell = [&] {
    for (const auto& watcher : flights_.Watchers(*flight)) watcher->changed();
  };
  flight->solves = true;
  const absl::StatusOr<Plan> plan = solving_.SolvePlan(flight.get(), tell);
  if (!plan.ok()) return Fail(flight, plan.status());
  Distribute(flight, *plan, AnswerSource::kSolved);
}

bool PlanningService::LookForPlan(const std::shared_ptr<Flight>& flight) {
  const absl::StatusOr<FlightLook<Plan>> look = solving_.LookForPlan(flight.get());
  if (!look.ok()) {
    Fail(flight, look.status());
  } else if (look->found) {
    Distribute(flight, *look->found, AnswerSource::kCache);
  } else if (look->waits) {
    Park(flight);
  } else {
    return true;
  }
  return false;
}

bool PlanningService::LookForFrontier(const std::shared_ptr<Flight>& flight) {
  const auto look = solving_.LookForFrontier(flight.get());
  if (!look.ok()) {
    Fail(flight, look.status());
  } else if (look->found) {
    DistributeFrontier(flight, *look->found, AnswerSource::kCache);
  } else if (look->waits) {
    Park(flight);
  } else {
    return true;
  }
  return false;
}

void PlanningService::Park(const std::shared_ptr<Flight>& flight) {
  if (stopping_) return;  // its calls have been answered
  // One whose turn it is, and that finds the queue full, has none.
  constexpr std::chrono::nanoseconds kLeastPause = std::chrono::milliseconds(20);
  const Clock::time_point next = Clock::now() + std::max(flight->wait.pause, kLeastPause);
  timer_.Schedule(TimerIdOf(*flight), next, [this, flight] {
    const auto look = [this, flight](const absl::Status& admitted) {
      if (!admitted.ok()) return;  // stopped
      const absl::Status looked = CatchingBadAlloc([&] {
        LookAgain(flight);
        return absl::OkStatus();
      });
      if (!looked.ok()) Fail(flight, looked);
    };
    const absl::Status handed = CatchingBadAlloc([&] {
      const FairLane::Taken taken = intake_.TrySubmit(Lane::kParked, flight->job.account, look);
      // Where the lane is full it waits on.
      if (taken != FairLane::Taken::kYes && taken != FairLane::Taken::kStopped) Park(flight);
      return absl::OkStatus();
    });
    if (!handed.ok()) Fail(flight, handed);
  });
}

void PlanningService::LookAgain(const std::shared_ptr<Flight>& flight) {
  if (flight->stop.stop_requested()) return;
  if (const absl::Status late = flight->stop.Check(); !late.ok()) return Fail(flight, late);
  const bool solves =
      flight->asked == Asked::kFrontier ? LookForFrontier(flight) : LookForPlan(flight);
  if (!solves) return;
  // The solver thread takes the lease anew: others may solve while this flight is in the queue, and who leaves a queued
  // flight must not have to give a lease back.
  flight->turn.reset();
  switch (Enqueue(flight)) {
    case Admission::kAccepted:
    case Admission::kStopped:
      return;
    case Admission::kQueueFull:
    case Admission::kOverQuota:
      Park(flight);
  }
}

void PlanningService::RunBatches(const std::shared_ptr<Flight>& flight) {
  absl::StatusOr<BatchFit> fit = solving_.BatchesFor(*flight);
  if (!fit.ok()) return Fail(flight, fit.status());
  const auto shared = std::make_shared<const BatchFit>(*std::move(fit));
  for (const auto& call : flights_.Land(flight)) {
    Answer(call, ComputeAnswer{Plan(), call->problem->key, AnswerSource::kSolved, nullptr, shared});
  }
}

void PlanningService::RunFrontier(const std::shared_ptr<Flight>& flight) {
  if (!flight->turn && !LookForFrontier(flight)) return;
  const auto frontier = solving_.SolveFrontier(flight.get(), [] {});
  if (!frontier.ok()) return Fail(flight, frontier.status());
  DistributeFrontier(flight, *frontier, AnswerSource::kSolved);
}

void PlanningService::DistributeFrontier(const std::shared_ptr<Flight>& flight,
                                         const std::shared_ptr<const Frontier>& frontier,
                                         AnswerSource source) {
  for (const auto& call : flights_.Land(flight)) {
    For(call, [&] { AnswerFrontier(call, *flight, frontier, source); });
  }
}

void PlanningService::AnswerFrontier(const std::shared_ptr<PlanCall>& call, const Flight& flight,
                                     const std::shared_ptr<const Frontier>& frontier,
                                     AnswerSource source) {
  const bool leads = call->id == flight.leader;
  const bool has_time = !frontier->info().search_complete && Clock::now() < call->search_until();
  if (has_time) return Proceed(call, Access::kPeek, MayWait::kYes);
  const auto own =
      leads ? frontier : FrontierUnder(*call->problem->costs, *flight.problem->costs, frontier);
  if (!own) return Proceed(call, Access::kPeek, MayWait::kYes);
  const bool shared = source == AnswerSource::kSolved && !leads;
  Answer(call, ComputeAnswer{Plan(), call->problem->key, shared ? AnswerSource::kShared : source,
                             own, nullptr});
}

void PlanningService::Fail(const std::shared_ptr<Flight>& flight, const absl::Status& status) {
  if (absl::IsDeadlineExceeded(status)) {
    // Some joined when the solve had just stopped; the others have their errors at their limits.
    for (const auto& call : flights_.LandLate(flight)) {
      For(call, [&] { Proceed(call, Access::kPeek, MayWait::kYes); });
    }
    return;
  }
  for (const auto& call : flights_.Land(flight)) Answer(call, status);
}

PlanUpdate PlanningService::Latest(const std::shared_ptr<PlanCall>& call) {
  PlanUpdate update;
  if (call->problem) update.key = call->problem->key;
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
  const Instance& solved_under = *flight.problem->costs;
  const Instance& asked = *call.problem->costs;
  // "Least" means something else to a caller of other overheads or without the link, and a plan that
  // was made without times is no answer to who has some.
  const bool timeless =
      IdealTime(solved_under.problem()) == Nanos(0) && IdealTime(asked.problem()) > Nanos(0);
  const std::optional<Bytes> budget = call.budget.get();
  const bool same_question = !timeless && (budget || SameMemory(asked, solved_under));
  if (!same_question) return std::nullopt;
  std::optional<Plan> judged =
      PlanUnder(asked, call.problem->store_all, solved_under, plan, budget.value_or(plan.budget));
  if (!judged) metrics_->PlanRefused();
  return judged;
}

void PlanningService::Distribute(const std::shared_ptr<Flight>& flight, const Plan& plan,
                                 AnswerSource source) {
  for (const auto& call : flights_.Land(flight)) {
    For(call, [&] { AnswerShare(call, *flight, plan, source); });
  }
}

void PlanningService::AnswerShare(const std::shared_ptr<PlanCall>& call, const Flight& flight,
                                  const Plan& plan, AnswerSource source) {
  const bool leads = call->id == flight.leader;
  const bool has_time = !plan.search_complete && Clock::now() < call->search_until();
  std::optional<Plan> judged;
  if (!has_time) judged = AsAnswer(*call, flight, plan);
  if (judged) {
    const bool shared = source == AnswerSource::kSolved && !leads;
    AnswerPlan(call, *std::move(judged), shared ? AnswerSource::kShared : source);
  } else if (leads && !has_time) {
    Answer(call,
           absl::InternalError("the evaluator refused a plan under the costs it was made for"));
  } else {
    Proceed(call, Access::kPeek, MayWait::kYes);
  }
}

void PlanningService::LeaveFlight(const std::shared_ptr<PlanCall>& call) {
  if (const std::shared_ptr<Flight> abandoned = flights_.Leave(call)) {
    pool_.Withdraw(abandoned->id);
  }
}

bool PlanningService::DesertFlight(const std::shared_ptr<PlanCall>& call) {
  const std::shared_ptr<Flight> flight = flights_.FlightOf(*call);
  if (!call->changed || !flight || !flight->solves) return false;
  const std::shared_ptr<Flight> deserted = flights_.Desert(call);
  if (!deserted) return true;  // others wait for it
  if (!deserted->solves) {     // another one, since that one has just landed
    flights_.EndDeserted(deserted);
    pool_.Withdraw(deserted->id);
    return true;
  }
  std::chrono::nanoseconds grace = options_.watch_grace;
  if (options_.lease != nullptr)
    grace = std::min<std::chrono::nanoseconds>(grace, kLongestSharedGrace);
  // Nothing else has this timer now: a flight that solves waits for no other server.
  const absl::Status timed = CatchingBadAlloc([&] {
    timer_.Schedule(TimerIdOf(*deserted), Clock::now() + grace,
                    [this, weak = std::weak_ptr<Flight>(deserted)] {
                      if (const auto left = weak.lock()) flights_.EndDeserted(left);
                    });
    return absl::OkStatus();
  });
  // What waits already has not found this one when it came.
  if (!timed.ok() || stopping_ || pool_.HasWaiting()) flights_.EndAllDeserted();
  return true;
}

}  // namespace stowage
