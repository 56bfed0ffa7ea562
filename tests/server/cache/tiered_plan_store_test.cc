#include "server/cache/tiered_plan_store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <utility>

#include "server/cache/faulty_plan_store.h"
#include "server/cache/memory_plan_store.h"
#include "server/cache/metrics_plan_store.h"
#include "tests/server/cache/entries.h"
#include "tests/server/support/counting_metrics.h"

namespace stowage::testing {
namespace {

constexpr Bytes kAmple{64 << 20};
constexpr std::chrono::milliseconds kFreshness{200};
const PlanKey kKey = KeyOf("a");

// A store that several others see.
class View final : public PlanStore {
 public:
  explicit View(std::shared_ptr<PlanStore> store) : store_(std::move(store)) {}
  std::shared_ptr<const PlanEntry> Get(const PlanKey& key, Access access) override {
    return Look(key, access).entry;
  }
  PlanAnswer Look(const PlanKey& key, Access access) override {
    ++looks;
    return store_->Look(key, access);
  }
  std::optional<std::shared_ptr<const PlanEntry>> GetNow(const PlanKey&, Access) override {
    return std::nullopt;
  }
  absl::Status Put(const PlanKey& key, std::shared_ptr<const PlanEntry> entry) override {
    return store_->Put(key, std::move(entry));
  }
  bool Erase(const PlanKey& key) override { return store_->Erase(key); }
  std::vector<PlanKey> List(const std::optional<PlanKey>& after, size_t limit) override {
    return store_->List(after, limit);
  }
  PlanStoreStats stats() const override { return store_->stats(); }

  std::atomic<int> looks{0};

 private:
  const std::shared_ptr<PlanStore> store_;
};

// A server: a tiered store, and hands on its tiers.
struct Server {
  explicit Server(const std::shared_ptr<PlanStore>& shared,
                  std::optional<std::chrono::nanoseconds> freshness = std::nullopt) {
    auto memory = std::make_unique<MemoryPlanStore>(kAmple);
    auto view = std::make_unique<View>(shared);
    fast = memory.get();
    slow = view.get();
    store = std::make_unique<TieredPlanStore>(std::move(memory), std::move(view), freshness);
  }
  int64_t GenerationOf(const PlanKey& key, Access access = Access::kLookup) const {
    const auto entry = store->Get(key, access);
    return entry ? entry->generation : -1;
  }

  MemoryPlanStore* fast;
  View* slow;
  std::unique_ptr<TieredPlanStore> store;
};

std::shared_ptr<FaultyPlanStore> Shared() {
  return std::make_shared<FaultyPlanStore>(std::make_unique<MemoryPlanStore>(kAmple),
                                           FaultPolicy{});
}

void GrowStale() { std::this_thread::sleep_for(kFreshness + std::chrono::milliseconds(5)); }

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
      std::make_unique<View>(shared));
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
  ASSERT_TRUE(shared->Erase(kKey));  // of memory: nobody remembers that it was
  GrowStale();
  EXPECT_EQ(server.GenerationOf(kKey), 3);
  EXPECT_EQ(shared->Get(kKey, Access::kPeek)->generation, 3);
}

TEST(TieredPlanStore, WhatWasMadeAnewReplacesAnOlderHistory) {
  const auto shared = Shared();
  const Server server(shared, kFreshness);
  ASSERT_TRUE(server.store->Put(kKey, EntryOf("a", 0, 5)).ok());
  shared->Erase(kKey);
  ASSERT_TRUE(shared->Put(kKey, EntryOf("a", 0, 1)).ok());
  GrowStale();
  EXPECT_EQ(server.GenerationOf(kKey), 1);
  EXPECT_EQ(shared->Get(kKey, Access::kPeek)->generation, 1);
}

