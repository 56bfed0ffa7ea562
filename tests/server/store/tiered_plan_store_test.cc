#include "server/store/tiered_plan_store.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>

#include "server/store/metrics_plan_store.h"
#include "tests/server/store/tiered_server.h"
#include "tests/server/support/counting_metrics.h"

namespace stowage::testing {
namespace {

TEST(TieredPlanStore, AMissFillsTheFastTier) {
  const auto shared = Shared();
  const Server server(shared);
  ASSERT_TRUE(shared->Put(kKey, EntryOf("a")).ok());
  EXPECT_FALSE(server.store->GetNow(kKey, Access::kLookup).has_value());
  EXPECT_EQ(server.GenerationOf(kKey), 1);
  EXPECT_EQ(server.GenerationOf(kKey), 1);
  EXPECT_EQ(server.slow->looks, 1);
  const auto now = server.store->GetNow(kKey, Access::kLookup);
  ASSERT_TRUE(now.has_value());
  EXPECT_NE(*now, nullptr);
}

TEST(TieredPlanStore, WhatIsNotDecidedNowIsCountedOnce) {
  CountingMetrics metrics;
  const auto shared = Shared();
  TieredPlanStore store(
      std::make_unique<MetricsPlanStore>(std::make_unique<MemoryPlanStore>(kAmple),
                                         CacheTier::kMemory, &metrics),
      std::make_unique<RemoteStore>(shared));
  EXPECT_FALSE(store.GetNow(kKey, Access::kLookup).has_value());
  EXPECT_EQ(metrics.cache_misses, 0);
  store.Get(kKey, Access::kLookup);
  EXPECT_EQ(metrics.cache_misses, 1);
  ASSERT_TRUE(store.Put(kKey, EntryOf("a")).ok());
  store.GetNow(kKey, Access::kLookup);
  EXPECT_EQ(metrics.cache_hits, 1);
}

TEST(TieredPlanStore, WhatIsChangedIsReadFromTheSlowTier) {
  const auto shared = Shared();
  const Server server(shared);
  ASSERT_TRUE(server.store->Put(kKey, EntryOf("a")).ok());
  ASSERT_TRUE(shared->Put(kKey, EntryOf("a", 0, 2)).ok());
  EXPECT_EQ(server.GenerationOf(kKey), 1);
  EXPECT_EQ(server.GenerationOf(kKey, Access::kUpdate), 2);
  EXPECT_EQ(server.GenerationOf(kKey), 2) << "what was seen is not unseen";
}

TEST(TieredPlanStore, AChangeOfWhatAnotherHasChangedIsRefusedAndTheCopyDropped) {
  const auto shared = Shared();
  const Server server(shared);
  ASSERT_TRUE(server.store->Put(kKey, EntryOf("a")).ok());
  ASSERT_TRUE(shared->Put(kKey, EntryOf("a", 0, 2)).ok());
  EXPECT_TRUE(absl::IsAborted(server.store->Put(kKey, EntryOf("a", 0, 2))));
  EXPECT_EQ(server.fast->stats().entries, 0);
  EXPECT_EQ(server.GenerationOf(kKey), 2);
}

TEST(TieredPlanStore, ChangesOfOthersArriveWithinTheFreshness) {
  const auto shared = Shared();
  const Server server(shared, kFreshness);
  const Server other(shared, kFreshness);
  ASSERT_TRUE(server.store->Put(kKey, EntryOf("a")).ok());
  ASSERT_EQ(other.GenerationOf(kKey), 1);
  ASSERT_TRUE(other.store->Put(kKey, EntryOf("a", 0, 2)).ok());
  GrowStale();
  EXPECT_FALSE(server.store->GetNow(kKey, Access::kLookup).has_value());
  EXPECT_EQ(server.GenerationOf(kKey), 2);
  EXPECT_TRUE(server.store->GetNow(kKey, Access::kLookup).has_value());
}

TEST(TieredPlanStore, AFreshCopyIsNotComparedAgain) {
  const auto shared = Shared();
  const Server server(shared, std::chrono::hours(1));
  ASSERT_TRUE(server.store->Put(kKey, EntryOf("a")).ok());
  for (int i = 0; i < 10; ++i) EXPECT_EQ(server.GenerationOf(kKey), 1);
  EXPECT_EQ(server.slow->looks, 0);
}

// A file in front of Redis would be written at each comparison.
TEST(TieredPlanStore, ACopyThatIsTheSameIsNotWrittenAgain) {
  class Counted final : public ForwardingStore {
   public:
    using ForwardingStore::ForwardingStore;
    absl::Status Put(const PlanKey& key, std::shared_ptr<const PlanEntry> entry) override {
      ++writes;
      return ForwardingStore::Put(key, std::move(entry));
    }
    absl::StatusOr<bool> Erase(const PlanKey& key) override {
      ++writes;
      return ForwardingStore::Erase(key);
    }
    int writes = 0;
  };
  const auto shared = Shared();
  auto fast = std::make_unique<Counted>(std::make_shared<MemoryPlanStore>(kAmple));
  const Counted* const counted = fast.get();
  TieredPlanStore store(std::move(fast), std::make_unique<RemoteStore>(shared),
                        std::chrono::nanoseconds(1));
  ASSERT_TRUE(store.Put(kKey, EntryOf("a")).ok());
  const int writes = counted->writes;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(store.Get(kKey, Access::kLookup)->generation, 1);
  EXPECT_EQ(counted->writes, writes);
  ASSERT_TRUE(*shared->Erase(kKey));
  ASSERT_TRUE(shared->Put(kKey, EntryOf("a", 10)).ok());
  EXPECT_EQ(store.Get(kKey, Access::kLookup)->plans[0].plan->explanation.size(), 10u);
  EXPECT_GT(counted->writes, writes);
}

TEST(TieredPlanStore, OneCallerComparesWhileTheOthersAreServed) {
  FaultPolicy policy;
  policy.slow = 1;
  policy.delay = std::chrono::milliseconds(500);
  const auto shared =
      std::make_shared<FaultyPlanStore>(std::make_unique<MemoryPlanStore>(kAmple), policy);
  const Server server(shared, std::chrono::hours(1));
  ASSERT_TRUE(server.fast->Put(kKey, EntryOf("a")).ok());
  ASSERT_TRUE(shared->Put(kKey, EntryOf("a", 0, 2)).ok());
  std::thread compares([&server] { EXPECT_EQ(server.GenerationOf(kKey), 2); });
  while (server.slow->looks == 0) std::this_thread::yield();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(server.GenerationOf(kKey), 1);
  EXPECT_TRUE(server.store->GetNow(kKey, Access::kLookup).has_value());
  EXPECT_EQ(server.slow->looks, 1);
  compares.join();
  EXPECT_EQ(server.GenerationOf(kKey), 2);
}

TEST(TieredPlanStore, ASlowTierThatIsAwayLeavesTheCopyServing) {
  const auto shared = Shared();
  const Server server(shared, kFreshness);
  ASSERT_TRUE(server.store->Put(kKey, EntryOf("a")).ok());
  shared->SetOut(true);
  GrowStale();
  EXPECT_EQ(server.GenerationOf(kKey), 1);
  const int looks = server.slow->looks;
  EXPECT_EQ(server.GenerationOf(kKey), 1);
  EXPECT_EQ(server.slow->looks, looks) << "it is not asked again before its time";
  EXPECT_EQ(server.GenerationOf(kKey, Access::kUpdate), 1);
  EXPECT_TRUE(server.store->Put(kKey, EntryOf("a", 0, 2)).ok());
  EXPECT_EQ(server.GenerationOf(kKey), 2);
}

TEST(TieredPlanStore, WhatWasPutMeanwhileGoesIntoTheSlowTierWhenItIsBack) {
  const auto shared = Shared();
  const Server server(shared, kFreshness);
  ASSERT_TRUE(server.store->Put(kKey, EntryOf("a")).ok());
  shared->SetOut(true);
  ASSERT_TRUE(server.store->Put(kKey, EntryOf("a", 0, 2)).ok());
  ASSERT_TRUE(server.store->Put(KeyOf("b"), EntryOf("b")).ok());
  shared->SetOut(false);
  GrowStale();
  EXPECT_EQ(server.GenerationOf(kKey), 2);
  EXPECT_EQ(server.GenerationOf(KeyOf("b")), 1);
  EXPECT_EQ(shared->Get(kKey, Access::kPeek)->generation, 2);
  EXPECT_NE(shared->Get(KeyOf("b"), Access::kPeek), nullptr);
}

TEST(TieredPlanStore, WhatTheSlowTierLostIsGivenBackToIt) {
  const auto shared = Shared();
  const Server server(shared, kFreshness);
  ASSERT_TRUE(server.store->Put(kKey, EntryOf("a", 0, 3)).ok());
  ASSERT_TRUE(*shared->Erase(kKey));  // of memory: nobody remembers that it was
  GrowStale();
  EXPECT_EQ(server.GenerationOf(kKey), 3);
  EXPECT_EQ(shared->Get(kKey, Access::kPeek)->generation, 3);
}

TEST(TieredPlanStore, WhatDoesNotFitTheFastTierIsServedFromTheSlowOne) {
  const auto shared = Shared();
  const Bytes one = ChargeOf(*EntryOf("a"));
  TieredPlanStore store(std::make_unique<MemoryPlanStore>(one, 1),
                        std::make_unique<RemoteStore>(shared));
  ASSERT_TRUE(store.Put(kKey, EntryOf("a")).ok());
  ASSERT_TRUE(store.Put(kKey, EntryOf("a", 1000, 2)).ok());
  EXPECT_EQ(store.Get(kKey, Access::kLookup)->generation, 2);
  EXPECT_FALSE(store.GetNow(kKey, Access::kLookup).has_value()) << "an old copy must not serve";
}

TEST(TieredPlanStore, AnInspectionSeesWhatCountsAndLeavesBothAsTheyAre) {
  const auto shared = Shared();
  const Server server(shared, kFreshness), slacker(shared, kForever);
  ASSERT_TRUE(shared->Put(KeyOf("b"), EntryOf("b")).ok());
  EXPECT_EQ(server.GenerationOf(KeyOf("b"), Access::kInspect), 1);
  EXPECT_EQ(server.fast->stats().entries, 0);
  ASSERT_TRUE(shared->Put(kKey, EntryOf("a")).ok());
  ASSERT_EQ(server.GenerationOf(kKey), 1);
  ASSERT_EQ(slacker.GenerationOf(kKey), 1);
  ASSERT_TRUE(shared->Put(kKey, EntryOf("a", 0, 2)).ok());
  EXPECT_EQ(slacker.GenerationOf(kKey, Access::kInspect), 1) << "fresh enough";
  GrowStale();
  EXPECT_EQ(server.GenerationOf(kKey, Access::kInspect), 2);
  EXPECT_EQ(server.fast->Get(kKey, Access::kPeek)->generation, 1);
  shared->SetOut(true);
  EXPECT_EQ(server.GenerationOf(kKey, Access::kInspect), 1);
  EXPECT_EQ(server.GenerationOf(KeyOf("b"), Access::kInspect), -1);
}

TEST(TieredPlanStore, ListsTheKeysOfBoth) {
  const auto shared = Shared();
  const Server server(shared);
  std::vector<PlanKey> keys = {KeyOf("a"), KeyOf("b"), KeyOf("c")};
  std::sort(keys.begin(), keys.end());
  ASSERT_TRUE(server.store->Put(KeyOf("a"), EntryOf("a")).ok());
  ASSERT_TRUE(shared->Put(KeyOf("b"), EntryOf("b")).ok());
  ASSERT_TRUE(server.fast->Put(KeyOf("c"), EntryOf("c")).ok());
  EXPECT_EQ(server.store->List(std::nullopt, 10).value(), keys);
  EXPECT_EQ(server.store->List(std::nullopt, 2).value(), (std::vector<PlanKey>{keys[0], keys[1]}));
  EXPECT_EQ(server.store->List(keys[1], 2).value(), std::vector<PlanKey>{keys[2]});
}

}  // namespace
}  // namespace stowage::testing
