// What every PlanStore must do. Instantiate the suite with a name and a function that makes an
// empty store.
#ifndef STOWAGE_TESTS_SERVER_CACHE_PLAN_STORE_CONFORMANCE_H_
#define STOWAGE_TESTS_SERVER_CACHE_PLAN_STORE_CONFORMANCE_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/cache/plan_store.h"
#include "tests/server/cache/entries.h"

namespace stowage::testing {

struct StoreFactory {
  std::string name;
  std::function<std::unique_ptr<PlanStore>()> make;
};

class PlanStoreConformance : public ::testing::TestWithParam<StoreFactory> {
 protected:
  std::unique_ptr<PlanStore> store_ = GetParam().make();
};

TEST_P(PlanStoreConformance, AnUnknownKeyHasNoEntry) {
  EXPECT_EQ(store_->Get(KeyOf("a"), Access::kLookup), nullptr);
  EXPECT_FALSE(store_->Erase(KeyOf("a")));
  EXPECT_EQ(store_->stats().entries, 0);
  EXPECT_EQ(store_->stats().charged, Bytes(0));
}

TEST_P(PlanStoreConformance, WhatIsPutComesBackWhole) {
  ASSERT_TRUE(store_->Put(KeyOf("a"), EntryOf("canonical a")).ok());
  for (const Access access : {Access::kLookup, Access::kPeek}) {
    const auto entry = store_->Get(KeyOf("a"), access);
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->canonical, "canonical a");
    EXPECT_EQ(entry->least_budget, Bytes(42));
    const Chain& chain = std::get<Chain>(entry->reference->problem);
    EXPECT_EQ(chain.length(), ProfileShape{}.stages);
    EXPECT_EQ(chain.stage(2).forward_time, Nanos(11));
    ASSERT_EQ(entry->plans.size(), 1u);
    EXPECT_EQ(entry->plans[0]->budget, Bytes(1000));
    EXPECT_EQ(entry->plans[0]->revision, 7);
    EXPECT_EQ(entry->plans[0]->schedule, (Schedule{ForwardKeepAll(1), Backward(1)}));
  }
  EXPECT_EQ(store_->stats().entries, 1);
  EXPECT_EQ(store_->stats().charged, ChargeOf(*EntryOf("canonical a")));
}

TEST_P(PlanStoreConformance, PutReplacesAndChargesOnce) {
  ASSERT_TRUE(store_->Put(KeyOf("a"), EntryOf("old", 5000)).ok());
  ASSERT_TRUE(store_->Put(KeyOf("a"), EntryOf("new")).ok());
  EXPECT_EQ(store_->Get(KeyOf("a"), Access::kLookup)->canonical, "new");
  EXPECT_EQ(store_->stats().entries, 1);
  EXPECT_EQ(store_->stats().charged, ChargeOf(*EntryOf("new")));
}

TEST_P(PlanStoreConformance, EraseTakesOneEntryAndItsCharge) {
  ASSERT_TRUE(store_->Put(KeyOf("a"), EntryOf("a")).ok());
  ASSERT_TRUE(store_->Put(KeyOf("b"), EntryOf("b")).ok());
  EXPECT_TRUE(store_->Erase(KeyOf("a")));
  EXPECT_FALSE(store_->Erase(KeyOf("a")));
  EXPECT_EQ(store_->Get(KeyOf("a"), Access::kLookup), nullptr);
  EXPECT_NE(store_->Get(KeyOf("b"), Access::kLookup), nullptr);
  EXPECT_EQ(store_->stats().charged, ChargeOf(*EntryOf("b")));
}

TEST_P(PlanStoreConformance, KeysOfAnotherEncodingAreOtherKeys) {
  PlanKey other = KeyOf("a");
  other.encoding_version += 1;
  ASSERT_TRUE(store_->Put(KeyOf("a"), EntryOf("a")).ok());
  EXPECT_EQ(store_->Get(other, Access::kLookup), nullptr);
}

TEST_P(PlanStoreConformance, AnEntryOutlivesItsErasureForWhoHoldsIt) {
  ASSERT_TRUE(store_->Put(KeyOf("a"), EntryOf("a")).ok());
  const auto held = store_->Get(KeyOf("a"), Access::kLookup);
  store_->Erase(KeyOf("a"));
  EXPECT_EQ(held->canonical, "a");
}

TEST_P(PlanStoreConformance, ManyThreadsAtOnce) {
  constexpr int kThreads = 8;
  constexpr int kRounds = 300;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < kRounds; ++i) {
        const std::string name = std::to_string((t * 7 + i) % 16);
        if (i % 3 == 0) {
          EXPECT_TRUE(store_->Put(KeyOf(name), EntryOf(name)).ok());
        }
        if (i % 11 == 0) store_->Erase(KeyOf(name));
        const auto entry = store_->Get(KeyOf(name), Access::kLookup);
        if (entry) {
          EXPECT_EQ(entry->canonical, name);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const PlanStoreStats stats = store_->stats();
  int64_t present = 0;
  for (int i = 0; i < 16; ++i) {
    if (store_->Get(KeyOf(std::to_string(i)), Access::kPeek)) ++present;
  }
  EXPECT_EQ(stats.entries, present);
}

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SERVER_CACHE_PLAN_STORE_CONFORMANCE_H_
