// Every strategy of offloading, held to the interface.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "solvers/transfer/internal/trace_problem.h"
#include "solvers/transfer/offload_problem.h"
#include "solvers/transfer/strategies.h"
#include "tests/solvers/transfer/random_offload.h"

namespace stowage::testing {
namespace {

class OffloadStrategies : public ::testing::TestWithParam<const OffloadStrategy*> {
 protected:
  const OffloadStrategy& strategy() const { return *GetParam(); }
  OffloadPlan Solve(const OffloadProblem& problem) const {
    const auto plan = strategy().Solve(problem, {});
    EXPECT_TRUE(plan.ok()) << plan.status() << Describe(problem);
    return plan.ok() ? *plan : OffloadPlan();
  }
};

RandomOffloadOptions Varied(int i) {
  RandomOffloadOptions options;
  options.max_size = i % 2 == 0 ? 10 : 10000;
  options.max_need = options.max_size / 2;
  options.max_time = options.max_size;
  options.max_latency = i % 3;
  options.max_halvings = i % 4;
  options.limited_host = i % 3 == 0;
  options.full_duplex = i % 5 == 0;
  return options;
}

bool SomeSetFits(const OffloadProblem& problem) {
  const std::vector<OffloadSet> sets = AllSets(problem);
  return std::any_of(sets.begin(), sets.end(),
                     [&](const OffloadSet& set) { return problem.Admits(set); });
}

TEST_P(OffloadStrategies, PlansFitAndKeepTheBounds) {
  std::mt19937_64 rng(31);
  int found = 0;
  for (int i = 0; i < 200; ++i) {
    const OffloadProblem problem = RandomOffload(1 + i % 10, Varied(i), &rng);
    const OffloadPlan plan = Solve(problem);
    EXPECT_FALSE(plan.explanation.empty());
    if (plan.status == PlanStatus::kProvenInfeasible) {
      EXPECT_FALSE(SomeSetFits(problem)) << Describe(problem);
    }
    if (plan.status != PlanStatus::kFound) continue;
    ++found;
    EXPECT_TRUE(std::is_sorted(plan.set.begin(), plan.set.end()));
    EXPECT_LE(plan.timeline.peak, problem.memory()) << Describe(problem, plan.set);
    EXPECT_EQ(plan.timeline.peak, PeakOf(problem, plan.timeline));
    EXPECT_LE(plan.timeline.host_peak, problem.link().host_memory);
    EXPECT_GE(plan.timeline.makespan, plan.lower_bound) << Describe(problem, plan.set);
    EXPECT_GE(plan.lower_bound, problem.LowerBound());
    // No schedule of this set in this order is faster than its replay.
    const auto replay = ReplaySet(problem, plan.set);
    ASSERT_TRUE(replay.has_value());
    EXPECT_LE(replay->makespan, plan.timeline.makespan);
  }
  EXPECT_GT(found, 20);
}

TEST_P(OffloadStrategies, WhereAllFitsNothingMoves) {
  std::mt19937_64 rng(32);
  for (int i = 0; i < 30; ++i) {
    const OffloadProblem problem = RandomOffload(1 + i, Varied(i), &rng);
    for (const Bytes memory : {problem.peak(), Bytes(kMaxTotal)}) {
      const OffloadPlan plan = Solve(WithMemory(problem, memory));
      EXPECT_EQ(plan.status, PlanStatus::kFound);
      EXPECT_TRUE(plan.set.empty());
      EXPECT_EQ(plan.timeline.makespan, problem.ideal_time());
      EXPECT_EQ(plan.timeline.peak, problem.peak());
    }
  }
}

TEST_P(OffloadStrategies, BelowTheLeastMemoryInfeasibilityIsProven) {
  std::mt19937_64 rng(33);
  for (int i = 0; i < 30; ++i) {
    const OffloadProblem problem = RandomOffload(1 + i, Varied(i), &rng);
    if (problem.least_memory() == Bytes(0)) continue;
    for (const Bytes memory : {problem.least_memory() - Bytes(1), Bytes(0)}) {
      EXPECT_EQ(Solve(WithMemory(problem, memory)).status, PlanStatus::kProvenInfeasible);
    }
  }
}

TEST_P(OffloadStrategies, WithoutHostMemoryNothingLeaves) {
  std::mt19937_64 rng(34);
  for (int i = 0; i < 30; ++i) {
    const OffloadProblem base = RandomOffload(2 + i, Varied(i), &rng);
    if (base.overflow_bytes() == Bytes(0)) continue;
    TransferModel link = base.link();
    link.host_memory = Bytes(0);
    EXPECT_EQ(Solve(WithLink(base, link)).status, PlanStatus::kProvenInfeasible);
  }
}

TEST_P(OffloadStrategies, EqualProblemsHaveEqualPlans) {
  std::mt19937_64 rng(35);
  for (int i = 0; i < 20; ++i) {
    const OffloadProblem problem = RandomOffload(30, Varied(i), &rng);
    const OffloadPlan a = Solve(problem), b = Solve(problem);
    EXPECT_EQ(a.status, b.status);
    EXPECT_EQ(a.set, b.set);
    EXPECT_EQ(a.timeline.makespan, b.timeline.makespan);
    EXPECT_EQ(a.timeline.prefetches, b.timeline.prefetches);
    EXPECT_EQ(a.explanation, b.explanation);
  }
}

TEST_P(OffloadStrategies, ExtremesAreDefined) {
  std::mt19937_64 rng(36);
  for (const int64_t bandwidth : {int64_t{1}, int64_t{1000}, std::numeric_limits<int64_t>::max()}) {
    for (int i = 0; i < 10; ++i) {
      const OffloadProblem base = RandomOffload(6, Varied(2 * i), &rng);
      TransferModel link = base.link();
      link.to_host.bytes_per_second = bandwidth;
      link.to_device.bytes_per_second = i % 2 == 0 ? bandwidth : 999999999989;
      const OffloadPlan plan = Solve(WithLink(base, link));
      if (plan.status == PlanStatus::kFound) {
        EXPECT_GE(plan.timeline.makespan, plan.lower_bound);
      }
    }
  }
}

TEST_P(OffloadStrategies, SizesAndTimesNearTheLimits) {
  constexpr int64_t kHuge = kMaxTotal / 8;
  OffloadSpec spec;
  spec.activations = {Bytes(kHuge), Bytes(kHuge), Bytes(kHuge), Bytes(kHuge)};
  const Nanos long_time(kMaxTimeTotal / 8);
  spec.ops = {{long_time, long_time, Bytes(0), Bytes(kHuge)},
              {long_time, long_time, Bytes(0), Bytes(0)},
              {Nanos(0), Nanos(0), Bytes(kHuge), Bytes(0)}};
  spec.link.to_host.bytes_per_second = spec.link.to_device.bytes_per_second = 1000000007000;
  spec.link.host_memory = Bytes(kMaxTotal);
  spec.memory = Bytes(3 * kHuge);
  const auto problem = OffloadProblem::Create(spec);
  ASSERT_TRUE(problem.ok()) << problem.status();
  const OffloadPlan plan = Solve(*problem);
  if (plan.status == PlanStatus::kFound) {
    EXPECT_LE(plan.timeline.peak, spec.memory);
    EXPECT_GE(plan.timeline.makespan, plan.lower_bound);
  }
}

TEST_P(OffloadStrategies, NoBytesNoTimes) {
  OffloadSpec spec;
  spec.activations.resize(6);
  spec.ops.resize(5);
  spec.link.to_host.bytes_per_second = spec.link.to_device.bytes_per_second = 1;
  const OffloadPlan plan = Solve(*OffloadProblem::Create(spec));
  EXPECT_EQ(plan.status, PlanStatus::kFound);
  EXPECT_EQ(plan.timeline.makespan, Nanos(0));
}

TEST_P(OffloadStrategies, HearsTheStopToken) {
  std::mt19937_64 rng(37);
  const OffloadProblem problem = RandomOffload(30, Varied(1), &rng);
  StopToken cancelled, late(StopToken::Clock::now());
  cancelled.RequestStop();
  SolveOptions options;
  options.stop = &cancelled;
  EXPECT_EQ(strategy().Solve(problem, options).status().code(), absl::StatusCode::kCancelled);
  options.stop = &late;
  EXPECT_EQ(strategy().Solve(problem, options).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST_P(OffloadStrategies, RefusesBadOptions) {
  std::mt19937_64 rng(38);
  SolveOptions options;
  options.slots = -1;
  EXPECT_EQ(strategy().Solve(RandomOffload(3, {}, &rng), options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_P(OffloadStrategies, ProgressEndsAtOne) {
  std::mt19937_64 rng(39);
  const OffloadProblem base = RandomOffload(20, Varied(1), &rng);
  std::vector<double> shares;
  SolveOptions options;
  options.progress = [&shares](double share) { shares.push_back(share); };
  ASSERT_TRUE(strategy().Solve(WithMemory(base, base.least_memory()), options).ok());
  ASSERT_FALSE(shares.empty());
  EXPECT_EQ(shares.back(), 1.0);
}

INSTANTIATE_TEST_SUITE_P(All, OffloadStrategies, ::testing::ValuesIn(AllOffloadStrategies()),
                         [](const auto& param) { return param.param->info().name; });

TEST(AllOffloadStrategies, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const OffloadStrategy* strategy : AllOffloadStrategies()) {
    EXPECT_TRUE(names.insert(strategy->info().name).second) << strategy->info().name;
    EXPECT_FALSE(strategy->info().description.empty());
  }
}

TEST(DynProgOffload, FindsAllThatFitsAndProvesTheRest) {
  std::mt19937_64 rng(40);
  for (int i = 0; i < 200; ++i) {
    const OffloadProblem problem = RandomOffload(1 + i % 10, Varied(i), &rng);
    const auto plan = DynProgOffload().Solve(problem, {});
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(plan->status,
              SomeSetFits(problem) ? PlanStatus::kFound : PlanStatus::kProvenInfeasible)
        << Describe(problem);
  }
}

TEST(GreedyOffload, TakesTheFewestOfTheFirstThatFit) {
  std::mt19937_64 rng(41);
  for (int i = 0; i < 300; ++i) {
    RandomOffloadOptions options = Varied(i);
    options.limited_host = false;
    const OffloadProblem problem = RandomOffload(1 + i % 10, options, &rng);
    OffloadSet expected;
    for (int a = 0;
         !problem.Admits(expected) || problem.BytesOf(expected) < problem.overflow_bytes(); ++a) {
      ASSERT_LT(a, problem.size());
      if (problem.activation(a) > Bytes(0)) expected.push_back(a);
    }
    EXPECT_EQ(GreedyOffload().Solve(problem, {})->set, expected) << Describe(problem);
  }
}

}  // namespace
}  // namespace stowage::testing
