#include "tests/bench/cluster/day_model.h"

#include <gtest/gtest.h>

#include "tests/bench/cluster/lru.h"

namespace stowage {
namespace {

ClusterModel Small() {
  ClusterModel model;
  model.jobs_per_day = 3000;
  model.networks = 50;
  return model;
}

TEST(Lru, DropsWhatWasUsedLongestAgo) {
  Lru lru(3);
  for (uint64_t key = 1; key <= 3; ++key) lru.Insert(key, 1);
  EXPECT_TRUE(lru.Touch(1));
  lru.Insert(4, 1);
  EXPECT_FALSE(lru.Touch(2));
  EXPECT_TRUE(lru.Touch(1) && lru.Touch(3) && lru.Touch(4));
  lru.Insert(5, 4);
  EXPECT_FALSE(lru.Touch(5));
  lru.Insert(6, 2);
  EXPECT_DOUBLE_EQ(lru.used(), 3);
  EXPECT_EQ(lru.size(), 2u);
  lru.Remove(6);
  EXPECT_DOUBLE_EQ(lru.used(), 1);
}

TEST(DayModel, EveryJobIsAHitOrASolve) {
  for (const double shared : {0.0, 64.0}) {
    ClusterModel model = Small();
    model.shared_megabytes = shared;
    for (const DayCount& day : SimulateDays(model)) {
      EXPECT_EQ(day.jobs, 3000);
      EXPECT_EQ(day.memory_hits + day.file_hits + day.shared_hits + day.solves, day.jobs);
      EXPECT_GE(day.solves, day.firsts);
    }
  }
}

TEST(DayModel, WithoutChangesAndWithRoomOnlyFirstsAreSolved) {
  ClusterModel model = Small();
  model.replicas = 1;
  model.churn_hours = model.upgrade_hour = model.failover_hour = 1e9;
  for (const DayCount& day : SimulateDays(model)) {
    EXPECT_EQ(day.solves, day.firsts);
    EXPECT_DOUBLE_EQ(day.HitRatio(), 1);
    EXPECT_EQ(day.resolves, 0);
  }
}

TEST(DayModel, ASharedTierSavesSolvesAndLosingItCostsThem) {
  ClusterModel alone = Small();
  alone.shared_megabytes = 0;
  ClusterModel losing = Small();
  losing.failover_loses_all = true;
  const auto solves = [](const ClusterModel& model) { return SimulateDays(model)[1].solves; };
  EXPECT_LT(solves(Small()), solves(losing));
  EXPECT_LT(solves(losing), solves(alone));
}

TEST(DayModel, ByKeyEachEntryIsHeldOnceAndMemoryHitsMore) {
  ClusterModel model = Small();
  model.churn_hours = 1e9;
  const DayCount in_turn = SimulateDays(model).back();
  EXPECT_GT(2 * in_turn.held_entries, 3 * in_turn.distinct_entries);
  model.routes_by_key = true;
  const DayCount by_key = SimulateDays(model).back();
  EXPECT_EQ(by_key.held_entries, by_key.distinct_entries);
  EXPECT_GT(by_key.memory_hits, in_turn.memory_hits);
  EXPECT_EQ(by_key.jobs, by_key.memory_hits + by_key.shared_hits + by_key.solves);
}

TEST(DayModel, AnUpgradeSolvesAnewAtTheLimitedRate) {
  const std::vector<DayCount> days = SimulateDays(Small());
  EXPECT_EQ(days[0].resolves, 0);
  EXPECT_GT(days[1].resolves, 0);
  ClusterModel slow = Small();
  slow.resolves_per_second = 0.001;
  EXPECT_LT(SimulateDays(slow)[1].resolves, days[1].resolves);
}

}  // namespace
}  // namespace stowage
