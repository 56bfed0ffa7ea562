// What every PlanStore must do. Instantiate the suite with a name and a function that makes an
// empty store.
#ifndef STOWAGE_TESTS_SERVER_STORE_PLAN_STORE_CONFORMANCE_H_
#define STOWAGE_TESTS_SERVER_STORE_PLAN_STORE_CONFORMANCE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "server/store/plan_store.h"
#include "solvers/schedule/instance.h"
#include "tests/server/store/entries.h"

namespace stowage::testing {

struct StoreFactory {
  std::string name;
  std::function<std::unique_ptr<PlanStore>()> make;
  // Whether stats() says what was put into it; not where the store is a server's with other users.
  bool sized = true;
};

class PlanStoreConformance : public ::testing::TestWithParam<StoreFactory> {
 protected:
  // Of the entry that an update would change; -1 without one.
  int64_t GenerationOf(const std::string& name) {
    const auto entry = store_->Get(KeyOf(name), Access::kUpdate);
    return entry ? entry->generation : -1;
  }

  void ExpectSize(int64_t entries, Bytes charged) const {
    if (!GetParam().sized) return;
    EXPECT_EQ(store_->stats().entries, entries);
    EXPECT_EQ(store_->stats().charged, charged);
  }

  std::unique_ptr<PlanStore> store_ = GetParam().make();
};

TEST_P(PlanStoreConformance, AnUnknownKeyHasNoEntry) {
  EXPECT_EQ(store_->Get(KeyOf("a"), Access::kLookup), nullptr);
  EXPECT_FALSE(*store_->Erase(KeyOf("a")));
  ExpectSize(0, Bytes(0));
}

TEST_P(PlanStoreConformance, WhatIsPutComesBackWhole) {
  ASSERT_TRUE(store_->Put(KeyOf("a"), EntryOf("a")).ok());
  for (const Access access : {Access::kLookup, Access::kPeek}) {
    const auto entry = store_->Get(KeyOf("a"), access);
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->canonical, "a");
    EXPECT_EQ(entry->least_budget, Bytes(42));
    const Chain& chain = std::get<Chain>(entry->reference->problem());
    EXPECT_EQ(chain.length(), ProfileShape{}.stages);
    EXPECT_EQ(chain.stage(2).forward_time, Nanos(11));
    ASSERT_EQ(entry->plans.size(), 1u);
    EXPECT_EQ(entry->plans[0].plan->budget, entry->store_all.peak + Bytes(1000));
    EXPECT_EQ(entry->plans[0].plan->revision, 7);
    EXPECT_EQ(entry->plans[0].plan->schedule, StoreAllSchedule(chain));
    EXPECT_EQ(entry->plans[0].plan->prediction.peak, entry->store_all.peak);
  }
  ExpectSize(1, ChargeOf(*EntryOf("a")));
}

TEST_P(PlanStoreConformance, PutReplacesAndChargesOnce) {
  ASSERT_TRUE(store_->Put(KeyOf("a"), EntryOf("a", 5000)).ok());
  ASSERT_TRUE(store_->Put(KeyOf("a"), EntryOf("a", 0, 2)).ok());
  EXPECT_EQ(GenerationOf("a"), 2);
  ExpectSize(1, ChargeOf(*EntryOf("a", 0, 2)));
}

TEST_P(PlanStoreConformance, AChangeOfWhatHasChangedIsRefused) {
  ASSERT_TRUE(store_->Put(KeyOf("a"), EntryOf("a", 10, 5)).ok());
  for (const int64_t generation : {4, 5}) {
    const absl::Status refused = store_->Put(KeyOf("a"), EntryOf("a", 0, generation));
    EXPECT_TRUE(absl::IsAborted(refused)) << refused;
  }
  EXPECT_EQ(store_->Get(KeyOf("a"), Access::kUpdate)->plans[0].plan->explanation.size(), 10u);
  EXPECT_TRUE(store_->Put(KeyOf("a"), EntryOf("a", 0, 6)).ok());
  EXPECT_EQ(GenerationOf("a"), 6);
}

