#include "solvers/base/stop_token.h"

#include <gtest/gtest.h>

#include <chrono>

namespace stowage {
namespace {

using std::chrono::hours;

TEST(StopToken, SaysWhy) {
  StopToken stop;
  EXPECT_TRUE(stop.Check().ok());
  EXPECT_FALSE(stop.deadline_passed());
  stop.RequestStop();
  EXPECT_TRUE(absl::IsCancelled(stop.Check()));
  const StopToken late(StopToken::Clock::now() - hours(1));
  EXPECT_TRUE(absl::IsDeadlineExceeded(late.Check()));
  StopToken both(StopToken::Clock::now() - hours(1));
  both.RequestStop();
  EXPECT_TRUE(absl::IsCancelled(both.Check()));
}

TEST(StopToken, DeadlinesMoveToLaterTimesOnly) {
  const auto now = StopToken::Clock::now();
  StopToken stop(now - hours(1));
  stop.ExtendDeadline(now - hours(2));
  EXPECT_TRUE(stop.deadline_passed());
  stop.ExtendDeadline(now + hours(1));
  EXPECT_FALSE(stop.deadline_passed());
  stop.ExtendDeadline(now - hours(1));
  EXPECT_FALSE(stop.deadline_passed());
}

TEST(StopToken, CountsLooksAndEndsAtOne) {
  StopToken stop;
  stop.PassDeadlineAtLook(3);
  EXPECT_TRUE(stop.Check().ok());
  EXPECT_FALSE(stop.deadline_passed());
  EXPECT_TRUE(absl::IsDeadlineExceeded(stop.Check()));
  EXPECT_TRUE(stop.deadline_passed());
  EXPECT_EQ(stop.looks(), 4);
}

TEST(StopPoll, LooksAtOnceAndThenAsOftenAsItSays) {
  const StopToken stop;
  StopPoll poll(&stop);
  ASSERT_TRUE(poll.Spend(1).ok());
  EXPECT_EQ(stop.looks(), 1);
  ASSERT_TRUE(poll.Spend(StopPoll::kStepsPerCheck - 1).ok());
  EXPECT_EQ(stop.looks(), 1);
  ASSERT_TRUE(poll.Spend(1).ok());
  EXPECT_EQ(stop.looks(), 2);
}

}  // namespace
}  // namespace stowage
