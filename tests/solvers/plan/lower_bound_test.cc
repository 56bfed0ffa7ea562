#include "solvers/plan/lower_bound.h"

#include <gtest/gtest.h>

#include <random>

#include "solvers/plan/simulate.h"
#include "solvers/plan/store_all_schedule.h"
#include "tests/solvers/persistent_search.h"
#include "tests/solvers/random_chain.h"

namespace stowage {
namespace {

Bytes StoreAllPeak(const Chain& chain) { return Simulate(chain, StoreAllSchedule(chain))->peak; }

testing::RandomChainOptions Varied(int i) {
  testing::RandomChainOptions options;
  options.with_loss = i % 3 != 0;
  options.with_flags = i % 4 == 0;
  options.with_input_gradient = i % 5 == 0;
  return options;
}

TEST(MakespanLowerBound, IsTheIdealTimeWhereEverythingFits) {
  std::mt19937_64 rng(1);
  for (int i = 0; i < 500; ++i) {
    const Chain chain = testing::RandomChain(1 + i % 20, Varied(i), &rng);
    EXPECT_EQ(MakespanLowerBound(chain, StoreAllPeak(chain)), chain.ideal_time())
        << testing::Describe(chain);
    EXPECT_EQ(MakespanLowerBound(chain, Bytes(INT64_MAX)), chain.ideal_time());
  }
}

TEST(MakespanLowerBound, NeverRisesWithTheBudget) {
  std::mt19937_64 rng(2);
  for (int i = 0; i < 200; ++i) {
    const Chain chain = testing::RandomChain(1 + i % 20, Varied(i), &rng);
    Nanos before = MakespanLowerBound(chain, Bytes(0));
    for (Bytes budget(1); budget <= StoreAllPeak(chain); budget += Bytes(1)) {
      const Nanos bound = MakespanLowerBound(chain, budget);
      ASSERT_LE(bound, before) << budget.value() << '\n' << testing::Describe(chain);
      before = bound;
    }
  }
}

TEST(MakespanLowerBound, IsNeverAboveAPersistentOptimum) {
  std::mt19937_64 rng(3);
  int64_t points = 0, tight = 0;
  for (int i = 0; i < 300; ++i) {
    const Chain chain = testing::RandomChain(1 + i % 4, Varied(i), &rng);
    for (const auto& [peak, makespan] :
         testing::PersistentFrontier(chain, testing::Recompute::kAnyTime)) {
      const int64_t bound = MakespanLowerBound(chain, Bytes(peak)).value();
      ASSERT_LE(bound, makespan) << peak << '\n' << testing::Describe(chain);
      ++points;
      tight += bound == makespan ? 1 : 0;
    }
  }
  RecordProperty("points", std::to_string(points));
  RecordProperty("tight", std::to_string(tight));
  EXPECT_GT(tight * 3, points);
}

TEST(MakespanLowerBound, IsNeverAboveAnySchedule) {
  std::mt19937_64 rng(4);
  for (int i = 0; i < 20000; ++i) {
    const Chain chain = testing::RandomChain(1 + i % 9, Varied(i), &rng);
    const Simulation simulation = *Simulate(chain, testing::RandomSchedule(chain, &rng));
    ASSERT_LE(MakespanLowerBound(chain, simulation.peak), simulation.makespan)
        << testing::Describe(chain);
  }
}

TEST(MakespanLowerBound, HoldsForTheLargestSizesAndTimes) {
  ChainSpec spec;
  spec.stages.resize(2);
  spec.stages[0].output = spec.stages[0].saved = Bytes(kMaxTotal / 4);
  spec.stages[0].forward_time = Nanos(kMaxTimeTotal / 8);
  const Chain chain = *Chain::Create(spec);
  EXPECT_EQ(MakespanLowerBound(chain, Bytes(0)), chain.ideal_time() + Nanos(kMaxTimeTotal / 8));
  EXPECT_EQ(MakespanLowerBound(chain, Bytes(kMaxTotal / 8)),
            chain.ideal_time() + Nanos(kMaxTimeTotal / 16));
}

}  // namespace
}  // namespace stowage