TEST_P(PlanStoreConformance, AChangeIsOfWhatWasRead) {
  const auto change = [this](int64_t read, int64_t generation) {
    return store_->Replace(KeyOf("a"), read, EntryOf("a", 0, generation), Durability::kRequired);
  };
  EXPECT_TRUE(absl::IsAborted(change(1, 2))) << "there is nothing";
  EXPECT_TRUE(change(0, 1).ok());
  EXPECT_TRUE(absl::IsAborted(change(0, 7)));
  EXPECT_TRUE(change(1, 2).ok());
  EXPECT_TRUE(absl::IsAborted(change(1, 2)));
  EXPECT_EQ(GenerationOf("a"), 2);
  ASSERT_TRUE(*store_->Erase(KeyOf("a")));
  EXPECT_TRUE(absl::IsAborted(change(2, 3))) << "it would undo the erasure";
  EXPECT_EQ(GenerationOf("a"), -1);
  const int64_t anew = FirstGeneration(store_->DeletedUpTo(KeyOf("a")));
  EXPECT_TRUE(change(0, anew).ok());
  EXPECT_TRUE(absl::IsAborted(change(2, 3)));
  EXPECT_EQ(GenerationOf("a"), anew);
  ExpectSize(1, ChargeOf(*EntryOf("a")));
}

TEST_P(PlanStoreConformance, ACopyOfAnotherHistoryIsRefused) {
  const int64_t there = 3 * kChangesPerHistory + 1;
  ASSERT_TRUE(store_->Put(KeyOf("a"), EntryOf("a", 0, there)).ok());
  for (const int64_t other : {there + kChangesPerHistory, there - kChangesPerHistory}) {
    EXPECT_TRUE(absl::IsAborted(store_->Put(KeyOf("a"), EntryOf("a", 0, other)))) << other;
  }
  EXPECT_TRUE(store_->Put(KeyOf("a"), EntryOf("a", 0, there + 1)).ok());
}

// Given by whoever has changed it, and the original's where it is a copy: no store has a clock for it.
TEST_P(PlanStoreConformance, AnEntryHasTheTimeOfItsLastChange) {
  const auto expect = [this](std::optional<int64_t> updated_s) {
    for (const Access access :
         {Access::kLookup, Access::kPeek, Access::kInspect, Access::kUpdate, Access::kInspect}) {
      const auto entry = store_->Get(KeyOf("a"), access);
      ASSERT_NE(entry, nullptr);
      EXPECT_EQ(entry->updated_s, updated_s);
    }
  };
  ASSERT_TRUE(store_->Put(KeyOf("a"), EntryChangedAt(1000, "a")).ok());
  expect(1000);
  ASSERT_TRUE(
      store_->Replace(KeyOf("a"), 1, EntryChangedAt(2000, "a", 2), Durability::kRequired).ok());
  expect(2000);
  ASSERT_TRUE(store_->Put(KeyOf("a"), EntryChangedAt(1500, "a", 3)).ok());
  expect(1500);
  EXPECT_FALSE(
      store_->Replace(KeyOf("a"), 2, EntryChangedAt(9000, "a", 3), Durability::kRequired).ok());
  expect(1500);
  // A copy of what a server has made that notes no times.
  ASSERT_TRUE(store_->Put(KeyOf("a"), EntryOf("a", 0, 4)).ok());
  expect(std::nullopt);
}

TEST_P(PlanStoreConformance, WhatIsNotWaitedForIsTheSameOrUndecided) {
  const auto unknown = store_->GetNow(KeyOf("a"), Access::kLookup);
  EXPECT_TRUE(!unknown || *unknown == nullptr);
  ASSERT_TRUE(store_->Put(KeyOf("a"), EntryOf("a")).ok());
  ASSERT_NE(store_->Get(KeyOf("a"), Access::kLookup), nullptr);
  const auto known = store_->GetNow(KeyOf("a"), Access::kLookup);
  if (known) {
    ASSERT_NE(*known, nullptr);
    EXPECT_EQ((*known)->canonical, "a");
  }
}

TEST_P(PlanStoreConformance, ListsItsKeysInOrderAndByPages) {
  EXPECT_TRUE(store_->List(std::nullopt, 10).value().empty());
  std::vector<PlanKey> keys;
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    keys.push_back(KeyOf(name));
    ASSERT_TRUE(store_->Put(KeyOf(name), EntryOf(name)).ok());
  }
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(store_->List(std::nullopt, 10).value(), keys);
  std::vector<PlanKey> paged = store_->List(std::nullopt, 2).value();
  ASSERT_EQ(paged.size(), 2u);
  for (const PlanKey& key : Keys(store_->List(paged.back(), 2))) paged.push_back(key);
  for (const PlanKey& key : Keys(store_->List(paged.back(), 2))) paged.push_back(key);
  EXPECT_EQ(paged, keys);
  EXPECT_TRUE(store_->List(keys.back(), 2).value().empty());
}

