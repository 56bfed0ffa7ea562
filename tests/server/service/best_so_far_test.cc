// A search that has found something has an answer for whoever cannot wait for its end.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "server/entries/plan_entry.h"
#include "server/entries/planning_error.h"
#include "server/service/flight_news.h"
#include "server/service/unfinished_plans.h"
#include "tests/server/service/planning_fixture.h"
#include "tests/server/support/forwarding_store.h"
#include "tests/server/support/growing_deadline.h"

namespace stowage::testing {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A schedule within kTight.
Schedule TightSchedule() { return MakePlan(ChainProfile({}), kTight, PlanOptions())->schedule; }

TEST(BestSoFar, WhatTheDeadlineCutShortIsAnsweredInTimeAndNotKept) {
  EXPECT_TRUE(WithinSomeTime(milliseconds(300), [](milliseconds time) {
    PlanningFixture fixture(true);
    fixture.solver.AnswerAtDeadline();
    fixture.Ask(0, ChainProfile({}), kTight, Clock::now() + time);
    const auto answer = fixture.answers.WaitFor(0);
    if (absl::IsDeadlineExceeded(answer.status())) return false;
    EXPECT_TRUE(answer.ok()) << answer.status();
    if (!answer.ok()) return true;
    EXPECT_FALSE(answer->plan.search_complete);
    EXPECT_LE(answer->plan.prediction.peak, kTight);
    EXPECT_EQ(fixture.store.stats().entries, 0);
    fixture.solver.Release();
    const auto complete = fixture.Compute(ChainProfile({}), kTight);
    EXPECT_TRUE(complete.ok() && complete->source == AnswerSource::kSolved) << complete.status();
    EXPECT_EQ(fixture.store.stats().entries, 1);
    return true;
  }));
}

TEST(BestSoFar, AServersOwnBoundIsSuchADeadline) {
  EXPECT_TRUE(WithinSomeTime(milliseconds(200), [](milliseconds time) {
    PlanningOptions options;
    options.max_solve_time = time;
    PlanningFixture fixture(true, options);
    fixture.solver.AnswerAtDeadline();
    const auto answer = fixture.Compute(ChainProfile({}), kTight);
    if (absl::IsDeadlineExceeded(answer.status())) return false;
    EXPECT_TRUE(answer.ok() && !answer->plan.search_complete) << answer.status();
    return true;
  }));
}

TEST(BestSoFar, ALaterCallerMovesTheDeadlineAndTheEarlierOneGetsWhatThereIs) {
  EXPECT_TRUE(WithinSomeTime(milliseconds(400), [](milliseconds time) {
    PlanningFixture fixture(true);
    fixture.solver.AnswerAtDeadline();
    fixture.solver.TellOf(TightSchedule());
    fixture.Ask(0, ChainProfile({}), kTight, Clock::now() + time);
    fixture.Ask(1, ChainProfile({}), kTight, Clock::now() + seconds(60));
    const auto early = fixture.answers.WaitFor(0);
    if (absl::IsDeadlineExceeded(early.status())) return false;
    EXPECT_TRUE(early.ok()) << early.status();
    if (fixture.metrics.flights_joined == 0 || !early.ok()) return false;
    EXPECT_FALSE(early->plan.search_complete);
    EXPECT_LE(early->plan.prediction.peak, kTight);
    EXPECT_EQ(fixture.solver.stopped(), 0);
    fixture.solver.Release();
    const auto late = fixture.answers.WaitFor(1);
    EXPECT_TRUE(late.ok() && late->plan.search_complete) << late.status();
    EXPECT_TRUE(late.ok() && late->source == AnswerSource::kShared);
    EXPECT_EQ(fixture.solver.started(), 1);
    return true;
  }));
}

TEST(BestSoFar, WithoutAPlanADeadlineIsAnErrorAtTheDeadlineAndNotBefore) {
  EXPECT_TRUE(WithinSomeTime(milliseconds(200), [](milliseconds time) {
    PlanningFixture fixture(true);
    const auto deadline = Clock::now() + time;
    fixture.Ask(0, ChainProfile({}), kTight, deadline);
    EXPECT_TRUE(absl::IsDeadlineExceeded(fixture.answers.WaitFor(0).status()));
    EXPECT_GE(Clock::now(), deadline);
    return fixture.solver.started() == 1 && fixture.solver.WaitUntilStopped(1);
  }));
}

TEST(BestSoFar, WhatTheEvaluatorRefusesIsNoPlan) {
  PlanningFixture fixture(true);
  fixture.solver.TellOf(Instance(ChainProfile({})).store_all_schedule());  // over the budget
  fixture.Ask(0, ChainProfile({}), kTight, Clock::now() + milliseconds(150));
  EXPECT_TRUE(absl::IsDeadlineExceeded(fixture.answers.WaitFor(0).status()));
}

TEST(BestSoFar, ItIsJudgedUnderTheCallersOwnCosts) {
  EXPECT_TRUE(WithinSomeTime(milliseconds(150), [](milliseconds time) {
    PlanningFixture fixture(true);
    fixture.solver.TellOf(TightSchedule());
    fixture.Ask(0, ChainProfile({}), kTight);
    EXPECT_TRUE(fixture.solver.WaitUntilStarted(1));
    ProfileShape heavy;
    heavy.overhead = 200;
    fixture.Ask(1, ChainProfile(heavy), kTight, Clock::now() + time);
    ProfileShape slow;
    slow.forward_time = 1000;
    fixture.Ask(2, ChainProfile(slow), kTight, Clock::now() + time);
    EXPECT_TRUE(absl::IsDeadlineExceeded(fixture.answers.WaitFor(1).status()));
    const auto judged = fixture.answers.WaitFor(2);
    fixture.solver.Release();
    EXPECT_TRUE(fixture.answers.WaitFor(0).ok());
    if (absl::IsDeadlineExceeded(judged.status())) return false;
    EXPECT_TRUE(judged.ok()) << judged.status();
    if (!judged.ok()) return true;
    EXPECT_GT(judged->plan.prediction.makespan, Nanos(6000));
    return true;
  }));
}

// Of a search that was ended the next one begins with what it had found.
struct UnfinishedSearch {
  // One thread: a flight begins when the one before it has ended.
  static PlanningOptions OneThread() {
    PlanningOptions options;
    options.solver_threads = 1;
    return options;
  }

