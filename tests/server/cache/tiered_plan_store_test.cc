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
#include "tests/server/support/forwarding_store.h"

namespace stowage::testing {
namespace {

constexpr Bytes kAmple{64 << 20};
constexpr std::chrono::milliseconds kFreshness{200};
constexpr std::optional<std::chrono::nanoseconds> kForever = std::chrono::hours(1);
const PlanKey kKey = KeyOf("a");

// A server: a tiered store, and hands on its tiers.
struct Server {
  explicit Server(const std::shared_ptr<PlanStore>& shared,
                  std::optional<std::chrono::nanoseconds> freshness = std::nullopt) {
    auto memory = std::make_unique<MemoryPlanStore>(kAmple);
    auto remote = std::make_unique<RemoteStore>(shared);
    fast = memory.get();
    slow = remote.get();
    store = std::make_unique<TieredPlanStore>(std::move(memory), std::move(remote), freshness);
  }
  int64_t GenerationOf(const PlanKey& key, Access access = Access::kLookup) const {
    const auto entry = store->Get(key, access);
    return entry ? entry->generation : -1;
  }

  MemoryPlanStore* fast;
  RemoteStore* slow;
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

// Wherever its generations begin, and also while the copy is ahead of what was there before.
TEST(TieredPlanStore, WhatWasMadeAnewReplacesAnotherHistory) {
  for (const int64_t anew : {2 * kChangesPerHistory + 1, 4 * kChangesPerHistory + 1}) {
    for (const bool ahead : {false, true}) {
      const auto shared = Shared();
      const Server server(shared, kFreshness);
      const int64_t old = 3 * kChangesPerHistory + 5;
      ASSERT_TRUE(server.store->Put(kKey, EntryOf("a", 0, old)).ok());
      shared->SetOut(ahead);
      ASSERT_TRUE(
          server.store->Replace(kKey, old, EntryOf("a", 0, old + 1), Durability::kBestEffort).ok());
      shared->SetOut(false);
      ASSERT_TRUE(*shared->Erase(kKey));
      ASSERT_TRUE(shared->Put(kKey, EntryOf("a", 0, anew)).ok());
      GrowStale();
      EXPECT_EQ(server.GenerationOf(kKey), anew);
      EXPECT_EQ(shared->Get(kKey, Access::kPeek)->generation, anew);
    }
  }
}

// As after a restart of this server, which had changed it while the slow tier was away.
TEST(TieredPlanStore, WhatIsNewerInOneHistoryGoesIntoTheSlowTier) {
  const auto shared = Shared();
  const Server server(shared, kFreshness);
  ASSERT_TRUE(shared->Put(kKey, EntryOf("a", 0, 5)).ok());
  ASSERT_TRUE(server.fast->Put(kKey, EntryOf("a", 0, 6)).ok());
  EXPECT_EQ(server.GenerationOf(kKey), 6);
  EXPECT_EQ(shared->Get(kKey, Access::kPeek)->generation, 6);
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
  TieredPlanStore store(std::make_unique<MemoryPlanStore>(one, 1),
                        std::make_unique<RemoteStore>(shared));
  ASSERT_TRUE(store.Put(kKey, EntryOf("a")).ok());
  ASSERT_TRUE(store.Put(kKey, EntryOf("a", 1000, 2)).ok());
  EXPECT_EQ(store.Get(kKey, Access::kLookup)->generation, 2);
  EXPECT_FALSE(store.GetNow(kKey, Access::kLookup).has_value()) << "an old copy must not serve";
}

TEST(TieredPlanStore, AVisitSeesWhatCountsAndLeavesBothAsTheyAre) {
  const auto shared = Shared();
  const Server server(shared, kFreshness);
  ASSERT_TRUE(shared->Put(KeyOf("b"), EntryOf("b")).ok());
  EXPECT_EQ(server.GenerationOf(KeyOf("b"), Access::kVisit), 1);
  EXPECT_EQ(server.fast->stats().entries, 0);
  ASSERT_TRUE(server.store->Put(kKey, EntryOf("a")).ok());
  ASSERT_TRUE(shared->Put(kKey, EntryOf("a", 0, 2)).ok());
  EXPECT_EQ(server.GenerationOf(kKey, Access::kVisit), 1) << "it may be that old";
  GrowStale();
  EXPECT_EQ(server.GenerationOf(kKey, Access::kVisit), 2);
  EXPECT_EQ(server.fast->Get(kKey, Access::kPeek)->generation, 1);
  shared->SetOut(true);
  EXPECT_EQ(server.GenerationOf(kKey, Access::kVisit), 1);
  EXPECT_EQ(server.GenerationOf(KeyOf("b"), Access::kVisit), -1);
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
class EraseDuringLook final : public ForwardingStore {
 public:
  EraseDuringLook() : ForwardingStore(std::make_shared<MemoryPlanStore>(kAmple)) {}
  PlanAnswer Look(const PlanKey& key, Access access) override {
    PlanAnswer answer = ForwardingStore::Look(key, access);
    if (during) std::exchange(during, nullptr)();
    return answer;
  }
  std::optional<std::shared_ptr<const PlanEntry>> GetNow(const PlanKey&, Access) override {
    return std::nullopt;
  }

  std::function<void()> during;
};

TEST(TieredPlanStore, AnEraseDuringAReadLeavesNoCopy) {
  auto slow = std::make_unique<EraseDuringLook>();
  EraseDuringLook* const slow_tier = slow.get();
  ASSERT_TRUE(slow->Put(kKey, EntryOf("a")).ok());
  TieredPlanStore store(std::make_unique<MemoryPlanStore>(kAmple), std::move(slow));
  slow_tier->during = [&store] { EXPECT_TRUE(*store.Erase(kKey)); };
  EXPECT_NE(store.Get(kKey, Access::kLookup), nullptr) << "read before it was erased";
  EXPECT_EQ(store.Get(kKey, Access::kLookup), nullptr);
}

TEST(TieredPlanStore, AChangeThatMustNotBeLostIsInBothTiersOrNowhere) {
  for (const auto& freshness : {std::optional<std::chrono::nanoseconds>(), kForever}) {
    const auto shared = Shared();
    const Server server(shared, freshness);
    ASSERT_TRUE(server.store->Put(kKey, EntryOf("a")).ok());
    shared->SetOut(true);
    const auto change = [&](int64_t read, Durability durability) {
      return server.store->Replace(kKey, read, EntryOf("a", 0, read + 1), durability);
    };
    EXPECT_TRUE(absl::IsUnavailable(change(1, Durability::kRequired)));
    EXPECT_EQ(server.GenerationOf(kKey), 1) << "nor in the fast one";
    EXPECT_TRUE(change(1, Durability::kBestEffort).ok());
    EXPECT_EQ(server.GenerationOf(kKey), 2);
    EXPECT_TRUE(absl::IsUnavailable(change(2, Durability::kRequired)));
    EXPECT_TRUE(change(2, Durability::kBestEffort).ok());
    shared->SetOut(false);
    ASSERT_EQ(server.GenerationOf(kKey, Access::kUpdate), 3);
    EXPECT_TRUE(change(3, Durability::kRequired).ok());
    EXPECT_EQ(server.GenerationOf(kKey), 4);
    EXPECT_EQ(shared->Get(kKey, Access::kPeek)->generation, 4);
  }
}

TEST(TieredPlanStore, AnEraseThatMissesATierIsAnErrorAndTakesNothing) {
  const auto shared = Shared();
  const Server server(shared);
  ASSERT_TRUE(server.store->Put(kKey, EntryOf("a")).ok());
  shared->SetOut(true);
  EXPECT_TRUE(absl::IsUnavailable(server.store->Erase(kKey).status()));
  EXPECT_EQ(server.GenerationOf(kKey), 1) << "it would come back";
  shared->SetOut(false);
  EXPECT_TRUE(*server.store->Erase(kKey));
  EXPECT_FALSE(*server.store->Erase(kKey));
}

TEST(TieredPlanStore, AChangeOfWhatWasErasedMeanwhileDoesNotBringItBack) {
  const auto shared = Shared();
  const Server server(shared);
  const auto change = [&](int64_t read) {
    return server.store->Replace(kKey, read, EntryOf("a", 0, read + 1), Durability::kBestEffort);
  };
  ASSERT_TRUE(change(0).ok());
  ASSERT_EQ(server.GenerationOf(kKey, Access::kUpdate), 1);
  ASSERT_TRUE(*server.store->Erase(kKey));
  EXPECT_TRUE(absl::IsAborted(change(1)));
  EXPECT_EQ(server.GenerationOf(kKey), -1);
  EXPECT_EQ(shared->Get(kKey, Access::kPeek), nullptr);
}

// A file that has evicted what is hot in memory.
TEST(TieredPlanStore, WhatTheSlowTierHasLetGoIsChangedInBoth) {
  const auto shared = Shared();
  const Server server(shared);
  ASSERT_TRUE(server.store->Put(kKey, EntryOf("a", 0, 3)).ok());
  ASSERT_TRUE(*shared->Erase(kKey));
  EXPECT_EQ(server.GenerationOf(kKey), 3);
  EXPECT_EQ(shared->Get(kKey, Access::kPeek), nullptr) << "a lookup leaves it so";
  ASSERT_EQ(server.GenerationOf(kKey, Access::kUpdate), 3);
  EXPECT_TRUE(server.store->Replace(kKey, 3, EntryOf("a", 0, 4), Durability::kRequired).ok());
  EXPECT_EQ(shared->Get(kKey, Access::kPeek)->generation, 4);
}

// A copy that is given back while the entry is erased.
TEST(TieredPlanStore, AnEraseDuringAnUpdateIsNotUndoneByGivingBack) {
  auto slow = std::make_unique<EraseDuringLook>();
  EraseDuringLook* const slow_tier = slow.get();
  TieredPlanStore store(std::make_unique<MemoryPlanStore>(kAmple), std::move(slow));
  ASSERT_TRUE(store.Put(kKey, EntryOf("a")).ok());
  ASSERT_TRUE(*slow_tier->Erase(kKey)) << "evicted";
  slow_tier->during = [&store] { EXPECT_TRUE(*store.Erase(kKey)); };
  store.Get(kKey, Access::kUpdate);
  EXPECT_EQ(slow_tier->Get(kKey, Access::kPeek), nullptr);
  EXPECT_EQ(store.Get(kKey, Access::kLookup), nullptr);
}

}  // namespace
}  // namespace stowage::testing
