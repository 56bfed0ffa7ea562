#include "client/cli/plan_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <sstream>

#include "client/cli/ticking_line.h"

namespace stowage {
namespace {

TEST(PlanProgress, SaysThePlanSoFarItsBoundAndTheTimeLeft) {
  Plan best;
  best.prediction.makespan = Nanos(110000000);
  best.bounds.lower_bound = Nanos(100000000);
  EXPECT_EQ(ProgressText({0.5, &best}, std::chrono::milliseconds(57900)),
            "110.0 ms, bound 100.0 ms, gap 10.0%, 57 s left");
  EXPECT_EQ(ProgressText({0, nullptr}, std::chrono::seconds(3)), "3 s left");
  EXPECT_EQ(ProgressText({0, nullptr}, -std::chrono::seconds(3)), "0 s left");
}

TEST(TickingLine, SaysTheTimeAtOnceAndTheShareWhenItIsReported) {
  std::ostringstream out;
  {
    TickingLine line(&out, "asking", CallOptions::Clock::now() + std::chrono::hours(1));
    line.Report(0.25);
    line.Report(0.125);  // falls: left
  }
  EXPECT_THAT(out.str(), ::testing::MatchesRegex(
                             "(\r\033\\[Kasking: [0-9]+ s gone, [0-9]+ s left)*"
                             "(\r\033\\[Kasking 25%: [0-9]+ s gone, [0-9]+ s left)+\r\033\\[K"));
  // Nobody looks: nothing is written, and no thread is there to be waited for.
  TickingLine(nullptr, "asking", CallOptions::Clock::now()).Report(0.5);
}

TEST(TickingLine, SaysTheTimeWithoutAShare) {
  std::ostringstream out;
  { const TickingLine line(&out, "asking", CallOptions::Clock::now() - std::chrono::seconds(1)); }
  EXPECT_THAT(out.str(), ::testing::ContainsRegex("asking: [0-9]+ s gone, 0 s left"));
}

}  // namespace
}  // namespace stowage
