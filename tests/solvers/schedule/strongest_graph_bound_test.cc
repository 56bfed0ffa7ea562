// The strongest lower bound of graphs, and what it is made of.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/transfer_model.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/graph_liveness.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/internal/recompute_hull.h"
#include "solvers/schedule/lower_bound.h"
#include "solvers/zoo/network_graph.h"
#include "solvers/zoo/networks.h"
#include "tests/solvers/graph_ops.h"
#include "tests/solvers/graph_search.h"
#include "tests/solvers/random_graph.h"

namespace stowage {
namespace {

using testing::MakeGraph;

// Hulls against every choice.

RecomputeCell RandomCell(int position, bool closed, std::mt19937_64* rng) {
  const auto draw = [rng](uint64_t below) { return static_cast<int64_t>((*rng)() % below); };
  RecomputeCell cell;
  cell.output_needed = draw(2) == 0;
  cell.output = draw(9);
  cell.extras = std::max<int64_t>(draw(8) - 4, 0);
  cell.repeatable = draw(8) != 0;
  cell.time = draw(12);
  cell.stopped_time = closed ? draw(static_cast<uint64_t>(cell.time) + 1) : cell.time;
  for (int input = 0; input < position; ++input) {
    if (draw(3) == 0) cell.inputs.push_back(input);
  }
  return cell;
}

// What the bits choose of each cell: that it repeats, and that a repeat makes the output. Nothing if that is no choice.
std::optional<HullStep> Cost(const std::vector<RecomputeCell>& cells, uint32_t repeats,
                             uint32_t makes) {
  HullStep cost = {0, 0};
  uint32_t needed = 0;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (cells[i].output_needed) needed |= 1u << i;
    if ((repeats >> i & 1) == 0) {
      cost.bytes += cells[i].extras;
      if ((makes >> i & 1) != 0) return std::nullopt;
      continue;
    }
    if (!cells[i].repeatable) return std::nullopt;
    cost.time += (makes >> i & 1) != 0 ? cells[i].time : cells[i].stopped_time;
    for (const int input : cells[i].inputs) needed |= 1u << input;
  }
  for (size_t i = 0; i < cells.size(); ++i) {
    if ((needed >> i & 1) != 0 && (makes >> i & 1) == 0) cost.bytes += cells[i].output;
  }
  return cost;
}

TEST(RecomputeHull, IsTheHullOfEveryChoice) {
  std::mt19937_64 rng(1);
  int several = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<RecomputeCell> cells;
    const int size = 1 + round % 5;
    for (int i = 0; i < size; ++i) cells.push_back(RandomCell(i, round % 2 == 0, &rng));
    const RecomputeHull hull = HullOf(cells);
    several += hull.steps.size() > 1 ? 1 : 0;
    std::vector<HullStep> corners = {{hull.held, 0}};
    for (const HullStep& step : hull.steps) {
      corners.push_back({corners.back().bytes - step.bytes, corners.back().time + step.time});
    }
    std::vector<bool> reached(corners.size(), false);
    for (uint32_t repeats = 0; repeats < 1u << size; ++repeats) {
      for (uint32_t makes = 0; makes < 1u << size; ++makes) {
        const std::optional<HullStep> cost = Cost(cells, repeats, makes);
        if (!cost) continue;
        ASSERT_GE(cost->bytes, corners.back().bytes);
        for (size_t i = 0; i < corners.size(); ++i) {
          reached[i] =
              reached[i] || (cost->bytes == corners[i].bytes && cost->time == corners[i].time);
          if (i == 0) continue;
          const HullStep& step = hull.steps[i - 1];
          // On the line of the step, or above it.
          ASSERT_GE((cost->time - corners[i].time) * step.bytes,
                    (corners[i].bytes - cost->bytes) * step.time);
        }
      }
    }
    EXPECT_EQ(std::count(reached.begin(), reached.end(), false), 0) << round;
  }
  EXPECT_GT(several, 100);
}

Vertex Op(int64_t k, std::vector<GraphInput> inputs, int64_t bytes, int64_t time) {
  Vertex v = testing::MakeOp(k, std::move(inputs));
  v.output = Bytes(bytes);
  v.forward_time = Nanos(time);
  return v;
}

int64_t AboveIdeal(const Graph& graph, int64_t budget) {
  return (StrongestMakespanLowerBound(graph, Bytes(budget)) - graph.ideal_time()).value();
}

