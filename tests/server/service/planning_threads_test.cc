// The two kinds of threads: the solver pool and the timer.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "server/runtime/deadline_timer.h"
#include "server/runtime/solver_pool.h"
#include "tests/server/support/growing_deadline.h"

namespace stowage {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// A pool of one thread that is busy until the gate opens; writes down who runs.
struct BusyPool {
  explicit BusyPool(SolverPoolOptions options = {}) : pool(One(options), &metrics) {
    pool.Submit(Job(0, [this] {
      started.set_value();
      gate.get_future().wait();
    }));
    started.get_future().wait();
  }

  static SolverPoolOptions One(SolverPoolOptions options) {
    options.threads = 1;
    return options;
  }

  static SolveJob Job(uint64_t id, std::function<void()> run) {
    SolveJob job;
    job.id = id;
    job.run = std::move(run);
    return job;
  }

  SolveJob Writing(uint64_t id, milliseconds estimate = milliseconds(0),
                   const std::string& tenant = "anybody") {
    SolveJob job = Job(id, [this, id] { order += std::to_string(id); });
    job.estimate = estimate;
    job.measured = true;
    job.account = Account::Of(tenant, "");
    return job;
  }

  // Opens the gate and waits for all.
  std::string Order() {
    std::promise<void> last;
    SolveJob job = Job(1000, [&last] { last.set_value(); });
    job.estimate = std::chrono::minutes(50);
    EXPECT_EQ(pool.Submit(std::move(job)), Admission::kAccepted);
    gate.set_value();
    last.get_future().wait();
    pool.Stop();
    return order;
  }