  // Asks as a watcher, of a solver that finds nothing itself, and waits until there is news.
  std::optional<Plan> ShownAtOnce() {
    fixture.solver.TellOf(Instance(ChainProfile({})).store_all_schedule());  // over the budget
    std::promise<void> told;
    std::atomic<bool> once{false};
    const auto call = fixture.service->ComputePlan(
        ComputeRequest{ChainProfile({}), kTight, KeyOptions(), std::nullopt}, fixture.answers.Of(9),
        [&] {
          if (!once.exchange(true)) told.set_value();
        });
    told.get_future().wait();
    std::optional<Plan> plan = fixture.service->Latest(call).plan;
    fixture.solver.Release();
    EXPECT_TRUE(fixture.answers.WaitFor(9)->plan.search_complete);
    return plan;
  }

  PlanningFixture fixture{true, OneThread()};
};

TEST(Unfinished, ByADeadline) {
  EXPECT_TRUE(WithinSomeTime(milliseconds(300), [](milliseconds time) {
    UnfinishedSearch search;
    search.fixture.solver.TellOf(TightSchedule());
    search.fixture.Ask(0, ChainProfile({}), kTight, Clock::now() + time);
    const auto first = search.fixture.answers.WaitFor(0);
    if (absl::IsDeadlineExceeded(first.status())) return false;
    EXPECT_TRUE(first.ok()) << first.status();
    if (!first.ok()) return true;
    EXPECT_FALSE(first->plan.search_complete);
    const std::optional<Plan> next = search.ShownAtOnce();
    EXPECT_TRUE(next.has_value() && next->schedule == first->plan.schedule);
    return true;
  }));
}

TEST(Unfinished, BecauseEverybodyLeft) {
  UnfinishedSearch search;
  search.fixture.solver.TellOf(TightSchedule());
  const auto lost = search.fixture.Ask(0, ChainProfile({}), kTight);
  ASSERT_TRUE(search.fixture.solver.WaitUntilStarted(1));
  search.fixture.service->Cancel(lost);
  const std::optional<Plan> next = search.ShownAtOnce();
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->schedule, TightSchedule());
  EXPECT_EQ(search.fixture.solver.started(), 2);
}