// 1 -> 2 -> 3 -> 4: backwards need the outputs of 1 and of 3, none that of 2, from which 3 is made. At 4 there is room for
// 10 bytes beside what it needs.
TEST(StrongestGraphBound, WhatARepeatReadsIsHeldOrRepeated) {
  std::vector<Vertex> ops = {Op(0, {}, 0, 0), Op(1, {{0, false}}, 10, 500),
                             Op(2, {{1, true}}, 10, 70), Op(3, {{2, false}}, 10, 30),
                             Op(4, {{3, false}}, 0, 0)};
  ops[3].backward_needs_output = true;
  ops[4].backward_overhead = Bytes(20);
  const Graph graph = MakeGraph(ops);
  EXPECT_EQ((MakespanLowerBound(graph, Bytes(30)) - graph.ideal_time()).value(), 30);
  EXPECT_EQ(AboveIdeal(graph, 40), 0);
  EXPECT_EQ(AboveIdeal(graph, 35), 50);
  EXPECT_EQ(AboveIdeal(graph, 30), 100);
  EXPECT_EQ(AboveIdeal(graph, 25), 350);
  EXPECT_EQ(AboveIdeal(graph, 20), 600);
  EXPECT_EQ(AboveIdeal(graph, 0), 600);  // there is no more to give up
}

// In place: what is written over runs again, too.
TEST(StrongestGraphBound, AVersionIsMadeByAllBeforeIt) {
  std::vector<Vertex> ops = {Op(0, {}, 0, 0), Op(1, {{0, false}}, 10, 70),
                             Op(2, {{1, false}}, 10, 30), Op(3, {{2, true}}, 0, 0),
                             Op(4, {{3, false}}, 0, 0)};
  ops[2].alias = AliasKind::kInPlace;
  ops[4].backward_overhead = Bytes(20);
  const Graph graph = MakeGraph(ops);
  EXPECT_EQ(AboveIdeal(graph, 30), 0);
  EXPECT_EQ(AboveIdeal(graph, 25), 50);
  EXPECT_EQ(AboveIdeal(graph, 20), 100);
}

// 1 is read before and after 2 -> 3; while 2 runs backward, 1's gradient waits for it.
TEST(StrongestGraphBound, CountsGradientsThatWait) {
  std::vector<Vertex> ops = {Op(0, {}, 0, 5), Op(1, {{0, false}}, 10, 100),
                             Op(2, {{1, false}}, 0, 1), Op(3, {{2, false}}, 0, 1),
                             Op(4, {{1, false}, {3, false}}, 0, 1)};
  ops[1].backward_needs_output = true;
  ops[1].output_gradient = Bytes(10);
  ops[3].backward_overhead = Bytes(20);
  const Graph graph = MakeGraph(ops);
  EXPECT_EQ(AboveIdeal(graph, 40), 0);
  EXPECT_EQ(AboveIdeal(graph, 35), 50);
}

TEST(StrongestGraphBound, IsNeverAboveTheOptimum) {
  std::mt19937_64 rng(4);
  int above_fast = 0, budgets = 0, tight = 0, fast_tight = 0;
  for (int round = 0; round < 300; ++round) {
    testing::RandomGraphOptions options;
    options.vertices = 1 + round % 6;
    options.with_flags = round % 3 == 0;
    options.with_stops = round % 5 > 2;
    options.sources = round % 4 == 0 ? 0.2 : 0.0;
    const Graph graph = testing::RandomGraph(options, &rng);
    const std::map<int64_t, int64_t> frontier = testing::GraphScheduleFrontier(graph);
    for (auto point = frontier.begin(); point != frontier.end(); ++point) {
      const auto next = std::next(point);
      std::vector<int64_t> at = {point->first};
      if (next != frontier.end()) at.push_back(next->first - 1);
      for (const int64_t budget : at) {
        const int64_t fast = MakespanLowerBound(graph, Bytes(budget)).value();
        const int64_t bound = StrongestMakespanLowerBound(graph, Bytes(budget)).value();
        ASSERT_LE(bound, point->second) << "budget " << budget << testing::Describe(graph);
        ASSERT_GE(bound, fast);
        if (point->second == graph.ideal_time().value()) continue;
        ++budgets;
        above_fast += bound > fast ? 1 : 0;
        tight += bound == point->second ? 1 : 0;
        fast_tight += fast == point->second ? 1 : 0;
      }
    }
  }
  RecordProperty("budgets", budgets);
  RecordProperty("tight", tight);
  RecordProperty("fast_tight", fast_tight);
  EXPECT_GT(above_fast * 4, budgets);
  EXPECT_GT(tight, fast_tight);
}

