// Who is turned away before a solver's thread is spent on it.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <set>
#include <thread>

#include "server/entries/planning_error.h"
#include "server/service/solve_costs.h"
#include "tests/server/service/planning_fixture.h"

namespace stowage::testing {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::shared_ptr<PlanningProblem> ProblemOf(const Profile& profile) {
  return *MakePlanningProblem(profile, KeyOptions(), Sha256);
}

TEST(SolveCosts, LearnBySolverAndSize) {
  SolveCosts costs;
  const auto eight = ProblemOf(ProfileOfLength(8)), sixteen = ProblemOf(ProfileOfLength(16));
  const auto graph = ProblemOf(GraphProfile(8, 1, 1));
  EXPECT_FALSE(costs.Estimate(*eight).measured);
  EXPECT_LT(costs.Estimate(*eight).time, costs.Estimate(*sixteen).time);
  costs.Measured(*eight, milliseconds(100));
  EXPECT_TRUE(costs.Estimate(*eight).measured);
  EXPECT_EQ(costs.Estimate(*eight).time, milliseconds(100));
  // Twice the steps: four times as long, but nobody has measured that.
  EXPECT_EQ(costs.Estimate(*sixteen).time, milliseconds(400));
  EXPECT_FALSE(costs.Estimate(*sixteen).measured);
  EXPECT_FALSE(costs.Estimate(*graph).measured);
  for (int i = 0; i < 40; ++i) costs.Measured(*eight, milliseconds(20));
  EXPECT_LT(costs.Estimate(*eight).time, milliseconds(21));
}

// Its solves of chains of 8 to 15 stages have taken half a second.
struct SlowSolves : PlanningFixture {
  SlowSolves() : PlanningFixture(true, OneThread()) {
    Ask(100, ProfileOfLength(8), kTight);
    EXPECT_TRUE(solver.WaitUntilStarted(1));
    std::this_thread::sleep_for(milliseconds(500));
    solver.Release();
    EXPECT_TRUE(answers.WaitFor(100).ok());
    solver.Hold();
  }

  static PlanningOptions OneThread() {
    PlanningOptions options;
    options.solver_threads = 1;
    return options;
  }
};

TEST(Admission, ADeadlineThatNoSolveCanMeetIsRefusedAtOnce) {
  SlowSolves fixture;
  fixture.Ask(0, ProfileOfLength(9), kTight, Clock::now() + milliseconds(400));
  const absl::Status refused = fixture.answers.WaitFor(0).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_EQ(PlanningReason(refused), "DEADLINE_TOO_SHORT");
  EXPECT_TRUE(PlanningRetryAfter(refused).has_value());
  EXPECT_EQ(fixture.metrics.Sheds(Shed::kDeadline), 1);
  EXPECT_EQ(fixture.solver.started(), 1);
  // Enough time, or none said, or a size that nobody has measured.
  fixture.solver.Release();
  fixture.Ask(1, ProfileOfLength(9), kTight, Clock::now() + seconds(30));
  EXPECT_TRUE(fixture.answers.WaitFor(1).ok());
  fixture.Ask(2, ProfileOfLength(10), kTight);
  EXPECT_TRUE(fixture.answers.WaitFor(2).ok());
  fixture.Ask(3, ProfileOfLength(20), kTight, Clock::now() + seconds(5));
  EXPECT_TRUE(fixture.answers.WaitFor(3).ok());
}

TEST(Admission, WhatWaitsCountsToo) {
  SlowSolves fixture;
  for (int i = 0; i < 4; ++i) fixture.Ask(i, ProfileOfLength(9 + i), kTight);
  ASSERT_TRUE(fixture.solver.WaitUntilStarted(2));
  fixture.Ask(4, ProfileOfLength(14), kTight, Clock::now() + milliseconds(1500));
  EXPECT_EQ(PlanningReason(fixture.answers.WaitFor(4).status()), "DEADLINE_TOO_SHORT");
  // What needs no search passes them all, and waits for the thread alone.
  const Bytes enough = StoreAllPeak(ProfileOfLength(13));
  fixture.Ask(5, ProfileOfLength(13), enough, Clock::now() + milliseconds(1500));
  EXPECT_EQ(fixture.metrics.Sheds(Shed::kDeadline), 1);
  fixture.solver.Release();
  const absl::Status passed = fixture.answers.WaitFor(5).status();
  EXPECT_TRUE(passed.ok() || absl::IsDeadlineExceeded(passed)) << passed;  // admitted
  EXPECT_GE(fixture.metrics.queue_waits, 1);
}

TEST(Account, IsTheTenantsElseTheIdentitysElseOneForAll) {
  EXPECT_EQ(Account::Of("a", "x"), Account::Of("a", "y"));
  EXPECT_EQ(Account::Of("", "x"), Account::Of("", "x"));
  EXPECT_EQ(Account::Of("", ""), Account());
  const std::set<Account> differ = {Account::Of("a", ""), Account::Of("", "a"),
                                    Account::Of("b", ""), Account::Of("", "b"), Account()};
  EXPECT_EQ(differ.size(), 5u) << "an identity is no tenant of the same name";
  const AccountShare share{0.25, 0.5};
  EXPECT_EQ(share.Of(8, Account::Of("a", "")), 2);
  EXPECT_EQ(share.Of(8, Account()), 4);
  EXPECT_EQ(share.Of(1, Account::Of("a", "")), 1) << "never nothing";
}

// A thread and seven places, of which one account may have two.
struct SharedPlaces : PlanningFixture {
  SharedPlaces() : PlanningFixture(true, Quarters()) {}

