#include "server/store/memory_plan_store.h"

#include <gtest/gtest.h>

#include "tests/server/store/entries.h"
#include "tests/server/support/failing_allocations.h"

namespace stowage::testing {
namespace {

bool Holds(MemoryPlanStore* store, const std::string& name) {
  return store->Get(KeyOf(name), Access::kPeek) != nullptr;
}

TEST(MemoryPlanStore, TheLeastRecentlyLookedUpGoesFirst) {
  const Bytes one = ChargeOf(*EntryOf("a"));
  MemoryPlanStore store(Bytes(3 * one.value()), 1);
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(store.Put(KeyOf(name), EntryOf(name)).ok());
  }
  store.Get(KeyOf("a"), Access::kLookup);
  store.Get(KeyOf("b"), Access::kPeek);  // does not save b
  ASSERT_TRUE(store.Put(KeyOf("d"), EntryOf("d")).ok());
  EXPECT_TRUE(Holds(&store, "a"));
  EXPECT_FALSE(Holds(&store, "b"));
  EXPECT_TRUE(Holds(&store, "c"));
  EXPECT_TRUE(Holds(&store, "d"));
  EXPECT_EQ(store.stats().evicted, 1);
}

TEST(MemoryPlanStore, ChargesBytesNotEntries) {
  const Bytes small = ChargeOf(*EntryOf("a"));
  const Bytes large = ChargeOf(*EntryOf("l", 10000));
  ASSERT_GE(large.value(), small.value() + 9000);
  MemoryPlanStore store(large + small, 1);
  ASSERT_TRUE(store.Put(KeyOf("a"), EntryOf("a")).ok());
  ASSERT_TRUE(store.Put(KeyOf("b"), EntryOf("b")).ok());
  ASSERT_TRUE(store.Put(KeyOf("l"), EntryOf("l", 10000)).ok());
  EXPECT_FALSE(Holds(&store, "a"));
  EXPECT_TRUE(Holds(&store, "b"));
  EXPECT_TRUE(Holds(&store, "l"));
  EXPECT_LE(store.stats().charged, large + small);
}

TEST(MemoryPlanStore, AnEntryOverTheLimitIsRefusedAndDropsNothing) {
  const Bytes one = ChargeOf(*EntryOf("a"));
  MemoryPlanStore store(one, 1);
  ASSERT_TRUE(store.Put(KeyOf("a"), EntryOf("a")).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(store.Put(KeyOf("b"), EntryOf("b", 100))));
  EXPECT_TRUE(absl::IsResourceExhausted(store.Put(KeyOf("a"), EntryOf("a", 100))));
  EXPECT_EQ(store.Get(KeyOf("a"), Access::kLookup)->plans[0].plan->explanation, "");
  EXPECT_EQ(store.stats().evicted, 0);
}

std::shared_ptr<PlanEntry> EntryOfSixPlans() {
  auto large = std::make_shared<PlanEntry>(*EntryOf("a", 1000));
  const auto plan = large->plans[0].plan;
  for (int64_t budget = 1; budget <= 5; ++budget) {
    auto next = std::make_shared<Plan>(*plan);
    next->budget = Bytes(budget);
    large->plans.push_back({next});
  }
  return large;
}

TEST(MemoryPlanStore, AnEntryOverTheLimitKeepsItsPinnedPlans) {
  auto large = EntryOfSixPlans();
  large->plans[1].pinned = large->plans[2].pinned = true;
  PlanEntry three = *large;
  three.plans.resize(3);
  MemoryPlanStore store(ChargeOf(three) + Bytes(10), 1);
  ASSERT_TRUE(store.Put(KeyOf("a"), large).ok());
  const auto kept = store.Get(KeyOf("a"), Access::kPeek);
  ASSERT_EQ(kept->plans.size(), 3u);
  EXPECT_TRUE(kept->plans[0].pinned && kept->plans[1].pinned);
  EXPECT_EQ(kept->plans[2].plan->budget, Bytes(5));
  for (StoredPlan& stored : large->plans) stored.pinned = true;
  EXPECT_TRUE(absl::IsResourceExhausted(store.Put(KeyOf("b"), large)));
}

TEST(MemoryPlanStore, AnEntryOverTheLimitIsKeptWithoutItsOldestPlans) {
  auto large = EntryOfSixPlans();
  PlanEntry three = *large;
  three.plans.erase(three.plans.begin(), three.plans.begin() + 3);
  MemoryPlanStore store(ChargeOf(three) + Bytes(10), 1);
  ASSERT_TRUE(store.Put(KeyOf("a"), large).ok());
  const auto kept = store.Get(KeyOf("a"), Access::kPeek);
  ASSERT_NE(kept, nullptr);
  ASSERT_EQ(kept->plans.size(), 3u);
  EXPECT_EQ(kept->plans.front().plan->budget, Bytes(3));
  EXPECT_EQ(kept->plans.back().plan->budget, Bytes(5));
  EXPECT_EQ(large->plans.size(), 6u);
}

TEST(MemoryPlanStore, NeverChargesMoreThanItsCapacity) {
  const Bytes one = ChargeOf(*EntryOf("a"));
  const Bytes capacity(40 * one.value());
  MemoryPlanStore store(capacity, 4);
  for (int i = 0; i < 500; ++i) {
    const std::string name = std::to_string(i);
    ASSERT_TRUE(store.Put(KeyOf(name), EntryOf(name, static_cast<size_t>(i) % 1000)).ok());
    ASSERT_LE(store.stats().charged, capacity);
  }
  EXPECT_EQ(store.stats().entries + store.stats().evicted, 500);
  EXPECT_GT(store.stats().entries, 10);
}

// Puts an entry under keys of its tenant's, from one number to before another.
void PutMany(MemoryPlanStore* store, const std::shared_ptr<const PlanEntry>& entry, int from,
             int to) {
  for (int i = from; i < to; ++i) {
    ASSERT_TRUE(store->Put(KeyOf(entry->tenant + std::to_string(i)), entry).ok());
  }
}

TEST(MemoryPlanStore, ATenantPushesOutNothingThatAnotherHoldsWithinItsShare) {
  const auto calm = EntryOf("a", 0, 1, "calm"), busy = EntryOf("a", 0, 1, "busy");
  ASSERT_EQ(ChargeOf(*calm), ChargeOf(*busy));
  for (const size_t shards : {1, 8}) {
    const auto each_shard = Bytes(100 * ChargeOf(*calm).value());
    MemoryPlanStore store(Bytes(each_shard.value() * static_cast<int64_t>(shards)), shards);
    // Half of it, less a 64th of the whole.
    PutMany(&store, calm, 0, 48);
    PutMany(&store, busy, 0, 10000);
    for (int i = 0; i < 48; ++i) EXPECT_TRUE(Holds(&store, "calm" + std::to_string(i))) << i;
    // What the one leaves the other has.
    EXPECT_EQ(store.stats().entries, static_cast<int64_t>(100 * shards));
    EXPECT_TRUE(Holds(&store, "busy9999"));
    EXPECT_FALSE(Holds(&store, "busy0"));
  }
}

// One without a tenant, asked for by that identity.
std::shared_ptr<const PlanEntry> EntryOfIdentity(uint64_t identity, size_t bytes = 0) {
  PlanEntry entry = *EntryOf("a", bytes);
  entry.samples = {{1, entry.reference, identity}};
  return std::make_shared<const PlanEntry>(std::move(entry));
}

TEST(MemoryPlanStore, AnIdentityWithoutATenantHasAShareOfItsOwn) {
  MemoryPlanStore store(Bytes(10 * ChargeOf(*EntryOfIdentity(1)).value()), 1);
  for (const char* key : {"calm", "calmer"}) {
    ASSERT_TRUE(store.Put(KeyOf(key), EntryOfIdentity(1)).ok());
  }
  PutMany(&store, EntryOfIdentity(2), 0, 100);
  EXPECT_TRUE(Holds(&store, "calm"));
  EXPECT_TRUE(Holds(&store, "calmer"));
  EXPECT_FALSE(Holds(&store, "0"));
  EXPECT_TRUE(Holds(&store, "99"));
  EXPECT_EQ(Keys(store.ListOf("", std::nullopt, 100)).size(), 10u) << "listed as one tenant's";
}

// As where each job has an identity of its own.
TEST(MemoryPlanStore, OfManyIdentitiesWithAPlanEachTheLeastRecentlyUsedPlanGoes) {
  constexpr int kHeld = 100;
  const Bytes largest = ChargeOf(*EntryOfIdentity(1, 1000));
  MemoryPlanStore store(Bytes(kHeld * largest.value()), 1);
  ASSERT_TRUE(store.Put(KeyOf("hot"), EntryOfIdentity(1, 1000)).ok());
  for (int i = 0; i < 5 * kHeld; ++i) {
    const auto entry = EntryOfIdentity(2 + static_cast<uint64_t>(i), static_cast<size_t>(i) % 900);
    ASSERT_TRUE(store.Put(KeyOf(std::to_string(i)), entry).ok());
    ASSERT_NE(store.Get(KeyOf("hot"), Access::kLookup), nullptr) << i;
  }
  EXPECT_GT(store.stats().evicted, 0);
  const int64_t oldest_kept = 5 * kHeld - (store.stats().entries - 1);
  for (int64_t i = 0; i < 5 * kHeld; ++i) {
    EXPECT_EQ(Holds(&store, std::to_string(i)), i >= oldest_kept) << i;
  }
}

TEST(MemoryPlanStore, ATenantAloneHasAllUntilAnotherComes) {
  const auto alone = EntryOf("a", 0, 1, "one"), late = EntryOf("a", 0, 1, "two");
  MemoryPlanStore store(Bytes(10 * ChargeOf(*alone).value()), 1);
  PutMany(&store, alone, 0, 10);
  EXPECT_EQ(store.stats().entries, 10);
  EXPECT_EQ(store.stats().evicted, 0);
  store.Get(KeyOf("one0"), Access::kLookup);
  PutMany(&store, late, 0, 20);
  for (int i = 0; i < 10; ++i) {
    const bool kept = i == 0 || i >= 6;  // the five that were looked up last
    EXPECT_EQ(Holds(&store, "one" + std::to_string(i)), kept) << i;
  }
  EXPECT_EQ(store.stats().entries, 10);
  EXPECT_EQ(store.stats().evicted, 20);
}

TEST(MemoryPlanStore, WhereMemoryRunsOutItHasWhatItHadBefore) {
  const std::string tenant(100, 't');
  const auto before = EntryOf("a", 10, 1, tenant), after = EntryOf("a", 20, 2, tenant);
  const auto other = EntryOf("b", 0, 1, tenant + "2");
  bool ran_out = true;
  int allocations = 0;
  for (; ran_out; ++allocations) {
    MemoryPlanStore store(kAmple, 1);
    ASSERT_TRUE(store.Put(KeyOf("a"), before).ok());
    const bool old_one = RunsOut(allocations, [&] { (void)store.Put(KeyOf("a"), after); });
    const auto& there = old_one ? before : after;
    EXPECT_EQ(store.Get(KeyOf("a"), Access::kPeek), there);
    EXPECT_EQ(store.stats().charged, ChargeOf(*there));
    const bool other_ran_out = RunsOut(allocations, [&] { (void)store.Put(KeyOf("b"), other); });
    const size_t entries = other_ran_out ? 1 : 2;
    EXPECT_EQ(Holds(&store, "b"), !other_ran_out);
    EXPECT_EQ(Keys(store.List(std::nullopt, 9)).size(), entries);
    EXPECT_EQ(Keys(store.ListOf(tenant, std::nullopt, 9)).size(), 1u);
    EXPECT_EQ(Keys(store.ListOf(tenant + "2", std::nullopt, 9)).size(), entries - 1);
    EXPECT_EQ(store.stats().entries, static_cast<int64_t>(entries));
    EXPECT_TRUE(*store.Erase(KeyOf("a")));
    EXPECT_EQ(store.stats().charged, other_ran_out ? Bytes(0) : ChargeOf(*other));
    ran_out = old_one || other_ran_out;
  }
  EXPECT_GT(allocations, 5);
}

std::shared_ptr<const PlanEntry> EntryOfTenant(const std::string& tenant, size_t explanation,
                                               int64_t generation = 1) {
  PlanEntry entry = *EntryOf("a", explanation, generation);
  entry.tenant = tenant;
  return std::make_shared<const PlanEntry>(std::move(entry));
}

TEST(MemoryPlanStore, WhatIsLargerThanItsTenantsShareGoesAsItComes) {
  const Bytes large = ChargeOf(*EntryOfTenant("t", 10000));
  const Bytes small = ChargeOf(*EntryOfTenant("t", 500));
  MemoryPlanStore store(large + small + small, 1);
  for (const char* key : {"1", "2", "3"}) {
    ASSERT_TRUE(store.Put(KeyOf(key), EntryOfTenant("small", 500)).ok());
  }
  ASSERT_TRUE(store.Put(KeyOf("large"), EntryOfTenant("large", 10000)).ok());
  EXPECT_FALSE(Holds(&store, "large"));
  EXPECT_EQ(store.stats().evicted, 1);
  EXPECT_EQ(store.stats().entries, 3);
}

// The tenant is in what a key is made of, so that none has another's. Should one come all the same, nothing of the former is left.
TEST(MemoryPlanStore, AnEntryOfAnotherTenantIsThatTenantsAlone) {
  const Bytes one = ChargeOf(*EntryOfTenant("t", 0));
  MemoryPlanStore store(Bytes(3 * one.value()), 1);
  ASSERT_TRUE(store.Put(KeyOf("a"), EntryOfTenant("t", 0, 1)).ok());
  ASSERT_TRUE(store.Put(KeyOf("a"), EntryOfTenant("u", 0, 2)).ok());
  EXPECT_TRUE(store.ListOf("t", std::nullopt, 10)->empty());
  EXPECT_EQ(store.ListOf("u", std::nullopt, 10)->size(), 1u);
  EXPECT_EQ(store.stats().charged, one);
  for (const char* key : {"b", "c", "d"}) {
    ASSERT_TRUE(store.Put(KeyOf(key), EntryOfTenant("t", 0)).ok());
  }
  EXPECT_TRUE(Holds(&store, "a")) << "the others hold more";
  EXPECT_FALSE(Holds(&store, "b"));
}

}  // namespace
}  // namespace stowage::testing