// With aliases too, where there is no exhaustive search; and with the budget from plenty to nothing.
TEST(StrongestGraphBound, IsNeverAboveARandomScheduleNorRises) {
  std::mt19937_64 rng(33);
  int above_fast = 0;
  for (int round = 0; round < 2000; ++round) {
    testing::RandomGraphOptions options;
    options.vertices = 2 + round % 9;
    options.with_aliases = round % 5 != 0;
    options.with_flags = round % 4 == 0;
    options.with_stops = round % 5 > 2;
    options.sources = round % 3 == 0 ? 0.2 : 0.0;
    const Graph graph = testing::RandomGraph(options, &rng);
    const absl::StatusOr<Simulation> drawn =
        Evaluator(graph).Run(WithDiscards(graph, testing::RandomSchedule(graph, &rng)));
    ASSERT_TRUE(drawn.ok()) << drawn.status();
    const Nanos bound = StrongestMakespanLowerBound(graph, drawn->peak);
    ASSERT_LE(bound, drawn->makespan) << testing::Describe(graph);
    above_fast += bound > MakespanLowerBound(graph, drawn->peak) ? 1 : 0;
    const Bytes all = Evaluator(graph).Run(StoreAllSchedule(graph))->peak;
    EXPECT_EQ(StrongestMakespanLowerBound(graph, all), graph.ideal_time());
    const Instance instance = Instance(graph).Remembering();
    Nanos before = graph.ideal_time();
    for (Bytes budget = all; budget >= Bytes(0); budget -= Bytes(1)) {
      const Nanos now = StrongestMakespanLowerBound(instance, budget);
      ASSERT_GE(now, before) << budget.value() << testing::Describe(graph);
      before = now;
    }
    EXPECT_EQ(before, StrongestMakespanLowerBound(graph, Bytes(0)));
  }
  EXPECT_GT(above_fast, 5);
}

TEST(StrongestGraphBound, HoldsForTheLargestSizesAndTimes) {
  std::vector<Vertex> ops = {Op(0, {}, 0, 100), Op(1, {{0, false}}, int64_t{1} << 60, 1),
                             Op(2, {{1, false}}, 0, 100)};
  ops[1].backward_needs_output = true;
  ops[1].extra_saved = Bytes(int64_t{1} << 60);
  ops[2].backward_overhead = Bytes(int64_t{1} << 60);
  ops[1].forward_time = Nanos(int64_t{1} << 58);
  const Graph graph = MakeGraph(ops);
  EXPECT_EQ(AboveIdeal(graph, int64_t{3} << 60), 0);
  EXPECT_EQ(AboveIdeal(graph, int64_t{2} << 60), int64_t{1} << 57);
  EXPECT_EQ(AboveIdeal(graph, 0), int64_t{1} << 58);
  EXPECT_EQ(AboveIdeal(graph, INT64_MAX), 0);
}

// Of fixed modelled costs: what is proven, in ns above the ideal, at 20, 50 and 90% of plain training's peak, without a link
// and with one of 24 GB/s.
TEST(StrongestGraphBound, IsWhatItWasOfNetworks) {
  struct Proven {
    const char* network;
    int64_t without[3], with[3];
  };
  const Proven kProven[] = {{"resnet18", {5600554, 2051212, 225019}, {1479525, 197796, 0}},
                            {"densenet121", {18081918, 9128525, 1212027}, {12112916, 3988367, 0}},
                            {"vgg16", {63267258, 13173511, 846006}, {1647126, 0, 0}}};
  for (const Proven& proven : kProven) {
    NetworkOptions options;
    options.name = proven.network;
    options.batch = 32;
    const Graph graph = *GraphOf(*MakeNetwork(options), ModelledV100());
    const Instance without = Instance(graph).Remembering();
    TransferModel link;
    link.to_host.bytes_per_second = link.to_device.bytes_per_second = 24000000000;
    link.host_memory = Bytes(int64_t{1} << 50);
    const Instance with = without.WithLink(link);
    size_t i = 0;
    for (const int64_t share : {20, 50, 90}) {
      const Bytes budget(without.store_all()->peak.value() / 100 * share);
      EXPECT_EQ((StrongestMakespanLowerBound(without, budget) - without.ideal_time()).value(),
                proven.without[i]);
      EXPECT_EQ((StrongestMakespanLowerBound(with, budget) - with.ideal_time()).value(),
                proven.with[i]);
      ++i;
    }
  }
}

// Neither width nor length may cost quadratic time; ops that all depend on each other are taken apart.
TEST(StrongestGraphBound, StaysFastOnLargeGraphs) {
  constexpr int kSize = 200000;
  std::vector<Vertex> path = {Op(0, {}, 1, 1)}, sums = {Op(0, {}, 1, 1)};
  std::vector<Vertex> star = {Op(0, {}, 1, 1)};  // all read the first, as a mask is read
  for (int64_t k = 1; k < kSize; ++k) {
    star.push_back(k == 1 ? Op(k, {{0, false}}, 1, 1) : Op(k, {{k - 1, true}, {0, false}}, 1, 1));
    path.push_back(Op(k, {{k - 1, true}}, 1, 1));
    sums.push_back(Op(k, {{k - 1, k % 1000 == 0}}, 1, 1));
  }
  EXPECT_GE(AboveIdeal(MakeGraph(path), kSize / 2), kSize / 2);
  EXPECT_GE(AboveIdeal(MakeGraph(sums), 100), 100);
  EXPECT_GE(AboveIdeal(MakeGraph(star), 100), 100);
}

}  // namespace
}  // namespace stowage
