#include <gtest/gtest.h>

#include <chrono>

#include "server/store/faulty_plan_store.h"
#include "server/store/memory_plan_store.h"
#include "server/store/metrics_plan_store.h"
#include "server/store/tiered_plan_store.h"
#include "tests/server/store/plan_store_conformance.h"
#include "tests/server/store/sqlite_files.h"
#include "tests/server/support/counting_metrics.h"

namespace stowage::testing {
namespace {

std::unique_ptr<PlanStore> Memory() { return std::make_unique<MemoryPlanStore>(kAmple); }

std::unique_ptr<PlanStore> OneShard() { return std::make_unique<MemoryPlanStore>(kAmple, 1); }

std::unique_ptr<PlanStore> Counted() {
  static NoMetrics no_metrics;
  return std::make_unique<MetricsPlanStore>(Memory(), CacheTier::kMemory, &no_metrics);
}

std::unique_ptr<PlanStore> Sqlite() { return std::make_unique<SqliteInFolder>(false); }

std::unique_ptr<PlanStore> SqliteReopened() { return std::make_unique<SqliteInFolder>(true); }

std::unique_ptr<PlanStore> Tiered() {
  return std::make_unique<TieredPlanStore>(Memory(), Memory());
}

// Nearly every Get compares.
std::unique_ptr<PlanStore> TieredAndShared() {
  return std::make_unique<TieredPlanStore>(Memory(), Memory(), std::chrono::microseconds(1));
}

std::unique_ptr<PlanStore> ThreeTiers() {
  return std::make_unique<TieredPlanStore>(Memory(), Tiered());
}

std::unique_ptr<PlanStore> WithoutFaults() {
  return std::make_unique<FaultyPlanStore>(Memory(), FaultPolicy{});
}

INSTANTIATE_TEST_SUITE_P(Stores, PlanStoreConformance,
                         ::testing::Values(StoreFactory{"Memory", Memory},
                                           StoreFactory{"MemoryOneShard", OneShard},
                                           StoreFactory{"Metrics", Counted},
                                           StoreFactory{"Sqlite", Sqlite},
                                           StoreFactory{"SqliteReopened", SqliteReopened},
                                           StoreFactory{"Tiered", Tiered},
                                           StoreFactory{"TieredAndShared", TieredAndShared},
                                           StoreFactory{"ThreeTiers", ThreeTiers},
                                           StoreFactory{"WithoutFaults", WithoutFaults}),
                         [](const auto& store) { return store.param.name; });

TEST(MetricsPlanStore, CountsLookupsButNotPeeks) {
  CountingMetrics metrics;
  MetricsPlanStore store(Memory(), CacheTier::kMemory, &metrics);
  store.Get(KeyOf("a"), Access::kLookup);
  store.Get(KeyOf("a"), Access::kPeek);
  ASSERT_TRUE(store.Put(KeyOf("a"), EntryOf("a")).ok());
  store.Get(KeyOf("a"), Access::kLookup);
  store.Get(KeyOf("a"), Access::kLookup);
  store.Get(KeyOf("a"), Access::kPeek);
  EXPECT_EQ(metrics.cache_misses, 1);
  EXPECT_EQ(metrics.cache_hits, 2);
}

TEST(MetricsPlanStore, CountsWhatItCouldNotKeep) {
  CountingMetrics metrics;
  const Bytes one = ChargeOf(*EntryOf("a"));
  MetricsPlanStore store(std::make_unique<MemoryPlanStore>(one, 1), CacheTier::kMemory, &metrics);
  ASSERT_TRUE(store.Put(KeyOf("a"), EntryOf("a")).ok());
  EXPECT_EQ(metrics.cache_refusals, 0);
  EXPECT_FALSE(store.Put(KeyOf("b"), EntryOf("b", 1000)).ok());
  EXPECT_EQ(metrics.cache_refusals, 1);
}

TEST(MetricsPlanStore, PublishesSizeAndEvictions) {
  CountingMetrics metrics;
  const Bytes one = ChargeOf(*EntryOf("a"));
  MetricsPlanStore store(std::make_unique<MemoryPlanStore>(one + one, 1), CacheTier::kMemory,
                         &metrics);
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(store.Put(KeyOf(name), EntryOf(name)).ok());
  }
  EXPECT_EQ(metrics.cache_entries, 2);
  EXPECT_EQ(metrics.cache_bytes, 2 * one.value());
  EXPECT_EQ(metrics.cache_evictions, 1);
  ASSERT_TRUE(*store.Erase(KeyOf("c")));
  EXPECT_EQ(metrics.cache_entries, 1);
  EXPECT_EQ(metrics.cache_evictions, 1);
}

}  // namespace
}  // namespace stowage::testing
