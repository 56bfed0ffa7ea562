#include "server/store/faulty_plan_store.h"

#include <gtest/gtest.h>

#include <utility>

#include "server/store/memory_plan_store.h"
#include "tests/server/store/entries.h"

namespace stowage::testing {
namespace {

constexpr int kRounds = 2000;
const PlanKey kKey = KeyOf("a");

FaultyPlanStore With(const FaultPolicy& policy) {
  return FaultyPlanStore(std::make_unique<MemoryPlanStore>(kAmple), policy);
}

bool SameAs(const PlanEntry& a, const PlanEntry& b) {
  return a.canonical == b.canonical && a.plans[0].plan->schedule == b.plans[0].plan->schedule &&
         a.plans[0].plan->prediction.peak == b.plans[0].plan->prediction.peak;
}

TEST(FaultyPlanStore, MissesAsOftenAsItWasToldAndSaysWhy) {
  FaultPolicy policy;
  policy.miss = 0.3;
  FaultyPlanStore store = With(policy);
  ASSERT_TRUE(store.Put(kKey, EntryOf("a")).ok());
  int misses = 0;
  for (int i = 0; i < kRounds; ++i) {
    const PlanAnswer answer = store.Look(kKey, Access::kLookup);
    if (answer.entry) continue;
    EXPECT_EQ(answer.absence, Absence::kFailed);
    ++misses;
  }
  EXPECT_NEAR(misses, 0.3 * kRounds, 100);
  EXPECT_EQ(store.injected(Fault::kMiss), misses);
}

TEST(FaultyPlanStore, TheSeedDecides) {
  FaultPolicy policy;
  policy.miss = 0.5;
  const auto misses = [&policy] {
    FaultyPlanStore store = With(policy);
    EXPECT_TRUE(store.Put(kKey, EntryOf("a")).ok());
    std::string pattern;
    for (int i = 0; i < 100; ++i) pattern += store.Get(kKey, Access::kLookup) ? '.' : 'x';
    return pattern;
  };
  const std::string first = misses();
  EXPECT_EQ(misses(), first);
  policy.seed = 2;
  EXPECT_NE(misses(), first);
}

TEST(FaultyPlanStore, AFailedPutLeavesWhatWasThere) {
  FaultPolicy policy;
  policy.failed_put = 0.5;
  FaultyPlanStore store = With(policy);
  int64_t kept = -1;
  for (int64_t generation = 1; generation <= 100; ++generation) {
    const absl::Status put = store.Put(kKey, EntryOf("a", 0, generation));
    if (put.ok()) kept = generation;
    EXPECT_TRUE(put.ok() || absl::IsUnavailable(put)) << put;
    const auto entry = store.Get(kKey, Access::kLookup);
    EXPECT_EQ(entry ? entry->generation : -1, kept);
  }
  EXPECT_GT(store.injected(Fault::kFailedPut), 20);
}

TEST(FaultyPlanStore, AStaleAnswerIsTheOneBefore) {
  FaultPolicy policy;
  policy.stale = 0.5;
  FaultyPlanStore store = With(policy);
  ASSERT_TRUE(store.Put(kKey, EntryOf("a", 0, 1)).ok());
  ASSERT_TRUE(store.Put(kKey, EntryOf("a", 0, 2)).ok());
  int old = 0;
  for (int i = 0; i < kRounds; ++i) {
    const int64_t generation = store.Get(kKey, Access::kLookup)->generation;
    EXPECT_TRUE(generation == 1 || generation == 2) << generation;
    if (generation == 1) ++old;
  }
  EXPECT_NEAR(old, 0.5 * kRounds, 120);
}

TEST(FaultyPlanStore, AFlippedEntryDiffersAndTheStoresOwnDoesNot) {
  FaultPolicy policy;
  policy.flipped = 1;
  FaultyPlanStore store = With(policy);
  const auto put = EntryOf("canonical bytes");
  const PlanEntry before = *put;
  ASSERT_TRUE(store.Put(kKey, put).ok());
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(SameAs(*store.Get(kKey, Access::kLookup), before)) << i;
    EXPECT_FALSE(SameAs(**store.GetNow(kKey, Access::kLookup), before)) << i;
  }
  EXPECT_TRUE(SameAs(*put, before));
}

TEST(FaultyPlanStore, AnOutageEnds) {
  FaultyPlanStore store = With(FaultPolicy{});
  ASSERT_TRUE(store.Put(kKey, EntryOf("a")).ok());
  store.SetOut(true);
  EXPECT_EQ(store.Look(kKey, Access::kLookup).absence, Absence::kFailed);
  EXPECT_FALSE(store.GetNow(kKey, Access::kLookup).has_value());
  EXPECT_TRUE(absl::IsUnavailable(store.Put(kKey, EntryOf("a", 0, 2))));
  EXPECT_TRUE(absl::IsUnavailable(store.Erase(kKey).status()));
  store.SetOut(false);
  EXPECT_EQ(store.Get(kKey, Access::kLookup)->generation, 1);
}

}  // namespace
}  // namespace stowage::testing
