#include "solvers/schedule/lower_bound.h"

#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <random>
#include <string>

#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/schedule_search.h"

namespace stowage {
namespace {

Bytes StoreAllPeak(const Chain& chain) {
  return Evaluator(chain).Run(StoreAllSchedule(chain))->peak;
}

struct Bound {
  const char* name;
  Nanos (*of)(const Instance&, Bytes);
};

class LowerBounds : public ::testing::TestWithParam<Bound> {
 protected:
  static Nanos Of(const Chain& chain, Bytes budget) { return GetParam().of(chain, budget); }
};

INSTANTIATE_TEST_SUITE_P(Both, LowerBounds,
                         ::testing::Values(Bound{"Relaxed", MakespanLowerBound},
                                           Bound{"Strong", StrongestMakespanLowerBound}),
                         [](const auto& param) { return param.param.name; });

TEST_P(LowerBounds, IsTheIdealTimeWhereEverythingFits) {
  std::mt19937_64 rng(1);
  for (int i = 0; i < 500; ++i) {
    const Chain chain = testing::RandomChain(1 + i % 20, testing::VariedOptions(i), &rng);
    EXPECT_EQ(Of(chain, StoreAllPeak(chain)), chain.ideal_time()) << testing::Describe(chain);
    EXPECT_EQ(Of(chain, Bytes(INT64_MAX)), chain.ideal_time());
  }
}

TEST_P(LowerBounds, NeverRisesWithTheBudget) {
  std::mt19937_64 rng(2);
  for (int i = 0; i < 40; ++i) {
    const Chain chain = testing::RandomChain(1 + i % 12, testing::VariedOptions(i), &rng);
    Nanos before = Of(chain, Bytes(0));
    for (Bytes budget(1); budget <= StoreAllPeak(chain); budget += Bytes(1)) {
      const Nanos bound = Of(chain, budget);
      ASSERT_LE(bound, before) << budget.value() << '\n' << testing::Describe(chain);
      before = bound;
    }
  }
}

TEST_P(LowerBounds, IsNeverAboveARandomSchedule) {
  std::mt19937_64 rng(4);
  for (int i = 0; i < 3000; ++i) {
    const Chain chain = testing::RandomChain(1 + i % 9, testing::VariedOptions(i), &rng);
    const Simulation simulation = *Evaluator(chain).Run(testing::RandomSchedule(chain, &rng));
    ASSERT_LE(Of(chain, simulation.peak), simulation.makespan) << testing::Describe(chain);
  }
}

TEST_P(LowerBounds, HoldForTheLargestSizesAndTimes) {
  ChainSpec spec;
  spec.stages.resize(2);
  spec.stages[0].output = spec.stages[0].saved = Bytes(kMaxTotal / 4);
  spec.stages[0].forward_time = Nanos(kMaxTimeTotal / 8);
  const Chain chain = *Chain::Create(spec);
  const Nanos ideal = chain.ideal_time();
  EXPECT_GE(Of(chain, Bytes(0)), ideal + Nanos(kMaxTimeTotal / 8));
  EXPECT_GE(Of(chain, Bytes(kMaxTotal / 8)), ideal + Nanos(kMaxTimeTotal / 16));
  EXPECT_EQ(Of(chain, Bytes(kMaxTotal / 4)), ideal);
}

// How often a bound is met, of the budgets at which something has to be recomputed.
struct Tightness {
  int64_t budgets = 0, relaxed = 0, strong = 0;

  void Count(const Chain& chain, int64_t budget, int64_t fastest) {
    const int64_t weak_bound = MakespanLowerBound(chain, Bytes(budget)).value();
    const int64_t strong_bound = StrongestMakespanLowerBound(chain, Bytes(budget)).value();
    ASSERT_LE(weak_bound, fastest) << budget << '\n' << testing::Describe(chain);
    ASSERT_LE(strong_bound, fastest) << budget << '\n' << testing::Describe(chain);
    if (fastest == chain.ideal_time().value()) return;
    ++budgets;
    relaxed += weak_bound == fastest ? 1 : 0;
    strong += strong_bound == fastest ? 1 : 0;
  }
};

// Against an exhaustive search over all schedules, at both ends of every range of budgets in which
// the least makespan is the same.
TEST(LowerBoundsAgainstSearch, AreNeverAboveTheFastestSchedule) {
  std::mt19937_64 rng(3);
  Tightness tightness;
  for (int i = 0; i < 1500; ++i) {
    testing::RandomChainOptions options = testing::VariedOptions(i);
    options.max_time = i % 2 == 0 ? 6 : 1;
    const int length = i == 0 ? 5 : i % 100 == 0 ? 4 : 1 + i % 3;
    const Chain chain = testing::RandomChain(length, options, &rng);
    const std::map<int64_t, int64_t> frontier = testing::ScheduleFrontier(chain);
    for (auto point = frontier.begin(); point != frontier.end(); ++point) {
      const auto next = std::next(point);
      tightness.Count(chain, point->first, point->second);
      if (next != frontier.end()) tightness.Count(chain, next->first - 1, point->second);
    }
  }
  RecordProperty("budgets", std::to_string(tightness.budgets));
  RecordProperty("relaxed", std::to_string(tightness.relaxed));
  RecordProperty("strong", std::to_string(tightness.strong));
  EXPECT_GT(tightness.relaxed * 4, tightness.budgets);
  EXPECT_GT(tightness.strong * 5, tightness.budgets * 3);
}

// Ten equal stages of 10 bytes, of which 5 bytes are too many.
TEST(MakespanLowerBound, TakesFractionsOfStages) {
  ChainSpec spec;
  Stage s;
  s.forward_time = s.backward_time = Nanos(100);
  s.saved = Bytes(10);
  spec.stages.assign(10, s);
  const Chain chain = *Chain::Create(spec);
  EXPECT_EQ(MakespanLowerBound(chain, Bytes(95)), chain.ideal_time() + Nanos(50));
  EXPECT_EQ(StrongestMakespanLowerBound(chain, Bytes(95)), chain.ideal_time() + Nanos(100));
}

// A stage of much memory and little time, which may not be repeated.
TEST(MakespanLowerBound, CountsStagesThatMustBeKept) {
  ChainSpec spec;
  spec.stages.resize(3);
  for (Stage& s : spec.stages) {
    s.forward_time = Nanos(10);
    s.saved = Bytes(10);
  }
  spec.stages[0].must_keep = true;
  spec.stages[0].forward_time = Nanos(1);
  const Chain chain = *Chain::Create(spec);
  EXPECT_EQ(MakespanLowerBound(chain, Bytes(20)), chain.ideal_time() + Nanos(10));
  EXPECT_EQ(StrongestMakespanLowerBound(chain, Bytes(20)), chain.ideal_time() + Nanos(10));
}

TEST(StrongestMakespanLowerBound, IsAtLeastTheRelaxedOne) {
  std::mt19937_64 rng(5);
  int better = 0;
  for (int i = 0; i < 200; ++i) {
    const Chain chain = testing::RandomChain(1 + i % 20, testing::VariedOptions(i), &rng);
    const Bytes budget(StoreAllPeak(chain).value() * (i % 10) / 10);
    const Nanos relaxed = MakespanLowerBound(chain, budget);
    const Nanos strong = StrongestMakespanLowerBound(chain, budget);
    EXPECT_GE(strong, relaxed);
    better += strong > relaxed ? 1 : 0;
  }
  EXPECT_GT(better, 100);
}

}  // namespace
}  // namespace stowage