TEST(CutShort, AnswersAtOnceWhoAllowsNoMoreTimeAndIsSearchedOnForWhoAllowsMore) {
  EXPECT_TRUE(WithinSomeTime(milliseconds(300), [](milliseconds time) {
    PlanningFixture fixture(true);
    fixture.solver.AnswerAtDeadline();
    fixture.Ask(0, ChainProfile({}), kTight, Clock::now() + time);
    const auto first = fixture.answers.WaitFor(0);
    if (absl::IsDeadlineExceeded(first.status())) return false;
    EXPECT_TRUE(first.ok() && !first->plan.search_complete) << first.status();
    if (!first.ok()) return true;
    fixture.Ask(1, ChainProfile({}), kTight, Clock::now() + time);
    if (!fixture.answers.Has(1)) return false;  // the first search began late, and had less time
    const auto again = fixture.answers.WaitFor(1);
    EXPECT_TRUE(again.ok()) << again.status();
    if (!again.ok()) return true;
    EXPECT_EQ(again->source, AnswerSource::kCache);
    EXPECT_EQ(again->plan.schedule, first->plan.schedule);
    EXPECT_EQ(again->plan.bounds.lower_bound, first->plan.bounds.lower_bound);
    EXPECT_FALSE(again->plan.search_complete);
    EXPECT_EQ(fixture.solver.started(), 1);

    fixture.Ask(2, ChainProfile({}), kTight, Clock::now() + 10 * time);
    EXPECT_TRUE(fixture.solver.WaitUntilStarted(2));
    // Nor is that search left alone by those who come meanwhile, whatever their time.
    fixture.Ask(4, ChainProfile({}), kTight, Clock::now() + time);
    EXPECT_FALSE(fixture.answers.Has(4));
    EXPECT_EQ(fixture.metrics.flights_joined, 1);
    fixture.solver.Release();
    EXPECT_TRUE(fixture.answers.WaitFor(4).ok());
    const auto longer = fixture.answers.WaitFor(2);
    EXPECT_TRUE(longer.ok() && longer->plan.search_complete) << longer.status();
    EXPECT_TRUE(longer.ok() && longer->source == AnswerSource::kSolved);
    // From now on it is the answer, whatever the time.
    fixture.Ask(3, ChainProfile({}), kTight, Clock::now() + time);
    const auto kept = fixture.answers.WaitFor(3);
    EXPECT_TRUE(kept.ok() && kept->plan.search_complete) << kept.status();
    EXPECT_EQ(fixture.solver.started(), 2);
    return true;
  }));
}

TEST(CutShort, AnswersNobodyOnceItWasDeleted) {
  class DeletingStore final : public ForwardingStore {
   public:
    using ForwardingStore::ForwardingStore;
    int64_t DeletedUpTo(const PlanKey&) override { return deleted_up_to; }

    std::atomic<int64_t> deleted_up_to{0};
  };
  EXPECT_TRUE(WithinSomeTime(milliseconds(300), [](milliseconds time) {
    MemoryPlanStore memory(Bytes(64 << 20));
    DeletingStore store(Borrowed(&memory));
    CountingMetrics metrics;
    FakeSolver solver(true);
    Answers answers;
    PlanningService service(PlanningOptions(), &store, &solver, &metrics);
    const auto ask = [&](int index, milliseconds allowed) {
      const ComputeRequest request{ChainProfile({}), kTight, KeyOptions(), Clock::now() + allowed};
      service.ComputePlan(request, answers.Of(index));
    };
    solver.AnswerAtDeadline();
    ask(0, time);
    const auto first = answers.WaitFor(0);
    if (absl::IsDeadlineExceeded(first.status())) return false;
    EXPECT_TRUE(first.ok()) << first.status();
    store.deleted_up_to = LastGenerationByNow(0);
    ask(1, time);
    if (!answers.Has(1)) {
      EXPECT_TRUE(solver.WaitUntilStarted(2));
      return true;
    }
    // Where the first search took longer than it should have, the second one is expected to come too late.
    const absl::Status shed = answers.WaitFor(1).status();
    EXPECT_FALSE(shed.ok());
    return shed.ok();
  }));
}