TEST(TieredPlanStore, OfTwoHistoriesTheSlowTiersCounts) {
  const auto shared = Shared();
  const Server server(shared, kFreshness);
  ASSERT_TRUE(server.store->Put(kKey, EntryOf("a")).ok());
  shared->SetOut(true);
  ASSERT_TRUE(server.store->Put(kKey, EntryOf("a", 100, 2)).ok());
  shared->SetOut(false);
  ASSERT_TRUE(shared->Put(kKey, EntryOf("a", 0, 2)).ok());
  GrowStale();
  EXPECT_EQ(server.store->Get(kKey, Access::kLookup)->plans[0].plan->explanation, "");
  EXPECT_EQ(server.store->Get(kKey, Access::kLookup)->plans[0].plan->explanation, "");
}

TEST(TieredPlanStore, WhatDoesNotFitTheFastTierIsServedFromTheSlowOne) {
  const auto shared = Shared();
  const Bytes one = ChargeOf(*EntryOf("a"));
  TieredPlanStore store(std::make_unique<MemoryPlanStore>(one, 1), std::make_unique<View>(shared));
  ASSERT_TRUE(store.Put(kKey, EntryOf("a")).ok());
  ASSERT_TRUE(store.Put(kKey, EntryOf("a", 1000, 2)).ok());
  EXPECT_EQ(store.Get(kKey, Access::kLookup)->generation, 2);
  EXPECT_FALSE(store.GetNow(kKey, Access::kLookup).has_value()) << "an old copy must not serve";
}

TEST(TieredPlanStore, ListsTheKeysOfBoth) {
  const auto shared = Shared();
  const Server server(shared);
  std::vector<PlanKey> keys = {KeyOf("a"), KeyOf("b"), KeyOf("c")};
  std::sort(keys.begin(), keys.end());
  ASSERT_TRUE(server.store->Put(KeyOf("a"), EntryOf("a")).ok());
  ASSERT_TRUE(shared->Put(KeyOf("b"), EntryOf("b")).ok());
  ASSERT_TRUE(server.fast->Put(KeyOf("c"), EntryOf("c")).ok());
  EXPECT_EQ(server.store->List(std::nullopt, 10), keys);
  EXPECT_EQ(server.store->List(std::nullopt, 2), (std::vector<PlanKey>{keys[0], keys[1]}));
  EXPECT_EQ(server.store->List(keys[1], 2), std::vector<PlanKey>{keys[2]});
}

// An Erase between a read of the slow tier and the fill of the fast one.
class EraseDuringLook final : public PlanStore {
 public:
  std::shared_ptr<const PlanEntry> Get(const PlanKey& key, Access access) override {
    auto entry = store_.Get(key, access);
    if (during) std::exchange(during, nullptr)();
    return entry;
  }
  std::optional<std::shared_ptr<const PlanEntry>> GetNow(const PlanKey&, Access) override {
    return std::nullopt;
  }
  absl::Status Put(const PlanKey& key, std::shared_ptr<const PlanEntry> entry) override {
    return store_.Put(key, std::move(entry));
  }
  bool Erase(const PlanKey& key) override { return store_.Erase(key); }
  std::vector<PlanKey> List(const std::optional<PlanKey>&, size_t) override { return {}; }
  PlanStoreStats stats() const override { return store_.stats(); }

  std::function<void()> during;

 private:
  MemoryPlanStore store_{kAmple};
};

TEST(TieredPlanStore, AnEraseDuringAReadLeavesNoCopy) {
  auto slow = std::make_unique<EraseDuringLook>();
  EraseDuringLook* const slow_tier = slow.get();
  ASSERT_TRUE(slow->Put(kKey, EntryOf("a")).ok());
  TieredPlanStore store(std::make_unique<MemoryPlanStore>(kAmple), std::move(slow));
  slow_tier->during = [&store] { EXPECT_TRUE(store.Erase(kKey)); };
  EXPECT_NE(store.Get(kKey, Access::kLookup), nullptr) << "read before it was erased";
  EXPECT_EQ(store.Get(kKey, Access::kLookup), nullptr);
}

}  // namespace
}  // namespace stowage::testing
