// Where memory runs out in the middle of something, it has been done or not, and what comes after it goes on.
#include <gtest/gtest.h>

#include <string>

#include "server/rpc/change_ledger.h"
#include "server/service/unfinished_plans.h"
#include "tests/server/support/asked.h"
#include "tests/server/support/failing_allocations.h"

namespace stowage::testing {
namespace {

TEST(OutOfMemory, WhatUnfinishedPlansHadNoRoomForHasNoPlaceInTheirOrder) {
  const Asked problem = ProblemOf(ProfileShape());
  const Plan plan = *MakePlan(ChainProfile({}), Bytes(1500), PlanOptions());
  bool ran_out = true;
  int after = 0;
  for (; ran_out; ++after) {
    UnfinishedPlans plans(Bytes(64 << 10));
    ran_out = RunsOut(after, [&] { plans.Keep(*problem, Bytes(1499), {plan}); });
    // More than there is room for: the oldest go.
    for (int64_t budget = 1500; budget < 1700; ++budget)
      plans.Keep(*problem, Bytes(budget), {plan});
    EXPECT_FALSE(plans.Find(*problem, Bytes(1500)).has_value());
    EXPECT_TRUE(plans.Find(*problem, Bytes(1699)).has_value());
  }
  EXPECT_GT(after, 1);
}

TEST(OutOfMemory, AChangeIsMadeOnceAndNobodyWaitsForOneThatIsNot) {
  const std::string caller(100, 'c'), id(100, 'i'), change(100, 'x');
  bool ran_out = true;
  int after = 0;
  for (; ran_out; ++after) {
    ChangeLedger ledger(2);
    int made = 0;
    const auto make = [&made]() -> absl::StatusOr<bool> { return ++made > 0; };
    ran_out = RunsOut(after, [&] { (void)ledger.Once(caller, id, change, make); });
    const absl::StatusOr<bool> said = ledger.Once(caller, id, change, make);
    EXPECT_TRUE(said.ok() && *said) << said.status();
    EXPECT_EQ(made, 1);
  }
  EXPECT_GT(after, 1);
}

}  // namespace
}  // namespace stowage::testing