  NoMetrics metrics;
  std::promise<void> started;
  std::promise<void> gate;
  std::string order;
  SolverPool pool;
};

TEST(SolverPool, EqualJobsRunInOrderAndNoneBeyondTheLimit) {
  SolverPoolOptions options;
  options.queue_limit = 3;
  BusyPool busy(options);
  for (const uint64_t id : {1, 2, 3}) {
    EXPECT_EQ(busy.pool.Submit(busy.Writing(id)), Admission::kAccepted);
  }
  EXPECT_EQ(busy.pool.Submit(busy.Writing(4)), Admission::kQueueFull);
  busy.pool.Withdraw(2);
  EXPECT_EQ(busy.Order(), "13");
}

TEST(SolverPool, ShortJobsPassLongOnesButNotForEver) {
  // The first one is due that long after its submission, the others after it or before.
  EXPECT_TRUE(WithinSomeTime(milliseconds(80), [](milliseconds due) {
    BusyPool busy;
    const Clock::time_point start = Clock::now();
    busy.pool.Submit(busy.Writing(1, due / 4));
    busy.pool.Submit(busy.Writing(2));
    if (Clock::now() - start > due) return false;
    busy.pool.Submit(busy.Writing(3, std::chrono::seconds(500)));
    std::this_thread::sleep_until(Clock::now() + due);
    busy.pool.Submit(busy.Writing(4));
    EXPECT_EQ(busy.Order(), "2143");
    return true;
  }));
}

TEST(SolverPool, AnAccountHasItsShareAndGetsItBack) {
  SolverPoolOptions options;
  options.queue_limit = 7;
  options.share.of_each = 0.25;  // of 7 places and a thread
  BusyPool busy(options);
  EXPECT_EQ(busy.pool.Submit(busy.Writing(1, milliseconds(0), "a")), Admission::kAccepted);
  EXPECT_EQ(busy.pool.Submit(busy.Writing(2, milliseconds(0), "a")), Admission::kAccepted);
  EXPECT_EQ(busy.pool.Submit(busy.Writing(3, milliseconds(0), "a")), Admission::kOverQuota);
  EXPECT_EQ(busy.pool.Submit(busy.Writing(4, milliseconds(0), "b")), Admission::kAccepted);
  busy.pool.Withdraw(1);
  EXPECT_EQ(busy.pool.Submit(busy.Writing(5, milliseconds(0), "a")), Admission::kAccepted);
  EXPECT_EQ(busy.Order(), "245");
}

TEST(SolverPool, OtherLimitsHoldForWhatComes) {
  SolverPoolOptions options;
  options.queue_limit = 1;
  BusyPool busy(options);
  EXPECT_EQ(busy.pool.Submit(busy.Writing(1)), Admission::kAccepted);
  EXPECT_EQ(busy.pool.Submit(busy.Writing(2)), Admission::kQueueFull);
  busy.pool.SetLimits(7, {0.25, 1.0});
  EXPECT_EQ(busy.pool.queue_limit(), 7u);
  EXPECT_EQ(busy.pool.LimitOf(Account::Of("anybody", "")), 2u);
  EXPECT_EQ(busy.pool.Submit(busy.Writing(3)), Admission::kAccepted);
  EXPECT_EQ(busy.pool.Submit(busy.Writing(4)), Admission::kOverQuota);
  EXPECT_EQ(busy.Order(), "13");
}

TEST(SolverPool, AnAccountTakesNoMoreThanItsThreads) {
  NoMetrics metrics;
  SolverPoolOptions options;
  options.threads = 2;
  options.share.of_each = 0.5;
  std::promise<void> gate, other;
  const std::shared_future<void> open = gate.get_future().share();
  std::atomic<int> running{0}, most{0}, done{0};
  SolverPool pool(options, &metrics);
  const auto job = [&](uint64_t id, const std::string& tenant, std::function<void()> run) {
    SolveJob made;
    made.id = id;
    made.account = Account::Of(tenant, "");
    made.run = std::move(run);
    return made;
  };
  for (uint64_t id = 1; id <= 4; ++id) {
    pool.Submit(job(id, "a", [&] {
      most = std::max<int>(most, ++running);
      open.wait();
      --running;
      ++done;
    }));
  }
  // The other thread is there for whoever else comes, at once.
  pool.Submit(job(5, "b", [&] { other.set_value(); }));
  EXPECT_EQ(other.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
  gate.set_value();
  while (done < 4) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_EQ(most, 1);
}

TEST(SolverPool, TheBackgroundComesLastAndEachJobOnce) {
  SolverPoolOptions options;
  options.background_limit = 2;
  BusyPool busy(options);
  std::promise<void> ran;
  EXPECT_TRUE(busy.pool.SubmitBackground(1, [&] { busy.order += "b"; }));
  EXPECT_FALSE(busy.pool.SubmitBackground(1, [] {}));
  EXPECT_TRUE(busy.pool.SubmitBackground(2, [&] { ran.set_value(); }));
  EXPECT_FALSE(busy.pool.SubmitBackground(3, [] {}));
  busy.pool.Submit(busy.Writing(4, std::chrono::seconds(10)));
  busy.pool.Submit(busy.Writing(5));
  busy.gate.set_value();
  ran.get_future().wait();
  busy.pool.Stop();
  EXPECT_EQ(busy.order, "54b");
}

TEST(SolverPool, WaitsAreThoseOfWhatIsDueBefore) {
  BusyPool busy;
  EXPECT_EQ(busy.pool.WaitFor(milliseconds(1)), milliseconds(0));  // nothing measured yet
  busy.pool.Submit(busy.Writing(1, milliseconds(1000)));
  busy.pool.Submit(busy.Writing(2, milliseconds(3000)));
  EXPECT_EQ(busy.pool.WaitFor(milliseconds(10)), milliseconds(0));
  EXPECT_EQ(busy.pool.WaitFor(milliseconds(2000)), milliseconds(1000));
  EXPECT_EQ(busy.pool.Backlog(), milliseconds(4000));
  SolveJob guess = busy.Writing(3, milliseconds(100));
  guess.measured = false;
  busy.pool.Submit(std::move(guess));
  EXPECT_EQ(busy.pool.Backlog(), milliseconds(4000));
  EXPECT_EQ(busy.Order(), "312");
}

TEST(SolverPool, StopDropsWhatIsQueuedAndWaitsForWhatRuns) {
  NoMetrics metrics;
  std::promise<void> started, queued;
  std::atomic<int> done{0};
  SolverPool pool(BusyPool::One({}), &metrics);  // ends first: its jobs read the others
  pool.Submit(BusyPool::Job(1, [&] {
    started.set_value();
    queued.get_future().wait();
    while (pool.Submit(BusyPool::Job(9, [&] { ++done; })) != Admission::kStopped) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    ++done;
  }));
  started.get_future().wait();
  pool.Submit(BusyPool::Job(2, [&] { ++done; }));
  EXPECT_TRUE(pool.SubmitBackground(3, [&] { ++done; }));
  queued.set_value();
  pool.Stop();
  EXPECT_EQ(done, 1);
  EXPECT_EQ(pool.Submit(BusyPool::Job(4, [] {})), Admission::kStopped);
  EXPECT_FALSE(pool.SubmitBackground(5, [] {}));
}

// A timer that is busy until the gate opens.
struct HeldTimer {
  HeldTimer() {
    timer.Schedule(1000, Clock::now(), [this] { gate.get_future().wait(); });
  }

  std::promise<void> gate;
  DeadlineTimer timer;
};

TEST(DeadlineTimer, CallsInOrderOfTimeAndNotBefore) {
  HeldTimer held;
  std::promise<void> last;
  std::string order;
  const Clock::time_point start = Clock::now();
  Clock::time_point first_call;
  held.timer.Schedule(1, start + milliseconds(60), [&] {
    order += "b";
    last.set_value();
  });
  held.timer.Schedule(2, start + milliseconds(20), [&] {
    order += "a";
    first_call = Clock::now();
  });
  held.timer.Schedule(3, start + milliseconds(40), [&] { order += "x"; });
  held.timer.Cancel(3);
  held.timer.Cancel(4);
  held.gate.set_value();
  last.get_future().wait();
  EXPECT_EQ(order, "ab");
  EXPECT_GE(first_call, start + milliseconds(20));
}

TEST(DeadlineTimer, ASecondFunctionOfAnIdReplacesTheFirst) {
  HeldTimer held;
  std::promise<void> last;
  std::string order;
  const Clock::time_point start = Clock::now();
  held.timer.Schedule(1, start + milliseconds(10), [&] { order += "x"; });
  held.timer.Schedule(1, start + milliseconds(20), [&] { order += "a"; });
  held.timer.Schedule(2, start + milliseconds(40), [&] {
    order += "b";
    last.set_value();
  });
  held.gate.set_value();
  last.get_future().wait();
  EXPECT_EQ(order, "ab");
}

TEST(DeadlineTimer, AFunctionMaySchedule) {
  DeadlineTimer timer;
  std::promise<void> second;
  timer.Schedule(1, Clock::now(),
                 [&] { timer.Schedule(2, Clock::now(), [&] { second.set_value(); }); });
  EXPECT_EQ(second.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
}

TEST(DeadlineTimer, TheDestructorDropsWhatIsPending) {
  std::atomic<bool> called{false};
  {
    DeadlineTimer timer;
    timer.Schedule(1, Clock::now() + std::chrono::hours(1), [&] { called = true; });
  }
  EXPECT_FALSE(called);
}

}  // namespace
}  // namespace stowage
