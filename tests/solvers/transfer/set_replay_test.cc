#include "solvers/transfer/internal/trace_problem.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/solvers/transfer/random_offload.h"
#include "tests/solvers/transfer/whole_copies_search.h"

namespace stowage::testing {
namespace {

RandomOffloadOptions Varied(int i) {
  RandomOffloadOptions options;
  options.max_latency = i % 3 == 0 ? 2 : 0;
  options.max_halvings = i % 2;
  options.fast_links = i % 4 == 1;
  options.limited_host = i % 5 == 0;
  options.full_duplex = i % 2 == 1;
  return options;
}

// The rules of offload_problem.h, one by one.
void ExpectValid(const OffloadProblem& problem, const OffloadSet& set, const OffloadTimeline& t) {
  const int n = problem.size();
  SCOPED_TRACE(Describe(problem, set));
  Nanos ready;
  for (int i = 0; i < n; ++i) {
    EXPECT_GE(t.forward_start[static_cast<size_t>(i)], ready);
    ready = t.forward_start[static_cast<size_t>(i)] + problem.op(i).forward_time;
  }
  for (int i = n - 1; i >= 0; --i) {
    EXPECT_GE(t.backward_start[static_cast<size_t>(i)], ready);
    ready = t.backward_start[static_cast<size_t>(i)] + problem.op(i).backward_time;
  }
  EXPECT_EQ(t.makespan, ready);
  ASSERT_EQ(t.offloads.size(), set.size());
  ASSERT_EQ(t.prefetches.size(), set.size());
  Nanos link;
  for (size_t place = 0; place < set.size(); ++place) {
    const TimedCopy& copy = t.offloads[place];
    ASSERT_EQ(copy.activation, set[place]);
    EXPECT_GE(copy.start, link);
    EXPECT_EQ(copy.end - copy.start, problem.OffloadTime(copy.activation));
    if (copy.activation > 0) {
      const size_t maker = static_cast<size_t>(copy.activation) - 1;
      EXPECT_GE(copy.start, t.forward_start[maker] + problem.op(copy.activation - 1).forward_time);
    }
    link = copy.end;
  }
  for (size_t place = 0; place < set.size(); ++place) {
    const TimedCopy& copy = t.prefetches[place];
    ASSERT_EQ(copy.activation, set[set.size() - 1 - place]);
    EXPECT_GE(copy.start, link);
    EXPECT_EQ(copy.end - copy.start, problem.PrefetchTime(copy.activation));
    EXPECT_LE(copy.end, t.backward_start[static_cast<size_t>(copy.activation)]);
    link = copy.end;
  }
  EXPECT_LE(t.peak, problem.memory());
  EXPECT_LE(t.host_peak, problem.link().host_memory);
  EXPECT_EQ(t.host_peak, problem.BytesOf(set));
}

TEST(SetReplay, IsTheFastestOfAllSchedulesInItsOrder) {
  std::mt19937_64 rng(1);
  int compared = 0, feasible = 0;
  for (int i = 0; i < 220; ++i) {
    const OffloadProblem problem = RandomOffload(1 + i % 4, Varied(i), &rng);
    for (const OffloadSet& set : AllSets(problem)) {
      const std::optional<OffloadTimeline> replay = ReplaySet(problem, set);
      const std::optional<Nanos> best = SearchWholeCopies(problem, set, CopyOrder::kOrdered);
      ASSERT_EQ(replay.has_value(), best.has_value()) << Describe(problem, set);
      ASSERT_EQ(replay.has_value(), problem.Admits(set)) << Describe(problem, set);
      ++compared;
      if (!replay) continue;
      ++feasible;
      EXPECT_EQ(replay->makespan, *best) << Describe(problem, set);
      ExpectValid(problem, set, *replay);
      EXPECT_GE(replay->makespan, problem.LowerBound()) << Describe(problem, set);
    }
  }
  EXPECT_GT(feasible, 800) << "of " << compared;
}

TEST(SetReplay, LongerProblemsKeepTheRules) {
  std::mt19937_64 rng(2);
  for (int i = 0; i < 300; ++i) {
    RandomOffloadOptions options = Varied(i);
    options.max_size = 1000;
    options.max_need = 500;
    options.max_time = 2000;
    const OffloadProblem problem = RandomOffload(5 + i % 60, options, &rng);
    OffloadSet set;
    for (int a = 0; a < problem.size(); ++a) {
      if (std::uniform_int_distribution<int>(0, 3)(rng) > 0) set.push_back(a);
    }
    const std::optional<OffloadTimeline> replay = ReplaySet(problem, set);
    ASSERT_EQ(replay.has_value(), problem.Admits(set)) << Describe(problem, set);
    if (replay) ExpectValid(problem, set, *replay);
  }
}

// Freedom of order never costs: the best ordered set against all schedules of all sets.
TEST(SetReplay, AnyOrderIsNeverSlower) {
  std::mt19937_64 rng(3);
  double sum = 0, worst = 1;
  int count = 0;
  for (int i = 0; i < 60; ++i) {
    RandomOffloadOptions options;
    options.full_duplex = i % 2 == 1;
    const OffloadProblem problem = RandomOffload(2 + i % 3, options, &rng);
    std::optional<Nanos> ordered, any;
    for (const OffloadSet& set : AllSets(problem)) {
      const std::optional<OffloadTimeline> replay = ReplaySet(problem, set);
      if (replay && (!ordered || replay->makespan < *ordered)) ordered = replay->makespan;
      const std::optional<Nanos> free = SearchWholeCopies(problem, set, CopyOrder::kAny);
      if (free && (!any || *free < *any)) any = free;
    }
    ASSERT_EQ(ordered.has_value(), any.has_value()) << Describe(problem);
    if (!any || any->value() == 0) continue;
    EXPECT_GE(*any, problem.LowerBound()) << Describe(problem);
    EXPECT_LE(*any, *ordered) << Describe(problem);
    const double ratio = static_cast<double>(ordered->value()) / static_cast<double>(any->value());
    sum += ratio;
    worst = std::max(worst, ratio);
    ++count;
  }
  RecordProperty("mean_ratio", std::to_string(sum / count));
  RecordProperty("worst_ratio", std::to_string(worst));
}

TEST(SetReplay, DuplexMakesNoDifferenceToOrderedSets) {
  std::mt19937_64 rng(4);
  for (int i = 0; i < 100; ++i) {
    const OffloadProblem half = RandomOffload(6, {}, &rng);
    TransferModel link = half.link();
    link.full_duplex = true;
    const OffloadProblem full = WithLink(half, link);
    for (const OffloadSet& set : AllSets(half)) {
      const auto a = ReplaySet(half, set), b = ReplaySet(full, set);
      ASSERT_EQ(a.has_value(), b.has_value());
      if (a) {
        EXPECT_EQ(a->makespan, b->makespan);
      }
    }
  }
}

TEST(SetReplay, ScalingScales) {
  std::mt19937_64 rng(5);
  for (int i = 0; i < 100; ++i) {
    const OffloadProblem problem = RandomOffload(5, {}, &rng);
    OffloadSpec spec = problem.spec();
    for (Bytes& size : spec.activations) size = Bytes(size.value() * 7);
    for (OffloadOp& op : spec.ops) {
      op = {Nanos(op.forward_time.value() * 7), Nanos(op.backward_time.value() * 7),
            Bytes(op.forward_need.value() * 7), Bytes(op.backward_need.value() * 7)};
    }
    spec.memory = Bytes(spec.memory.value() * 7);
    spec.link.host_memory = Bytes(spec.link.host_memory.value() * 7);
    const OffloadProblem scaled = *OffloadProblem::Create(spec);
    for (const OffloadSet& set : AllSets(problem)) {
      const auto a = ReplaySet(problem, set), b = ReplaySet(scaled, set);
      ASSERT_EQ(a.has_value(), b.has_value()) << Describe(problem, set);
      if (a) {
        EXPECT_EQ(a->makespan.value() * 7, b->makespan.value()) << Describe(problem, set);
      }
    }
  }
}

TEST(SetReplay, HidesCopiesBehindOpsWhereMemoryAllows) {
  OffloadSpec spec;
  spec.activations = {Bytes(10), Bytes(10), Bytes(10)};
  spec.ops = {{Nanos(100), Nanos(100)}, {Nanos(100), Nanos(100)}};
  spec.link.to_host.bytes_per_second = spec.link.to_device.bytes_per_second = 1000000000;
  spec.link.host_memory = Bytes(10);
  spec.memory = Bytes(20);
  const auto tight = ReplaySet(*OffloadProblem::Create(spec), {0});
  ASSERT_TRUE(tight.has_value());
  EXPECT_EQ(tight->makespan, Nanos(410));
  EXPECT_EQ(tight->peak, Bytes(20));
  EXPECT_EQ(tight->offloads, std::vector<TimedCopy>({{0, Nanos(0), Nanos(10)}}));
  EXPECT_EQ(tight->prefetches, std::vector<TimedCopy>({{0, Nanos(300), Nanos(310)}}));
  spec.memory = Bytes(30);
  const auto ample = ReplaySet(*OffloadProblem::Create(spec), {0});
  ASSERT_TRUE(ample.has_value());
  EXPECT_EQ(ample->makespan, Nanos(400));
  EXPECT_EQ(ample->peak, Bytes(30));
  EXPECT_EQ(ample->prefetches, std::vector<TimedCopy>({{0, Nanos(290), Nanos(300)}}));
}

}  // namespace
}  // namespace stowage::testing