// Its first search is cut short at once, with the plan for the budget. The next one comes to its end, with one for less.
class WorseSecondSearch final : public PlanSolver {
 public:
  absl::StatusOr<Bytes> Resolve(const Instance& instance, const Budget& budget,
                                const PlanOptions& options) const override {
    return ResolveBudget(instance, budget, options);
  }
  absl::StatusOr<Plan> Solve(const Instance& instance, Bytes budget,
                             const PlanOptions& options) const override {
    const bool is_first = searches++ == 0;
    absl::StatusOr<Plan> plan =
        MakePlan(instance, is_first ? budget : LeastPeak(ChainProfile({})), options);
    if (!plan.ok()) return plan;
    plan->budget = budget;
    plan->search_complete = !is_first;
    return plan;
  }
  absl::StatusOr<Frontier> SolveFrontier(const Instance& instance,
                                         const PlanOptions& options) const override {
    return MakeFrontier(instance, options);
  }

  mutable std::atomic<int> searches{0};
};

TEST(CutShort, StaysTheAnswerWhereTheSearchAfterItEndsWithASlowerPlan) {
  const Plan better = *MakePlan(ChainProfile({}), kTight, PlanOptions());
  const Plan worse = *MakePlan(ChainProfile({}), LeastPeak(ChainProfile({})), PlanOptions());
  ASSERT_GT(worse.prediction.makespan, better.prediction.makespan);
  MemoryPlanStore store(Bytes(64 << 20));
  CountingMetrics metrics;
  WorseSecondSearch solver;
  Answers answers;
  PlanningService service(PlanningOptions(), &store, &solver, &metrics);
  for (const AnswerSource source : {AnswerSource::kSolved, AnswerSource::kCache}) {
    const int index = static_cast<int>(source);
    service.ComputePlan(ComputeRequest{ChainProfile({}), kTight, KeyOptions(), std::nullopt},
                        answers.Of(index));
    const auto answer = answers.WaitFor(index);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->source, source);
    EXPECT_EQ(answer->plan.schedule, better.schedule);
    EXPECT_TRUE(answer->plan.search_complete);
    EXPECT_EQ(solver.searches, 2);
  }
}

// A search that is resumed tells of plans that are no faster: they count as looked at, too.
TEST(FlightNews, APlanThatIsNotFasterIsFollowedByAPauseAsWell) {
  FlightNews news;
  const auto plan = std::make_shared<const Plan>();
  EXPECT_TRUE(news.Found(plan));
  const auto pauses = [&] {
    while (!news.WantsPlan()) std::this_thread::yield();
    EXPECT_FALSE(news.Found(plan));
    return !news.WantsPlan();  // unless this thread was held up for all of the pause
  };
  bool paused = false;
  for (int attempt = 0; attempt < 50 && !paused; ++attempt) paused = pauses();
  EXPECT_TRUE(paused);
}

std::shared_ptr<PlanningProblem> ProblemOf(int64_t forward_time, bool timed = true,
                                           const std::string& tenant = "") {
  ProfileShape shape;
  shape.forward_time = forward_time;
  shape.timed = timed;
  KeyOptions options;
  options.tenant = tenant;
  return *MakePlanningProblem(ChainProfile(shape), options, Sha256);
}

TEST(UnfinishedPlans, AreOfOneBudgetAndJudgedUnderTheCostsOfWhoAsks) {
  UnfinishedPlans plans(Bytes(1 << 20));
  const auto problem = ProblemOf(100);
  const Plan plan = *MakePlan(ChainProfile({}), kTight, PlanOptions());
  plans.Keep(*problem, kTight, {plan});
  EXPECT_FALSE(plans.Find(*problem, kTight + Bytes(1)).has_value());
  const auto slower = ProblemOf(1000);
  ASSERT_EQ(slower->key, problem->key);
  const std::optional<UnfinishedPlan> judged = plans.Find(*slower, kTight);
  ASSERT_TRUE(judged.has_value());
  EXPECT_FALSE(judged->plan.search_complete);
  EXPECT_GT(judged->plan.prediction.makespan, plan.prediction.makespan);
  plans.Drop(*problem, kTight);
  EXPECT_FALSE(plans.Find(*problem, kTight).has_value());
}

