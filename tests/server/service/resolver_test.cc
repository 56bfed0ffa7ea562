#include "server/service/resolver.h"

#include <gtest/gtest.h>

#include <future>

#include "server/entries/revisions.h"
#include "server/entries/solver_version.h"
#include "tests/server/support/asked.h"

namespace stowage::testing {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using Time = TokenBucket::Time;

ResolveWish WishFor(int64_t budget, ResolveReason reason = ResolveReason::kStale) {
  return {PlanKey{kEncodingVersion, Sha256("key")}, Bytes(budget), reason, nullptr};
}

TEST(TokenBucket, GivesABurstAndThenARate) {
  const Time start = Time() + seconds(1000);
  TokenBucket bucket(seconds(2), 3, start);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(bucket.Take(start));
  EXPECT_FALSE(bucket.Take(start + seconds(1)));
  EXPECT_EQ(bucket.NextAt(), start + seconds(2));
  EXPECT_TRUE(bucket.Take(start + seconds(2)));
  EXPECT_FALSE(bucket.Take(start + seconds(3)));
  // However long nobody asks, a burst is all that is saved.
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(bucket.Take(start + minutes(60)));
  EXPECT_FALSE(bucket.Take(start + minutes(60) + seconds(1)));
}

TEST(TokenBucket, TakesBack) {
  const Time start = Time() + seconds(1000);
  TokenBucket bucket(seconds(2), 1, start);
  EXPECT_TRUE(bucket.Take(start));
  bucket.GiveBack();
  EXPECT_TRUE(bucket.Take(start));
  EXPECT_FALSE(bucket.Take(start));
}

TEST(ResolveQueue, KeepsToItsRate) {
  const Time start = Time() + seconds(1000);
  ResolverOptions options;
  options.burst = 2;
  ResolveQueue queue(options, start);
  EXPECT_FALSE(queue.NextAt().has_value());
  for (int64_t i = 0; i < 100; ++i) EXPECT_TRUE(queue.Add(WishFor(i), start));
  int taken = 0;
  for (Time now = start; now < start + seconds(60); now += seconds(1)) {
    while (queue.Take(now)) ++taken;
  }
  EXPECT_EQ(taken, 2 + 29);
  EXPECT_EQ(queue.NextAt(), start + seconds(60));
}

TEST(ResolveQueue, TakesAQuestionOnceAndLetsItRest) {
  const Time start = Time() + seconds(1000);
  ResolveQueue queue(ResolverOptions(), start);
  EXPECT_TRUE(queue.Add(WishFor(1), start));
  EXPECT_FALSE(queue.Add(WishFor(1, ResolveReason::kDrift), start));
  EXPECT_TRUE(queue.Add(WishFor(2), start));
  EXPECT_EQ(queue.size(), 2u);
  EXPECT_EQ(queue.Take(start)->budget, Bytes(1));
  EXPECT_FALSE(queue.Add(WishFor(1), start + minutes(9)));
  EXPECT_TRUE(queue.Add(WishFor(1), start + minutes(10)));
}

TEST(ResolveQueue, HoldsFewCosts) {
  const Time start = Time() + seconds(1000);
  ResolverOptions options;
  options.asked_limit = 2;
  ResolveQueue queue(options, start);
  const auto with_costs = [](int64_t budget) {
    ResolveWish wish = WishFor(budget);
    wish.asked = std::make_shared<const PlanningProblem>();
    return wish;
  };
  EXPECT_TRUE(queue.Add(with_costs(1), start));
  EXPECT_TRUE(queue.Add(with_costs(2), start));
  EXPECT_FALSE(queue.Add(with_costs(3), start));
  EXPECT_TRUE(queue.Add(WishFor(4), start));
  EXPECT_TRUE(queue.Take(start)->asked != nullptr);
  EXPECT_TRUE(queue.Add(with_costs(3), start));
}

TEST(ResolveQueue, IsBoundedAndUpgradesWait) {
  const Time start = Time() + seconds(1000);
  ResolverOptions options;
  options.queue_limit = 3;
  ResolveQueue queue(options, start);
  EXPECT_TRUE(queue.Add(WishFor(1, ResolveReason::kUpgrade), start));
  EXPECT_TRUE(queue.Add(WishFor(2, ResolveReason::kDrift), start));
  EXPECT_TRUE(queue.Add(WishFor(3, ResolveReason::kStale), start));
  EXPECT_FALSE(queue.Add(WishFor(4), start));
  EXPECT_EQ(queue.Take(start)->budget, Bytes(2));
  EXPECT_EQ(queue.Take(start)->budget, Bytes(3));
  EXPECT_EQ(queue.Take(start)->budget, Bytes(1));
  EXPECT_FALSE(queue.Take(start).has_value());
}

TEST(IsNewerVersion, GoesByNumbersAndThenByWhatFollows) {
  const std::vector<std::string> rising = {"newer", "older",  "0.0.9", "0.1.0-rc1", "0.1.0-rc2",
                                           "0.1",   "0.9.12", "0.10",  "1",         "1.0.1"};
  for (size_t i = 0; i + 1 < rising.size(); ++i) {
    EXPECT_TRUE(IsNewerVersion(rising[i + 1], rising[i])) << rising[i];
    EXPECT_FALSE(IsNewerVersion(rising[i], rising[i + 1])) << rising[i];
  }
  // A number beyond 64 bits is none.
  EXPECT_FALSE(IsNewerVersion("99999999999999999999", "0.1"));
  for (const std::string equal : {"0.1", "0.1.0", "0.1.0.0"}) {
    EXPECT_FALSE(IsNewerVersion(equal, "0.1.0"));
    EXPECT_FALSE(IsNewerVersion("0.1.0", equal));
  }
}

TEST(UpgradesOf, AreBudgetsThatThisVersionHasNotSolved) {
  const PlanKey key;
  const Asked problem = ProblemOf(ProfileShape());
  PlanEntry entry = EntryFor(problem, Bytes(1500));
  EXPECT_TRUE(UpgradesOf(key, entry, kSolverVersion).empty());
  SolvedPlan old = Solved(problem, Bytes(1600));
  old.plan.provenance.solver_version = "older";
  entry = *Record(&entry, &old);
  ASSERT_EQ(UpgradesOf(key, entry, kSolverVersion).size(), 1u);
  EXPECT_EQ(UpgradesOf(key, entry, kSolverVersion)[0].budget, Bytes(1600));
  EXPECT_EQ(UpgradesOf(key, entry, kSolverVersion)[0].reason, ResolveReason::kUpgrade);
  EXPECT_TRUE(UpgradesOf(key, *Freeze(entry), kSolverVersion).empty());
  EXPECT_EQ(UpgradesOf(key, *Pin(entry, {Bytes(1600), 1}), kSolverVersion).size(), 1u);
  // Of a newer version are none.
  EXPECT_TRUE(UpgradesOf(key, entry, "old").empty());
  // Solved again, to the same schedule or to one that waits in shadow, it is done.
  SolvedPlan again = Solved(problem, Bytes(1600));
  EXPECT_TRUE(UpgradesOf(key, *Record(&entry, &again), kSolverVersion).empty());
  SolvedPlan slower{
      problem, *MakePlan(problem->costs->problem(), Bytes(1600), PlanOptions{"chen_sqrt", {}})};
  ASSERT_GT(slower.plan.prediction.makespan, again.plan.prediction.makespan);
  EXPECT_TRUE(UpgradesOf(key, *Record(&entry, &slower), kSolverVersion).empty());
}

TEST(Resolver, SolvesWhatIsWanted) {
  std::promise<Bytes> solved;
  Resolver resolver(ResolverOptions(), [&solved](const ResolveWish& wish) {
    solved.set_value(wish.budget);
    return true;
  });
  EXPECT_TRUE(resolver.Want(WishFor(2, ResolveReason::kDrift)));
  EXPECT_EQ(solved.get_future().get(), Bytes(2));
}

// Other servers are at them, too: what one of them has done costs the others no time.
TEST(Resolver, WhatNeedsNoSolveDoesNotCount) {
  ResolverOptions options;
  options.interval = minutes(10);
  options.burst = 1;
  std::promise<Bytes> solved;
  Resolver resolver(options, [&solved](const ResolveWish& wish) {
    if (wish.budget < Bytes(3)) return false;
    solved.set_value(wish.budget);
    return true;
  });
  for (int64_t i = 0; i <= 3; ++i) EXPECT_TRUE(resolver.Want(WishFor(i)));
  auto result = solved.get_future();
  ASSERT_EQ(result.wait_for(seconds(10)), std::future_status::ready);
  EXPECT_EQ(result.get(), Bytes(3));
}

TEST(Resolver, StopsWithWishesWaiting) {
  ResolverOptions options;
  options.interval = minutes(10);
  options.burst = 1;
  int solves = 0;
  {
    Resolver resolver(options, [&solves](const ResolveWish&) { return ++solves > 0; });
    for (int64_t i = 0; i < 50; ++i) EXPECT_TRUE(resolver.Want(WishFor(i)));
  }
  EXPECT_LE(solves, 1);
}

}  // namespace
}  // namespace stowage::testing
