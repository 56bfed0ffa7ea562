#include "server/planning/plan_lookup.h"

#include <gtest/gtest.h>

#include <utility>

namespace stowage {
namespace {

std::shared_ptr<const Plan> Found(int64_t budget, int64_t peak, int64_t makespan) {
  Plan plan;
  plan.status = PlanStatus::kFound;
  plan.budget = Bytes(budget);
  plan.prediction.peak = Bytes(peak);
  plan.prediction.makespan = Nanos(makespan);
  plan.bounds.store_all_makespan = Nanos(50);
  return std::make_shared<const Plan>(plan);
}

std::shared_ptr<const Plan> Without(PlanStatus status, int64_t budget, int64_t least) {
  Plan plan;
  plan.status = status;
  plan.budget = Bytes(budget);
  plan.bounds.least_budget = Bytes(least);
  return std::make_shared<const Plan>(plan);
}

TEST(PlanLookup, APlanServesFromItsPeakToItsBudget) {
  const auto plan = Found(100, 80, 60);
  EXPECT_FALSE(Serves(*plan, Bytes(79)));
  EXPECT_TRUE(Serves(*plan, Bytes(80)));
  EXPECT_TRUE(Serves(*plan, Bytes(100)));
  EXPECT_FALSE(Serves(*plan, Bytes(101)));
}

TEST(PlanLookup, APlanWithoutRecomputeServesEveryLargerBudget) {
  const auto plan = Found(100, 80, 50);
  EXPECT_FALSE(Serves(*plan, Bytes(79)));
  EXPECT_TRUE(Serves(*plan, Bytes(1000000)));
}

TEST(PlanLookup, ProvenInfeasibleServesBelowTheLeastBudget) {
  const auto plan = Without(PlanStatus::kProvenInfeasible, 10, 70);
  EXPECT_TRUE(Serves(*plan, Bytes(0)));
  EXPECT_TRUE(Serves(*plan, Bytes(69)));
  EXPECT_FALSE(Serves(*plan, Bytes(70)));
}

TEST(PlanLookup, NotFoundServesItsOwnBudgetAlone) {
  const auto plan = Without(PlanStatus::kNotFound, 60, 0);
  EXPECT_FALSE(Serves(*plan, Bytes(59)));
  EXPECT_TRUE(Serves(*plan, Bytes(60)));
  EXPECT_FALSE(Serves(*plan, Bytes(61)));
}

TEST(PlanLookup, TheFastestComesFirstAndSchedulesBeforeRefusals) {
  PlanEntry entry;
  entry.plans = {Without(PlanStatus::kNotFound, 90, 0), Found(100, 80, 70), Found(95, 85, 60),
                 Found(70, 60, 55)};
  const auto serving = PlansServing(entry, Bytes(90));
  ASSERT_EQ(serving.size(), 3u);
  EXPECT_EQ(serving[0], entry.plans[2]);
  EXPECT_EQ(serving[1], entry.plans[1]);
  EXPECT_EQ(serving[2], entry.plans[0]);
  EXPECT_TRUE(PlansServing(entry, Bytes(75)).empty());
}

}  // namespace
}  // namespace stowage
