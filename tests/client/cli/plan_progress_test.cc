#include "client/cli/plan_progress.h"

#include <gtest/gtest.h>

#include <chrono>

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

}  // namespace
}  // namespace stowage