TEST(UnfinishedPlans, AreFreshUnderCostsLikeThoseTheyWereFoundUnder) {
  UnfinishedPlans plans(Bytes(1 << 20));
  const Plan plan = *MakePlan(ChainProfile({}), kTight, PlanOptions());
  const auto timed = ProblemOf(10), timeless = ProblemOf(10, false);
  ASSERT_EQ(timed->key, timeless->key);
  plans.Keep(*timed, kTight, {plan, seconds(3), 7});
  const auto same = plans.Find(*timed, kTight);
  ASSERT_TRUE(same.has_value());
  EXPECT_TRUE(same->fresh);
  EXPECT_EQ(same->searched, seconds(3));
  EXPECT_EQ(same->begun, 7);
  // Without times any schedule that fits is as good as another.
  plans.Keep(*timeless, kTight, {*MakePlan(*timeless->costs, kTight, PlanOptions())});
  EXPECT_TRUE(plans.Find(*timeless, kTight)->fresh);
  const auto of_timeless = plans.Find(*timed, kTight);
  EXPECT_TRUE(of_timeless.has_value() && !of_timeless->fresh);
}

TEST(UnfinishedPlans, TheOldestGoFirst) {
  const auto problem = ProblemOf(100);
  const Plan plan = *MakePlan(ChainProfile({}), kTight, PlanOptions());
  UnfinishedPlans plans(Bytes(64 << 10));
  const auto is_kept = [&](int64_t budget) {
    return plans.Find(*problem, Bytes(budget)).has_value();
  };
  for (int64_t budget = 1500; budget < 1700; ++budget) plans.Keep(*problem, Bytes(budget), {plan});
  EXPECT_FALSE(is_kept(1500));
  EXPECT_TRUE(is_kept(1699));
  UnfinishedPlans small(Bytes(10));
  small.Keep(*problem, kTight, {plan});
  EXPECT_FALSE(small.Find(*problem, kTight).has_value());
}

TEST(UnfinishedPlans, ATenantPushesOutNothingThatAnotherHoldsWithinItsShare) {
  const Plan plan = *MakePlan(ChainProfile({}), kTight, PlanOptions());
  const auto calm = ProblemOf(100, true, "calm"), busy = ProblemOf(100, true, "busy");
  UnfinishedPlans plans(Bytes(64 << 10));
  plans.Keep(*calm, Bytes(1500), {plan});
  plans.Keep(*calm, Bytes(1501), {plan});
  for (int64_t budget = 1500; budget < 1700; ++budget) plans.Keep(*busy, Bytes(budget), {plan});
  EXPECT_TRUE(plans.Find(*calm, Bytes(1500)).has_value());
  EXPECT_TRUE(plans.Find(*calm, Bytes(1501)).has_value());
  EXPECT_FALSE(plans.Find(*busy, Bytes(1500)).has_value());
  EXPECT_TRUE(plans.Find(*busy, Bytes(1699)).has_value());
}

TEST(UnfinishedPlans, AnIdentityWithoutATenantHasAShareOfItsOwn) {
  const Plan plan = *MakePlan(ChainProfile({}), kTight, PlanOptions());
  PlanningProblem calm = *ProblemOf(100), busy = calm;
  calm.identity = 1;
  busy.identity = 2;
  UnfinishedPlans plans(Bytes(64 << 10));
  plans.Keep(calm, Bytes(1500), {plan});
  for (int64_t budget = 1501; budget < 1700; ++budget) plans.Keep(busy, Bytes(budget), {plan});
  EXPECT_TRUE(plans.Find(calm, Bytes(1500)).has_value());
  EXPECT_FALSE(plans.Find(busy, Bytes(1501)).has_value());
  EXPECT_TRUE(plans.Find(busy, Bytes(1699)).has_value());
}

TEST(UnfinishedPlans, WhatIsFoundAnewIsStillWhoseItWas) {
  const Plan plan = *MakePlan(ChainProfile({}), kTight, PlanOptions());
  PlanningProblem first = *ProblemOf(100), next = first;
  first.identity = 1;
  next.identity = 2;
  UnfinishedPlans plans(Bytes(64 << 10));
  plans.Keep(first, Bytes(1500), {plan, seconds(1)});
  plans.Keep(next, Bytes(1500), {plan, seconds(2)});
  for (int64_t budget = 1501; budget < 1700; ++budget) plans.Keep(next, Bytes(budget), {plan});
  const auto kept = plans.Find(first, Bytes(1500));
  ASSERT_TRUE(kept.has_value());
  EXPECT_EQ(kept->searched, seconds(2));
  EXPECT_FALSE(plans.Find(next, Bytes(1501)).has_value());
}

}  // namespace
}  // namespace stowage::testing
