// The two rooms of threads: the solver pool and the timer.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "server/planning/deadline_timer.h"
#include "server/planning/solver_pool.h"

namespace stowage {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

TEST(SolverPool, RunsInOrderAndRefusesBeyondItsLimit) {
  NoMetrics metrics;
  SolverPool pool(1, 2, &metrics);
  std::promise<void> started;
  std::promise<void> gate;
  std::promise<void> last;
  std::string order;
  ASSERT_TRUE(pool.TrySubmit(1, [&] {
    started.set_value();
    gate.get_future().wait();
    order += "1";
  }));
  started.get_future().wait();
  ASSERT_TRUE(pool.TrySubmit(2, [&] { order += "2"; }));
  ASSERT_TRUE(pool.TrySubmit(3, [&] {
    order += "3";
    last.set_value();
  }));
  EXPECT_FALSE(pool.TrySubmit(4, [&] { order += "4"; }));
  pool.Withdraw(2);
  gate.set_value();
  last.get_future().wait();
  pool.Stop();
  EXPECT_EQ(order, "13");
}

TEST(SolverPool, StopDropsWhatIsQueuedAndWaitsForWhatRuns) {
  NoMetrics metrics;
  SolverPool pool(1, 8, &metrics);
  std::promise<void> started;
  std::atomic<int> done{0};
  ASSERT_TRUE(pool.TrySubmit(1, [&] {
    started.set_value();
    std::this_thread::sleep_for(milliseconds(30));
    ++done;
  }));
  started.get_future().wait();
  ASSERT_TRUE(pool.TrySubmit(2, [&] { ++done; }));
  pool.Stop();
  EXPECT_EQ(done, 1);
  EXPECT_FALSE(pool.TrySubmit(3, [] {}));
}

TEST(DeadlineTimer, CallsInOrderOfTimeAndNotBefore) {
  DeadlineTimer timer;
  std::promise<void> last;
  std::string order;
  const Clock::time_point start = Clock::now();
  Clock::time_point first_call;
  timer.Schedule(1, start + milliseconds(60), [&] {
    order += "b";
    last.set_value();
  });
  timer.Schedule(2, start + milliseconds(20), [&] {
    order += "a";
    first_call = Clock::now();
  });
  timer.Schedule(3, start + milliseconds(40), [&] { order += "x"; });
  timer.Cancel(3);
  timer.Cancel(4);
  last.get_future().wait();
  EXPECT_EQ(order, "ab");
  EXPECT_GE(first_call, start + milliseconds(20));
}

TEST(DeadlineTimer, ASecondFunctionOfAnIdReplacesTheFirst) {
  DeadlineTimer timer;
  std::promise<void> last;
  std::string order;
  timer.Schedule(1, Clock::now() + milliseconds(10), [&] { order += "x"; });
  timer.Schedule(1, Clock::now() + milliseconds(20), [&] { order += "a"; });
  timer.Schedule(2, Clock::now() + milliseconds(40), [&] {
    order += "b";
    last.set_value();
  });
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