  static PlanningOptions Quarters() {
    PlanningOptions options;
    options.solver_threads = 1;
    options.limits.queue_limit = 7;
    options.limits.share = {0.25, 0.25};
    return options;
  }

  void AskAs(int index, const std::string& tenant, const std::string& identity) {
    ComputeRequest request{ProfileOfLength(5 + index), kTight, KeyOptions(), std::nullopt};
    request.options.tenant = tenant;
    request.identity = identity;
    service->ComputePlan(request, answers.Of(index));
  }

  void ExpectOverQuota(int index) {
    const absl::Status refused = answers.WaitFor(index).status();
    EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
    EXPECT_EQ(PlanningReason(refused), "TENANT_QUOTA");
    EXPECT_TRUE(PlanningRetryAfter(refused).has_value());
  }
};

TEST(Admission, ATenantThatTakesItsShareLeavesTheOthersTheirs) {
  SharedPlaces fixture;
  for (int i = 0; i < 3; ++i) fixture.AskAs(i, "greedy", "job-" + std::to_string(i));
  fixture.ExpectOverQuota(2);
  EXPECT_EQ(fixture.metrics.Sheds(Shed::kQuota), 1);
  fixture.AskAs(3, "other", "");
  fixture.solver.Release();
  for (const int i : {0, 1, 3}) EXPECT_TRUE(fixture.answers.WaitFor(i).ok());
  fixture.AskAs(4, "greedy", "");
  EXPECT_TRUE(fixture.answers.WaitFor(4).ok());
}

TEST(Admission, ACallerWithoutATenantHasTheShareOfItsIdentity) {
  SharedPlaces fixture;
  for (int i = 0; i < 3; ++i) fixture.AskAs(i, "", "flood");
  fixture.ExpectOverQuota(2);
  // Not a tenant that is called so, nor another identity.
  fixture.AskAs(3, "flood", "");
  fixture.AskAs(4, "", "other");
  fixture.solver.Release();
  for (const int i : {0, 1, 3, 4}) EXPECT_TRUE(fixture.answers.WaitFor(i).ok()) << i;
}

TEST(Admission, CallersOfWhomNothingIsKnownShareOne) {
  SharedPlaces fixture;
  for (int i = 0; i < 3; ++i) fixture.AskAs(i, "", "");
  fixture.ExpectOverQuota(2);
  fixture.AskAs(3, "", "somebody");
  fixture.solver.Release();
  for (const int i : {0, 1, 3}) EXPECT_TRUE(fixture.answers.WaitFor(i).ok()) << i;
}

TEST(Admission, TimesToRetryAfterDiffer) {
  PlanningOptions options;
  options.limits.max_open_calls = 1;
  PlanningFixture fixture(true, options);
  fixture.Ask(0, ProfileOfLength(5), kTight);
  std::set<std::chrono::nanoseconds> times;
  for (int i = 1; i <= 20; ++i) {
    fixture.Ask(i, ProfileOfLength(5), kTight);
    const auto after = PlanningRetryAfter(fixture.answers.WaitFor(i).status());
    ASSERT_TRUE(after.has_value());
    EXPECT_GE(*after, milliseconds(100));
    EXPECT_LE(*after, milliseconds(150));
    times.insert(*after);
  }
  EXPECT_GE(times.size(), 15u);
  fixture.solver.Release();
}

TEST(Admission, BackgroundJobsAreToldToStop) {
  PlanningFixture fixture(false);
  std::promise<void> started;
  std::atomic<bool> stopped{false};
  ASSERT_TRUE(fixture.service->SubmitBackground(1, [&](const StopToken& stop) {
    started.set_value();
    while (stop.Check().ok()) std::this_thread::sleep_for(milliseconds(1));
    stopped = true;
  }));
  started.get_future().wait();
  // Others get their answers meanwhile.
  EXPECT_TRUE(fixture.Compute(ProfileOfLength(5), kTight).ok());
  fixture.service->Stop();
  EXPECT_TRUE(stopped);
}

}  // namespace
}  // namespace stowage::testing
