// Who may hold how many bytes of requests.
#include "server/runtime/byte_budget.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/server/support/counting_metrics.h"

namespace stowage::testing {
namespace {

using Admitted = ByteBudget::Admitted;

const Account kGreedy = Account::Of("greedy", "");
const Account kOther = Account::Of("other", "");

// Of which an account may have half; with a reserve of 10.
struct Hundred {
  Admitted Take(const Account& account, size_t bytes, RequestUse use = RequestUse::kPlans) {
    ByteBudget::Hold hold;
    const Admitted admitted = budget.TryHold(account, use, bytes, &hold);
    if (admitted == Admitted::kYes) holds.push_back(std::move(hold));
    return admitted;
  }

  ByteBudget budget{100, 10, AccountShare{0.5, 1.0}};
  std::vector<ByteBudget::Hold> holds;
};

TEST(ByteBudget, AnAccountHasItsShareAndGetsItBack) {
  Hundred of;
  EXPECT_EQ(of.Take(kGreedy, 30), Admitted::kYes);
  EXPECT_EQ(of.Take(kGreedy, 20), Admitted::kYes);
  EXPECT_EQ(of.Take(kGreedy, 1), Admitted::kTooManyOfAccount);
  EXPECT_EQ(of.Take(kOther, 50), Admitted::kYes);
  EXPECT_EQ(of.Take(Account(), 1), Admitted::kTooMany);
  of.holds.erase(of.holds.begin());
  EXPECT_EQ(of.Take(kGreedy, 30), Admitted::kYes);
}

TEST(ByteBudget, AnotherShareHoldsForWhatComes) {
  Hundred of;
  EXPECT_EQ(of.Take(kGreedy, 50), Admitted::kYes);
  of.budget.SetShare({0.8, 1.0});
  EXPECT_EQ(of.budget.LimitOf(kGreedy), 80u);
  EXPECT_EQ(of.Take(kGreedy, 30), Admitted::kYes);
  of.budget.SetShare({0.2, 1.0});
  EXPECT_EQ(of.Take(kGreedy, 1), Admitted::kTooManyOfAccount);
  EXPECT_EQ(of.Take(kOther, 20), Admitted::kYes);
}

TEST(ByteBudget, OneRequestOverTheShareIsHeldAlone) {
  Hundred of;
  EXPECT_EQ(of.Take(kGreedy, 101), Admitted::kTooMany);
  EXPECT_EQ(of.Take(kGreedy, 60), Admitted::kYes);
  EXPECT_EQ(of.Take(kGreedy, 1), Admitted::kTooManyOfAccount);
  EXPECT_EQ(of.Take(kOther, 40), Admitted::kYes);
}

TEST(ByteBudget, TheReserveIsForUpkeepAlone) {
  Hundred of;
  ASSERT_EQ(of.Take(kGreedy, 50), Admitted::kYes);
  ASSERT_EQ(of.Take(kOther, 50), Admitted::kYes);
  EXPECT_EQ(of.Take(Account(), 1), Admitted::kTooMany);
  EXPECT_EQ(of.Take(kGreedy, 5, RequestUse::kUpkeep), Admitted::kYes);
  EXPECT_EQ(of.Take(kGreedy, 1, RequestUse::kUpkeep), Admitted::kTooManyOfAccount);
  EXPECT_EQ(of.Take(kOther, 5, RequestUse::kUpkeep), Admitted::kYes);
  EXPECT_EQ(of.Take(Account(), 1, RequestUse::kUpkeep), Admitted::kTooMany);
  of.holds.clear();
  // While there are others it takes those.
  EXPECT_EQ(of.Take(kOther, 40, RequestUse::kUpkeep), Admitted::kYes);
}

TEST(ByteBudget, AHoldShrinksAndGrowsWithinTheSameBounds) {
  Hundred of;
  ASSERT_EQ(of.Take(kGreedy, 40), Admitted::kYes);
  ByteBudget::Hold& hold = of.holds[0];
  EXPECT_EQ(hold.TryResize(10), Admitted::kYes);
  EXPECT_EQ(hold.bytes(), 10u);
  EXPECT_EQ(of.Take(kGreedy, 40), Admitted::kYes);
  EXPECT_EQ(of.holds[0].TryResize(11), Admitted::kTooManyOfAccount);
  EXPECT_EQ(of.holds[0].bytes(), 10u) << "as before";
  of.holds.pop_back();
  EXPECT_EQ(of.holds[0].TryResize(90), Admitted::kYes) << "alone it may be over the share";
  EXPECT_EQ(of.Take(kOther, 11), Admitted::kTooMany);
  EXPECT_EQ(of.holds[0].TryResize(0), Admitted::kYes);
  EXPECT_EQ(of.Take(kOther, 100), Admitted::kYes);
}

TEST(ByteBudget, WhatItGaveMayOutliveIt) {
  ByteBudget::Hold hold;
  {
    ByteBudget budget(100, 0, AccountShare());
    ASSERT_EQ(budget.TryHold(kOther, RequestUse::kPlans, 10, &hold), Admitted::kYes);
  }
  EXPECT_EQ(hold.TryResize(20), Admitted::kYes);
}

TEST(ByteBudget, SaysWhatIsHeld) {
  CountingMetrics metrics;
  ByteBudget budget(100, 50, AccountShare(), &metrics);
  {
    ByteBudget::Hold plans, upkeep;
    ASSERT_EQ(budget.TryHold(kOther, RequestUse::kPlans, 90, &plans), Admitted::kYes);
    ASSERT_EQ(budget.TryHold(kOther, RequestUse::kUpkeep, 40, &upkeep), Admitted::kYes);
    EXPECT_EQ(metrics.request_bytes, 130);
    EXPECT_EQ(plans.TryResize(10), Admitted::kYes);
    EXPECT_EQ(metrics.request_bytes, 50);
  }
  EXPECT_EQ(metrics.request_bytes, 0);
}

TEST(ByteBudget, ManyThreadsNeverHoldMoreThanThereIs) {
  ByteBudget budget(100, 10, AccountShare{0.5, 0.5});
  std::atomic<int> held{0}, most{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, account = Account::Of(std::to_string(t % 3), "")] {
      for (int i = 0; i < 2000; ++i) {
        ByteBudget::Hold hold;
        const size_t bytes = static_cast<size_t>(i % 40);
        if (budget.TryHold(account, RequestUse::kPlans, bytes, &hold) != Admitted::kYes) continue;
        const int now = held += static_cast<int>(bytes);
        int seen = most;
        while (now > seen && !most.compare_exchange_weak(seen, now)) continue;
        held -= static_cast<int>(bytes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most, 100);
  ByteBudget::Hold all;
  EXPECT_EQ(budget.TryHold(kOther, RequestUse::kPlans, 100, &all), Admitted::kYes);
}

}  // namespace
}  // namespace stowage::testing
