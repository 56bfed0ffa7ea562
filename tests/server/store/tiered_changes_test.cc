// What is changed, made anew and erased in tiers, and that nothing of it is undone or only half done.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/decisions/decided_plan_store.h"
#include "server/store/tiered_plan_store.h"
#include "tests/server/store/tiered_server.h"

namespace stowage::testing {
namespace {

// Wherever its generations begin, and also while the copy is ahead of what was there before.
TEST(TieredChanges, WhatWasMadeAnewReplacesAnotherHistory) {
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
TEST(TieredChanges, WhatIsNewerInOneHistoryGoesIntoTheSlowTier) {
  const auto shared = Shared();
  const Server server(shared, kFreshness);
  ASSERT_TRUE(shared->Put(kKey, EntryOf("a", 0, 5)).ok());
  ASSERT_TRUE(server.fast->Put(kKey, EntryOf("a", 0, 6)).ok());
  EXPECT_EQ(server.GenerationOf(kKey), 6);
  EXPECT_EQ(shared->Get(kKey, Access::kPeek)->generation, 6);
}

// For what nobody has decided: what was, is applied over whatever a tier returns.
TEST(TieredChanges, OfTwoHistoriesTheSlowTiersCountsButNotAgainstADecision) {
  NoMetrics metrics;
  const auto shared = Shared();
  Server server(shared, kFreshness);
  TieredPlanStore* const tiers = server.store.get();
  auto book = DecisionBook::Open(std::make_unique<MemoryDecisionStore>(), nullptr, &metrics);
  ASSERT_TRUE(book.ok()) << book.status();
  DecidedPlanStore decided(std::move(server.store), *std::move(book));
  ASSERT_TRUE(decided.Put(kKey, EntryOf("a")).ok());
  auto pinned = std::make_shared<PlanEntry>(*EntryOf("a", 0, 2));
  pinned->plans[0].pinned = true;
  ASSERT_TRUE(decided.Replace(kKey, 1, pinned, Durability::kRequired).ok());
  shared->SetOut(true);
  ASSERT_TRUE(tiers->Put(kKey, EntryOf("a", 100, 3)).ok());
  shared->SetOut(false);
  ASSERT_TRUE(*shared->Erase(kKey));
  ASSERT_TRUE(shared->Put(kKey, EntryOf("a", 0, 3)).ok()) << "made anew, by who knew no pin";
  GrowStale();
  for (int i = 0; i < 2; ++i) {
    const auto entry = decided.Get(kKey, Access::kLookup);
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->generation, 3);
    EXPECT_EQ(entry->plans[0].plan->explanation, "");
    EXPECT_TRUE(entry->plans[0].pinned);
  }
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

TEST(TieredChanges, AnEraseDuringAReadLeavesNoCopy) {
  auto slow = std::make_unique<EraseDuringLook>();
  EraseDuringLook* const slow_tier = slow.get();
  ASSERT_TRUE(slow->Put(kKey, EntryOf("a")).ok());
  TieredPlanStore store(std::make_unique<MemoryPlanStore>(kAmple), std::move(slow));
  slow_tier->during = [&store] { EXPECT_TRUE(*store.Erase(kKey)); };
  EXPECT_NE(store.Get(kKey, Access::kLookup), nullptr) << "read before it was erased";
  EXPECT_EQ(store.Get(kKey, Access::kLookup), nullptr);
}

TEST(TieredChanges, AChangeThatMustNotBeLostIsInBothTiersOrNowhere) {
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

// Memory before a file before a shared tier, of which the file comes back first.
TEST(TieredChanges, WhatOneOfThreeTiersCannotTakeIsNowhere) {
  const auto file = Shared(), shared = Shared();
  TieredPlanStore store(
      std::make_unique<MemoryPlanStore>(kAmple),
      std::make_unique<TieredPlanStore>(std::make_unique<RemoteStore>(file),
                                        std::make_unique<RemoteStore>(shared), kForever),
      kForever);
  file->SetOut(true);
  shared->SetOut(true);
  ASSERT_TRUE(store.Replace(kKey, 0, EntryOf("a"), Durability::kBestEffort).ok());
  file->SetOut(false);
  EXPECT_TRUE(
      absl::IsUnavailable(store.Replace(kKey, 1, EntryOf("a", 0, 2), Durability::kRequired)));
  EXPECT_EQ(store.Get(kKey, Access::kLookup)->generation, 1);
  EXPECT_EQ(file->Get(kKey, Access::kPeek), nullptr);
}

// Of a stripe 4096 are remembered. Those whose copies are gone must not take the room of others.
TEST(TieredChanges, WhatTheFastTierHasEvictedIsNotRememberedAsAheadOfTheSlowOne) {
  const auto shared = Shared();
  const auto entry = EntryOf("a");
  TieredPlanStore store(std::make_unique<MemoryPlanStore>(Bytes(8 * ChargeOf(*entry).value()), 1),
                        std::make_unique<RemoteStore>(shared), kForever);
  ASSERT_TRUE(store.Put(kKey, entry).ok());
  shared->SetOut(true);
  for (int i = 0, others = 0; others < 5000; ++i) {
    const PlanKey other = KeyOf(absl::StrCat("other", i));
    if (other.digest.bytes().front() % 16 != kKey.digest.bytes().front() % 16) continue;
    ASSERT_TRUE(store.Put(other, entry).ok());
    ++others;
  }
  ASSERT_TRUE(store.Put(kKey, EntryOf("a", 0, 2)).ok());
  shared->SetOut(false);
  EXPECT_TRUE(store.Replace(kKey, 2, EntryOf("a", 0, 3), Durability::kBestEffort).ok());
  EXPECT_EQ(shared->Get(kKey, Access::kPeek)->generation, 3);
}

TEST(TieredChanges, AnEraseThatMissesATierIsAnErrorAndTakesNothing) {
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

TEST(TieredChanges, AChangeOfWhatWasErasedMeanwhileDoesNotBringItBack) {
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
TEST(TieredChanges, WhatTheSlowTierHasLetGoIsChangedInBoth) {
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
TEST(TieredChanges, AnEraseDuringAnUpdateIsNotUndoneByGivingBack) {
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