TEST_P(PlanStoreConformance, ListsTheKeysOfOneTenantInOrderAndByPages) {
  std::vector<PlanKey> ours;
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    ours.push_back(KeyOf(name));
    ASSERT_TRUE(store_->Put(KeyOf(name), EntryOf(name, 0, 1, "us")).ok());
  }
  for (const char* name : {"f", "g", "h"}) {
    ASSERT_TRUE(store_->Put(KeyOf(name), EntryOf(name, 0, 1, "us2")).ok());
  }
  ASSERT_TRUE(store_->Put(KeyOf("i"), EntryOf("i")).ok());
  std::sort(ours.begin(), ours.end());
  EXPECT_EQ(store_->ListOf("us", std::nullopt, 10).value(), ours);
  std::vector<PlanKey> paged = store_->ListOf("us", std::nullopt, 2).value();
  ASSERT_EQ(paged.size(), 2u);
  for (const PlanKey& key : Keys(store_->ListOf("us", paged.back(), 2))) paged.push_back(key);
  for (const PlanKey& key : Keys(store_->ListOf("us", paged.back(), 2))) paged.push_back(key);
  EXPECT_EQ(paged, ours);
  EXPECT_TRUE(store_->ListOf("us", ours.back(), 2).value().empty());
  EXPECT_EQ(store_->ListOf("us2", std::nullopt, 10).value().size(), 3u);
  EXPECT_EQ(store_->ListOf("", std::nullopt, 10).value(), std::vector<PlanKey>{KeyOf("i")});
  EXPECT_TRUE(store_->ListOf("nobody", std::nullopt, 10).value().empty());
}

TEST_P(PlanStoreConformance, ATenantsListFollowsItsEntries) {
  const auto names = [this] { return store_->ListOf("us", std::nullopt, 10).value().size(); };
  EXPECT_EQ(names(), 0u);
  ASSERT_TRUE(store_->Put(KeyOf("a"), EntryOf("a", 0, 1, "us")).ok());
  ASSERT_TRUE(store_->Replace(KeyOf("b"), 0, EntryOf("b", 0, 1, "us"), Durability::kRequired).ok());
  EXPECT_EQ(names(), 2u);
  ASSERT_TRUE(store_->Put(KeyOf("a"), EntryOf("a", 0, 2, "us")).ok());
  EXPECT_EQ(names(), 2u);
  ASSERT_TRUE(*store_->Erase(KeyOf("a")));
  EXPECT_EQ(store_->ListOf("us", std::nullopt, 10).value(), std::vector<PlanKey>{KeyOf("b")});
  const int64_t anew = FirstGeneration(store_->DeletedUpTo(KeyOf("a")));
  ASSERT_TRUE(
      store_->Replace(KeyOf("a"), 0, EntryOf("a", 0, anew, "us"), Durability::kRequired).ok());
  EXPECT_EQ(names(), 2u);
}

TEST_P(PlanStoreConformance, EraseTakesOneEntryAndItsCharge) {
  ASSERT_TRUE(store_->Put(KeyOf("a"), EntryOf("a")).ok());
  ASSERT_TRUE(store_->Put(KeyOf("b"), EntryOf("b")).ok());
  EXPECT_TRUE(*store_->Erase(KeyOf("a")));
  EXPECT_FALSE(*store_->Erase(KeyOf("a")));
  EXPECT_EQ(store_->Get(KeyOf("a"), Access::kLookup), nullptr);
  EXPECT_NE(store_->Get(KeyOf("b"), Access::kLookup), nullptr);
  ExpectSize(1, ChargeOf(*EntryOf("b")));
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
  ASSERT_TRUE(*store_->Erase(KeyOf("a")));
  EXPECT_EQ(held->canonical, "a");
}

TEST_P(PlanStoreConformance, ManyThreadsAtOnce) {
  constexpr int kThreads = 8;
  constexpr int kRounds = 300;
  std::atomic<int64_t> generation{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t, &generation] {
      for (int i = 0; i < kRounds; ++i) {
        const std::string name = std::to_string((t * 7 + i) % 16);
        if (i % 3 == 0) {
          const absl::Status put = store_->Put(KeyOf(name), EntryOf(name, 0, ++generation));
          EXPECT_TRUE(put.ok() || absl::IsAborted(put)) << put;
        }
        if (i % 11 == 0) {
          EXPECT_TRUE(store_->Erase(KeyOf(name)).ok());
        }
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
  if (GetParam().sized) {
    EXPECT_EQ(stats.entries, present);
  }
}

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SERVER_STORE_PLAN_STORE_CONFORMANCE_H_
