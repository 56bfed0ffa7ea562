#include "solvers/chain/persistent_steps.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>

#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "tests/solvers/persistent_search.h"
#include "tests/solvers/random_chain.h"

namespace stowage {
namespace {

constexpr PersistentSteps::Limits kNoLimits = {INT64_MAX, INT64_MAX};

int64_t StoreAllPeak(const Chain& chain) {
  return Evaluator(chain).Run(StoreAllSchedule(chain))->peak.value();
}

// Least makespans by budget, from the steps; the evaluator must confirm each.
std::map<int64_t, int64_t> StepsOf(const Chain& chain) {
  const PersistentSpace space(chain, 1);
  const auto steps =
      PersistentSteps::Compute(space, StoreAllPeak(chain) - space.activation(0), kNoLimits, {});
  std::map<int64_t, int64_t> found;
  for (const PersistentSteps::Step& step : (*steps)->Whole()) {
    const absl::StatusOr<Simulation> simulation =
        Evaluator(chain).Run((*steps)->Backtrack(step.memory));
    EXPECT_TRUE(simulation.ok()) << simulation.status();
    EXPECT_EQ(simulation->makespan, chain.ideal_time() + Nanos(step.overhead));
    // The left-over gradient of the input can need more than all the rest.
    const int64_t budget = std::max(space.activation(0) + step.memory, space.input_gradient());
    EXPECT_EQ(simulation->peak.value(), budget);
    found[budget] = simulation->makespan.value();
  }
  return found;
}

TEST(PersistentSteps, EqualTheSearchOnTenThousandRandomChains) {
  std::mt19937_64 rng(31);
  for (int i = 0; i < 10000; ++i) {
    testing::RandomChainOptions options;
    options.max_size = i % 2 == 0 ? 5 : 1000;
    options.with_loss = i % 2 == 0;
    options.with_flags = i % 3 == 0;
    options.with_stops = i % 5 > 2;
    options.with_input_gradient = i % 5 == 0;
    const int length = i % 200 == 0 ? 6 : i % 40 == 0 ? 5 : 1 + i % 4;
    const Chain chain = testing::RandomChain(length, options, &rng);
    EXPECT_EQ(StepsOf(chain), testing::PersistentFrontier(chain)) << testing::Describe(chain);
    if (HasFailure()) return;
  }
}

// Chains that repeat share rows; one byte more in one stage, and they do not.
TEST(PersistentSteps, RepeatedStagesEqualTheSearch) {
  std::mt19937_64 rng(32);
  for (int i = 0; i < 100; ++i) {
    ChainSpec spec = testing::RandomChain(i % 2 + 1, {}, &rng).spec();
    const std::vector<Stage> block = spec.stages;
    while (spec.stages.size() < 5) {
      spec.stages.insert(spec.stages.end(), block.begin(), block.end());
    }
    const Chain repeated = *Chain::Create(spec);
    EXPECT_EQ(StepsOf(repeated), testing::PersistentFrontier(repeated))
        << testing::Describe(repeated);
    spec.stages[2].saved += Bytes(1);
    const Chain changed = *Chain::Create(spec);
    EXPECT_EQ(StepsOf(changed), testing::PersistentFrontier(changed)) << testing::Describe(changed);
    if (HasFailure()) return;
  }
}

TEST(PersistentSteps, LessMemoryCutsTheRowAndChangesNothingBelow) {
  std::mt19937_64 rng(33);
  for (int i = 0; i < 100; ++i) {
    testing::RandomChainOptions options;
    options.max_size = 1000;
    const Chain chain = testing::RandomChain(12, options, &rng);
    const PersistentSpace space(chain, 1);
    const int64_t all = StoreAllPeak(chain) - space.activation(0);
    const auto full = PersistentSteps::Compute(space, all, kNoLimits, {});
    const auto half = PersistentSteps::Compute(space, all * 2 / 3, kNoLimits, {});
    const PersistentSteps::Row& cut = (*half)->Whole();
    for (size_t k = 0; k < cut.size(); ++k) {
      EXPECT_EQ(cut[k].memory, (*full)->Whole()[k].memory);
      EXPECT_EQ(cut[k].overhead, (*full)->Whole()[k].overhead);
    }
    const bool ends = cut.size() == (*full)->Whole().size();
    EXPECT_TRUE(ends || (*full)->Whole()[cut.size()].memory > all * 2 / 3);
  }
}

TEST(PersistentSteps, GiveUpAtTheirLimits) {
  std::mt19937_64 rng(34);
  testing::RandomChainOptions options;
  options.max_size = 100000;
  const Chain chain = testing::RandomChain(14, options, &rng);
  const PersistentSpace space(chain, 1);
  const int64_t all = StoreAllPeak(chain) - space.activation(0);
  EXPECT_TRUE(PersistentSteps::Compute(space, all, kNoLimits, {})->has_value());
  EXPECT_FALSE(PersistentSteps::Compute(space, all, {100, INT64_MAX}, {})->has_value());
  EXPECT_FALSE(PersistentSteps::Compute(space, all, {INT64_MAX, 1000}, {})->has_value());
  EXPECT_FALSE(PersistentSteps::Compute(space, all, {INT64_MAX, 0}, {})->has_value());
}

}  // namespace
}  // namespace stowage
