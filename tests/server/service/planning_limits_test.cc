// Full queue, deadlines, cancellation, drain.
#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <thread>
#include <vector>

#include "server/entries/planning_error.h"
#include "tests/server/service/planning_fixture.h"
#include "tests/server/support/growing_deadline.h"

namespace stowage::testing {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

PlanningOptions OneThread(size_t queue_limit) {
  PlanningOptions options;
  options.solver_threads = 1;
  options.limits.queue_limit = queue_limit;
  return options;
}

TEST(PlanningLimits, AFullQueueRefusesWithATimeToRetryAfter) {
  PlanningFixture fixture(true, OneThread(1));
  fixture.Ask(0, ProfileOfLength(5), kTight);
  ASSERT_TRUE(fixture.solver.WaitUntilStarted(1));
  fixture.Ask(1, ProfileOfLength(6), kTight);
  fixture.Ask(2, ProfileOfLength(7), kTight);
  const absl::Status refused = fixture.answers.WaitFor(2).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_EQ(PlanningReason(refused), "QUEUE_FULL");
  ASSERT_TRUE(PlanningRetryAfter(refused).has_value());
  EXPECT_GE(*PlanningRetryAfter(refused), milliseconds(100));
  EXPECT_EQ(fixture.metrics.Sheds(Shed::kQueueFull), 1);
  EXPECT_EQ(fixture.metrics.queue_depth, 1);
  // Who asks for what is queued already takes no place.
  fixture.Ask(3, ProfileOfLength(6), kTight);
  fixture.solver.Release();
  for (const int i : {0, 1, 3}) EXPECT_TRUE(fixture.answers.WaitFor(i).ok());
}

TEST(PlanningLimits, TooManyOpenCallsAreRefusedAlsoIfTheyWouldShareASolve) {
  PlanningOptions options;
  options.limits.max_open_calls = 2;
  PlanningFixture fixture(true, options);
  fixture.Ask(0, ChainProfile({}), kTight);
  fixture.Ask(1, ChainProfile({}), kTight);
  fixture.Ask(2, ChainProfile({}), kTight);
  const absl::Status refused = fixture.answers.WaitFor(2).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_EQ(PlanningReason(refused), "TOO_MANY_CALLS");
  EXPECT_TRUE(PlanningRetryAfter(refused).has_value());
  EXPECT_EQ(fixture.metrics.Sheds(Shed::kTooManyCalls), 1);
  fixture.solver.Release();
  for (const int i : {0, 1}) EXPECT_TRUE(fixture.answers.WaitFor(i).ok());
  // The places are free again, a moment after the answers.
  const auto patience = Clock::now() + seconds(10);
  while (!fixture.Compute(ChainProfile({}), kTight).ok() && Clock::now() < patience) {
  }
  EXPECT_LT(Clock::now(), patience);
}

TEST(PlanningLimits, OtherLimitsHoldForTheNextCall) {
  PlanningOptions options;
  options.limits.max_open_calls = 1;
  PlanningFixture fixture(true, options);
  fixture.Ask(0, ChainProfile({}), kTight);
  fixture.Ask(1, ChainProfile({}), kTight);
  EXPECT_EQ(PlanningReason(fixture.answers.WaitFor(1).status()), "TOO_MANY_CALLS");
  options.limits.max_open_calls = 2;
  fixture.service->SetLimits(options.limits);
  fixture.Ask(2, ChainProfile({}), kTight);
  fixture.Ask(3, ChainProfile({}), kTight);
  const absl::Status refused = fixture.answers.WaitFor(3).status();
  EXPECT_EQ(PlanningReason(refused), "TOO_MANY_CALLS");
  EXPECT_EQ(PlanningFigures(refused).at("limit"), "2");
  // What is open stays so.
  options.limits.max_open_calls = 1;
  fixture.service->SetLimits(options.limits);
  fixture.solver.Release();
  for (const int i : {0, 2}) EXPECT_TRUE(fixture.answers.WaitFor(i).ok()) << i;
}

// Callers who join one flight take no more of the queue, but each is an open call.
TEST(PlanningLimits, OneTenantHasItsShareOfTheOpenCallsAndNoMore) {
  PlanningOptions options;
  options.limits.max_open_calls = 4;
  options.limits.share.of_each = 0.5;
  PlanningFixture fixture(true, options);
  const auto ask = [&fixture](int index, const std::string& tenant) {
    ComputeRequest request{ChainProfile({}), kTight, KeyOptions(), std::nullopt};
    request.options.tenant = tenant;
    fixture.service->ComputePlan(request, fixture.answers.Of(index));
  };
  for (const int i : {0, 1, 2}) ask(i, "vision");
  const absl::Status refused = fixture.answers.WaitFor(2).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_EQ(PlanningReason(refused), "TENANT_QUOTA");
  EXPECT_TRUE(PlanningRetryAfter(refused).has_value());
  EXPECT_EQ(fixture.metrics.Sheds(Shed::kQuota), 1);
  ask(3, "speech");
  ask(4, "");
  fixture.solver.Release();
  for (const int i : {0, 1, 3, 4}) EXPECT_TRUE(fixture.answers.WaitFor(i).ok()) << i;
  // The tenant's places are free again, a moment after the answers.
  const auto patience = Clock::now() + seconds(10);
  int next = 5;
  do {
    ask(++next, "vision");
  } while (!fixture.answers.WaitFor(next).ok() && Clock::now() < patience);
  EXPECT_LT(Clock::now(), patience);
}

TEST(PlanningLimits, EachSolveGetsItsShareOfTheMemory) {
  PlanningOptions options;
  options.solver_threads = 4;
  options.solver_memory = Bytes(40 << 20);
  PlanningFixture fixture(false, options);
  ASSERT_TRUE(fixture.Compute(ChainProfile({}), kTight).ok());
  EXPECT_EQ(fixture.solver.table_limit(), Bytes(10 << 20));
  options.solver_memory = Bytes(1 << 20);
  PlanningFixture small(false, options);
  ASSERT_TRUE(small.Compute(ChainProfile({}), kTight).ok());
  EXPECT_EQ(small.solver.table_limit(), Bytes(1 << 20));
}

TEST(PlanningLimits, ASolveThatGetsNoMemoryIsAnErrorForItsWaitersAlone) {
  PlanningFixture fixture(true, OneThread(4));
  fixture.Ask(0, ChainProfile({}), kTight);
  ASSERT_TRUE(fixture.solver.WaitUntilStarted(1));
  fixture.Ask(1, ChainProfile({}), kTight);
  fixture.solver.ThrowBadAlloc();
  fixture.solver.Release();
  for (const int i : {0, 1}) {
    const absl::Status status = fixture.answers.WaitFor(i).status();
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_EQ(PlanningReason(status), "OUT_OF_MEMORY");
    EXPECT_FALSE(PlanningRetryAfter(status).has_value());
  }
  EXPECT_EQ(fixture.metrics.Solves(SolveOutcome::kError), 1);
  EXPECT_TRUE(absl::IsResourceExhausted(fixture.Compute(ChainProfile({}), kTight).status()));
}

TEST(PlanningLimits, NoMemoryForACallBeforeItsSolveIsAnErrorForItAlone) {
  bool full = true;
  PlanningOptions options;
  options.digest = [&full](const std::string& canonical) {
    if (full) throw std::bad_alloc();
    return Sha256(canonical);
  };
  PlanningFixture fixture(false, options);
  const absl::Status status = fixture.Compute(ChainProfile({}), kTight).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(PlanningReason(status), "OUT_OF_MEMORY");
  full = false;
  EXPECT_TRUE(fixture.Compute(ChainProfile({}), kTight).ok());
  EXPECT_EQ(fixture.service->Drain(Clock::now() + seconds(10)).abandoned, 0);
}

// An answer's message may be what there is no memory for.
TEST(PlanningLimits, NoMemoryToHandAnAnswerOverIsAnErrorAndLeavesNoCallOpen) {
  PlanningFixture fixture(false);
  const ComputeRequest request{ChainProfile({}), kTight, KeyOptions(), std::nullopt};
  const auto throws_first = [&fixture](int index) {
    return [done = fixture.answers.Of(index)](const absl::StatusOr<ComputeAnswer>& answer) {
      if (answer.ok()) throw std::bad_alloc();
      done(answer);
    };
  };
  fixture.service->ComputePlan(request, throws_first(0));  // solved
  EXPECT_EQ(PlanningReason(fixture.answers.WaitFor(0).status()), "OUT_OF_MEMORY");
  fixture.service->ComputePlan(request, throws_first(1));  // cached
  EXPECT_EQ(PlanningReason(fixture.answers.WaitFor(1).status()), "OUT_OF_MEMORY");
  fixture.service->GetFrontier(request, throws_first(2));
  EXPECT_EQ(PlanningReason(fixture.answers.WaitFor(2).status()), "OUT_OF_MEMORY");
  const DrainResult drained = fixture.service->Drain(Clock::now() + seconds(10));
  EXPECT_EQ(drained.abandoned, 0);
  EXPECT_EQ(fixture.answers.callbacks(), 3u);
}

TEST(PlanningLimits, AnUnknownSolverIsRefusedBeforeTheQueue) {
  PlanningFixture fixture(true);
  KeyOptions options;
  options.solver = "no such solver";
  fixture.service->ComputePlan(ComputeRequest{ChainProfile({}), kTight, options, std::nullopt},
                               fixture.answers.Of(0));
  ASSERT_TRUE(fixture.answers.Has(0));
  EXPECT_TRUE(absl::IsInvalidArgument(fixture.answers.WaitFor(0).status()));
  EXPECT_EQ(fixture.solver.started(), 0);
}

TEST(PlanningLimits, ASolveEndsWhenItsTimeIsUpAndNobodyHasADeadline) {
  EXPECT_TRUE(WithinSomeTime(milliseconds(50), [](milliseconds time) {
    PlanningOptions options;
    options.max_solve_time = time;
    PlanningFixture fixture(true, options);
    fixture.Ask(0, ChainProfile({}), kTight);
    const absl::Status status = fixture.answers.WaitFor(0).status();
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    EXPECT_EQ(PlanningReason(status), "SOLVE_TIME");
    return fixture.solver.started() == 1 && fixture.solver.WaitUntilStopped(1);
  }));
}

TEST(PlanningLimits, ADeadlineOfTheCallerMayBeLongerThanTheServersTime) {
  PlanningOptions options;
  options.max_solve_time = milliseconds(50);
  PlanningFixture fixture(true, options);
  fixture.Ask(0, ChainProfile({}), kTight, Clock::now() + seconds(60));
  fixture.Ask(1, ChainProfile({}), kTight);
  EXPECT_TRUE(absl::IsDeadlineExceeded(fixture.answers.WaitFor(1).status()));
  EXPECT_EQ(fixture.solver.stopped(), 0);
  fixture.solver.Release();
  EXPECT_TRUE(fixture.answers.WaitFor(0).ok());
}

TEST(PlanningLimits, NoDeadlineOfACallerHoldsAThreadForLongerThanTheServerLets) {
  EXPECT_TRUE(WithinSomeTime(milliseconds(50), [](milliseconds time) {
    PlanningOptions options;
    options.max_deadline = time;
    PlanningFixture fixture(true, options);
    fixture.Ask(0, ChainProfile({}), kTight, Clock::now() + std::chrono::hours(1));
    fixture.Ask(1, ProfileOfLength(7), kTight);
    for (const int i : {0, 1}) {
      const absl::Status status = fixture.answers.WaitFor(i).status();
      EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
      EXPECT_EQ(PlanningReason(status), "SOLVE_TIME");
    }
    return fixture.solver.started() == 2 && fixture.solver.WaitUntilStopped(2);
  }));
}

TEST(PlanningLimits, ACallersOwnDeadlineBeforeTheServersIsItsOwn) {
  PlanningOptions options;
  options.max_deadline = std::chrono::hours(1);
  PlanningFixture fixture(true, options);
  fixture.Ask(0, ChainProfile({}), kTight, Clock::now() + milliseconds(20));
  const absl::Status status = fixture.answers.WaitFor(0).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_EQ(PlanningReason(status), "");
}

TEST(PlanningLimits, NorDoCallersThatJoinOneAfterAnother) {
  PlanningOptions options;
  options.solver_threads = 1;
  options.max_deadline = milliseconds(400);
  PlanningFixture fixture(true, options);
  fixture.Ask(0, ChainProfile({}), kTight);
  std::atomic<bool> ended{false};
  std::thread joining([&] {
    for (int i = 1; !ended && i < 1000; ++i) {
      fixture.Ask(i, ChainProfile({}), kTight);
      std::this_thread::sleep_for(milliseconds(20));
    }
  });
  EXPECT_TRUE(fixture.solver.WaitUntilStopped(1)) << "though somebody still joins";
  ended = true;
  joining.join();
}

TEST(PlanningLimits, ACancelledCallGivesItsPlaceInTheQueueBack) {
  PlanningFixture fixture(true, OneThread(1));
  fixture.Ask(0, ProfileOfLength(5), kTight);
  ASSERT_TRUE(fixture.solver.WaitUntilStarted(1));
  const auto queued = fixture.Ask(1, ProfileOfLength(6), kTight);
  fixture.service->Cancel(queued);
  EXPECT_TRUE(absl::IsCancelled(fixture.answers.WaitFor(1).status()));
  fixture.Ask(2, ProfileOfLength(7), kTight);
  fixture.solver.Release();
  EXPECT_TRUE(fixture.answers.WaitFor(2).ok());
  EXPECT_EQ(fixture.solver.started(), 2);
}

TEST(PlanningLimits, ADeadlineThatPassesIsAnsweredPromptlyAndStopsTheSolve) {
  EXPECT_TRUE(WithinSomeTime(milliseconds(50), [](milliseconds time) {
    PlanningFixture fixture(true);
    const auto start = Clock::now();
    fixture.Ask(0, ChainProfile({}), kTight, start + time);
    const absl::Status status = fixture.answers.WaitFor(0).status();
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    EXPECT_GE(Clock::now() - start, time);
    return fixture.solver.started() == 1 && fixture.solver.WaitUntilStopped(1);
  }));
}

TEST(PlanningLimits, EachWaiterHasItsOwnDeadline) {
  EXPECT_TRUE(WithinSomeTime(milliseconds(40), [](milliseconds time) {
    PlanningFixture fixture(true);
    fixture.Ask(0, ChainProfile({}), kTight, Clock::now() + time);
    fixture.Ask(1, ChainProfile({}), kTight, Clock::now() + seconds(60));
    fixture.Ask(2, ChainProfile({}), kTight);
    EXPECT_TRUE(absl::IsDeadlineExceeded(fixture.answers.WaitFor(0).status()));
    if (fixture.metrics.flights_joined < 2) return false;  // it was gone before they came
    EXPECT_FALSE(fixture.answers.Has(1));
    EXPECT_EQ(fixture.solver.stopped(), 0);
    fixture.solver.Release();
    EXPECT_TRUE(fixture.answers.WaitFor(1).ok());
    EXPECT_TRUE(fixture.answers.WaitFor(2).ok());
    return true;
  }));
}

TEST(PlanningLimits, APassedDeadlineStartsNothing) {
  PlanningFixture fixture(false);
  fixture.Ask(0, ChainProfile({}), kTight, Clock::now() - seconds(1));
  EXPECT_TRUE(absl::IsDeadlineExceeded(fixture.answers.WaitFor(0).status()));
  EXPECT_EQ(fixture.solver.started(), 0);
}

TEST(PlanningLimits, ACancelAfterTheAnswerChangesNothing) {
  PlanningFixture fixture(false);
  const auto call = fixture.Ask(0, ChainProfile({}), kTight);
  ASSERT_TRUE(fixture.answers.WaitFor(0).ok());
  fixture.service->Cancel(call);
  fixture.service->Cancel(call);
  EXPECT_EQ(fixture.answers.callbacks(), 1u);
}

TEST(PlanningLimits, DrainRefusesNewCallsAndFinishesOpenOnes) {
  PlanningFixture fixture(true, OneThread(4));
  fixture.Ask(0, ProfileOfLength(5), kTight);
  fixture.Ask(1, ProfileOfLength(6), kTight);
  ASSERT_TRUE(fixture.solver.WaitUntilStarted(1));
  DrainResult result;
  std::thread drain([&] { result = fixture.service->Drain(Clock::now() + seconds(20)); });
  absl::Status refused;
  for (int i = 10; !absl::IsUnavailable(refused) && i < 1000; ++i) {
    const auto call = fixture.Ask(i, ProfileOfLength(5), kTight);
    if (fixture.answers.Has(i)) refused = fixture.answers.WaitFor(i).status();
    fixture.service->Cancel(call);
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_EQ(PlanningReason(refused), "DRAINING");
  fixture.solver.Release();
  drain.join();
  EXPECT_TRUE(fixture.answers.WaitFor(0).ok());
  EXPECT_TRUE(fixture.answers.WaitFor(1).ok());
  EXPECT_GE(result.finished, 2);
  EXPECT_EQ(result.abandoned, 0);
}

TEST(PlanningLimits, DrainGivesUpAtItsDeadline) {
  PlanningFixture fixture(true, OneThread(4));
  fixture.Ask(0, ProfileOfLength(5), kTight);
  fixture.Ask(1, ProfileOfLength(6), kTight);
  ASSERT_TRUE(fixture.solver.WaitUntilStarted(1));
  const DrainResult result = fixture.service->Drain(Clock::now() + milliseconds(50));
  EXPECT_EQ(result.finished, 0);
  EXPECT_EQ(result.ended, 0);
  EXPECT_EQ(result.abandoned, 2);
  EXPECT_EQ(fixture.service->ended_calls(), 2);
  for (const int i : {0, 1}) {
    EXPECT_TRUE(absl::IsUnavailable(fixture.answers.WaitFor(i).status()));
  }
  EXPECT_EQ(fixture.solver.stopped(), 1);
}

TEST(PlanningLimits, TheDestructorAnswersWhatIsOpen) {
  PlanningFixture fixture(true, OneThread(4));
  fixture.Ask(0, ProfileOfLength(5), kTight, Clock::now() + seconds(60));
  fixture.Ask(1, ProfileOfLength(6), kTight, Clock::now() + seconds(60));
  fixture.service.reset();
  EXPECT_EQ(fixture.answers.callbacks(), 2u);
  EXPECT_TRUE(absl::IsUnavailable(fixture.answers.WaitFor(1).status()));
}

TEST(PlanningLimits, EveryCallIsAnsweredOnceWhateverRaces) {
  constexpr int kThreads = 8;
  constexpr int kCalls = 60;
  PlanningFixture fixture(false, OneThread(2));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&fixture, t] {
      for (int i = 0; i < kCalls; ++i) {
        const int index = t * kCalls + i;
        std::optional<Clock::time_point> deadline;
        if (i % 3 == 0) deadline = Clock::now() + std::chrono::microseconds(50 * (i % 7));
        const auto call =
            fixture.Ask(index, ProfileOfLength(3 + index % 5), Bytes(1000 + index % 50), deadline);
        if (i % 4 == 0) fixture.service->Cancel(call);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kThreads * kCalls; ++i) {
    EXPECT_FALSE(absl::IsDataLoss(fixture.answers.WaitFor(i).status())) << i;
  }
  fixture.service->Drain(Clock::now() + seconds(10));
  EXPECT_EQ(fixture.answers.callbacks(), static_cast<size_t>(kThreads * kCalls));
}

}  // namespace
}  // namespace stowage::testing
